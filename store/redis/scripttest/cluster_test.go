package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestOnACluster: the scripts use only keys in the slot of the declared keys. The list of a log with
// a lowered limit is also in this slot.
func TestOnACluster(t *testing.T) {
	client := newClient(t, testserver.Start(t, "--cluster-enabled", "yes").Addr)
	if err := client.Do(t.Context(), client.B().ClusterAddslotsrange().StartSlotEndSlot().StartSlotEndSlot(0, 16383).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
		info, err := client.Do(t.Context(), client.B().ClusterInfo().Build()).ToString()
		if strings.Contains(info, "cluster_state:ok") {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the cluster is not ready after 10 s: %v\n%s", err, info)
		}
	}
	s := newStore(t, client, 3, nil)
	for _, p := range append(returnable(400, time.Hour), headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 400, Per: time.Hour}, BanFor: time.Hour}) {
		short := p
		short.Limit.Count = 20
		var ids [2]headgate.PolicyID
		for i, p := range []headgate.Policy{p, short} {
			id, err := s.Prepare(p)
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = id
		}
		key := p.Algorithm.String()
		for range 300 {
			apply(t, s, headgate.Op{Key: key, Policy: ids[0], Cost: 1})
		}
		last := apply(t, s, headgate.Op{Key: key, Policy: ids[0], Cost: 1})[0]
		if err := s.Return(t.Context(), []headgate.Receipt{last.Receipt}); err != nil {
			t.Fatal(err)
		}
		if d := apply(t, s, headgate.Op{Key: key, Policy: ids[1], Cost: 1})[0]; d.Verdict != headgate.Deny {
			t.Errorf("%s: 300 units are used with a limit of 20: got %+v, want Deny", key, d)
		}
		if err := s.Forget(t.Context(), []headgate.Op{{Key: key}}); err != nil {
			t.Fatal(err)
		}
		if d := apply(t, s, headgate.Op{Key: key, Policy: ids[1], Cost: 1})[0]; d.Verdict == headgate.Deny {
			t.Errorf("%s: no units are used after Forget: got %+v, want Allow", key, d)
		}
	}
}
