package memcached

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
)

// TestAfterSleep: after a suspension, the machine's clock is an hour behind. The process queries
// the server before it treats the key's last decision as the result of a step back.
func TestAfterSleep(t *testing.T) {
	for name, keys := range map[string][]string{"alone": {"a"}, "in a group": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Servers: []string{testserver.Start(t).Addr}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			take := func(cost int64) headgate.Decision {
				var ops []headgate.Op
				for _, key := range keys {
					ops = append(ops, headgate.Op{Key: key, Policy: id, Cost: cost})
				}
				ds := make([]headgate.Decision, len(ops))
				if err := s.Apply(t.Context(), ops, ds); err != nil {
					t.Fatal(err)
				}
				return ds[0]
			}
			before := take(10)
			for range 5 {
				// The follower could correct the offset before the take does; it is rarely so fast.
				asleep := *s.servers()[0].clock.offset.Load() - time.Hour
				s.servers()[0].clock.offset.Store(&asleep)
				if d := take(1); d.Verdict != headgate.Deny || d.At < before.At || d.At.Sub(before.At) > 10*time.Second {
					t.Errorf("after an hour's sleep: %v at %v, after %v", d.Verdict, d.At.Time(), before.At.Time())
				}
			}
		})
	}
}
