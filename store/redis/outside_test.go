package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestOutsideDecidesOtherGroups: after an EdgeError, groups without such an Op are decided, and their decisions stand. A caller that
// asks again for the others counts nothing twice, and gives nothing back twice. A group with keys on several nodes counts nothing.
func TestOutsideDecidesOtherGroups(t *testing.T) {
	cluster, single := testserver.StartCluster(t, 3, 0), testserver.Start(t)
	there := keyOn(t, cluster, cluster.Nodes[1], "there ")
	late := monthEnding(time.Now().AddDate(0, 3, 0))
	for name, config := range map[string]redis.Config{
		"cluster": {Kind: redis.Cluster, Timeout: patience, Client: rueidis.ClientOption{InitAddress: cluster.Addrs()}},
		"single":  {Timeout: patience, Client: rueidis.ClientOption{InitAddress: []string{single.Addr}}},
	} {
		for _, more := range []int{0, 300} { // 300 Ops are two batches.
			t.Run(fmt.Sprintf("%s, %d more", name, more), func(t *testing.T) {
				store := open(t, config)
				month := prepare(t, store, aMonth())
				plain := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: 24 * time.Hour}})
				own := fmt.Sprint("own ", more)
				apart := keyOn(t, cluster, cluster.Nodes[0], fmt.Sprint("apart ", more, " "))
				take := func(group uint8, key string) headgate.Op {
					return headgate.Op{Key: key, Policy: plain, Group: group, Cost: 2}
				}
				outside := func(group uint8, key string) headgate.Op {
					return headgate.Op{Key: key, Policy: month, Group: group, Cost: 1, Edges: late}
				}
				ops := []headgate.Op{take(0, own), outside(1, own), take(2, apart), outside(2, there)}
				for i := range more {
					ops = append(ops, headgate.Op{Key: fmt.Sprint(i), Policy: plain, Group: uint8(3 + i%2), Kind: headgate.Peek})
				}
				decisions := make([]headgate.Decision, len(ops))
				err := store.Apply(t.Context(), ops, decisions)
				if _, found := errortype.As[*headgate.EdgeError](err); !found {
					t.Fatalf("got %v, want an EdgeError", err)
				}
				if d := decisions[0]; d.Verdict != headgate.Allow || d.Remaining != 3 || d.Receipt.Empty() {
					t.Errorf("the group without a calendar is %+v, want the decision", d)
				}
				for i, d := range decisions[1:4] {
					if d != headgate.Undecided() {
						t.Errorf("Op %d is %+v, want Undecided", i+1, d)
					}
				}
				for i, d := range decisions[4:] {
					if d.Verdict != headgate.Allow {
						t.Fatalf("Op %d is %+v", i+4, d)
					}
				}
				var d [1]headgate.Decision
				for key, want := range map[string]int64{own: 3, apart: 5} {
					peek := []headgate.Op{{Key: key, Policy: plain, Kind: headgate.Peek}}
					if err := store.Apply(t.Context(), peek, d[:]); err != nil || d[0].Remaining != want {
						t.Errorf("%s has %d left (%v), want %d", key, d[0].Remaining, err, want)
					}
				}
			})
		}
	}
}
