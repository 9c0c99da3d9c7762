package prefetch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/store/storetest"
)

// TestStore runs the contract without holds and without repeated refusals. A repeated refusal
// deviates from the contract on purpose: TestRefusals.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
		t.Helper()
		since := func() time.Duration { return clock.Now().Sub(storetest.Start) }
		return behind(t, newSource(t, clock.Now), prefetch.Config{Clock: since, DenyFor: -1})
	})
}

// noting is a source that records the policies it prepares.
type noting struct {
	prefetch.Source

	policy headgate.Policy
}

func (n *noting) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	n.policy = p
	return n.Source.Prepare(p)
}

// TestPrepare: the policy of each algorithm at the source, and the policies that Prepare
// refuses.
func TestPrepare(t *testing.T) {
	five, ms := headgate.Limit{Count: 5, Per: time.Second}, time.Millisecond
	for _, c := range []struct {
		name  string
		given headgate.Policy
		// want is the limit at the source. If it is empty, a part of the error is expected.
		want  headgate.Limit
		fault string
	}{
		{name: "no hold", given: headgate.Policy{Limit: five}, want: five},
		{
			name:  "every unit of a log counts for a hold longer",
			given: headgate.Policy{Algorithm: headgate.SlidingLog, Limit: five, Hold: 5 * ms},
			want:  headgate.Limit{Count: 5, Per: 1005 * ms},
		},
		{
			name:  "in whole microseconds",
			given: headgate.Policy{Algorithm: headgate.SlidingLog, Limit: five, Hold: 1500},
			want:  headgate.Limit{Count: 5, Per: time.Second + 2*time.Microsecond},
		},
		{
			name:  "windows do not change",
			given: headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: 4, Limit: five, Hold: 5 * ms}, want: five,
		},
		{
			name:  "fixed windows do not change",
			given: headgate.Policy{Algorithm: headgate.FixedWindow, Limit: five, Hold: 5 * ms, Batch: 3}, want: five,
		},
		{
			name:  "a limit of nothing",
			given: headgate.Policy{Limit: headgate.Limit{Per: time.Second}, Hold: 5 * ms},
			want:  headgate.Limit{Per: time.Second},
		},
		{
			name:  "a bucket lends less, rounded up",
			given: headgate.Policy{Limit: five, Hold: 5 * ms}, want: headgate.Limit{Count: 5, Per: time.Second, Burst: 4},
		},
		{
			name:  "to the unit",
			given: headgate.Policy{Limit: headgate.Limit{Count: 50, Per: time.Second, Burst: 40}, Hold: 40 * ms},
			want:  headgate.Limit{Count: 50, Per: time.Second, Burst: 38},
		},
		{
			name:  "a bucket that is too small",
			given: headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Second, Burst: 5}, Hold: 5 * ms}, fault: "hold at most 4ms",
		},
		{
			name:  "a bucket of one",
			given: headgate.Policy{Limit: headgate.Limit{Count: 9, Per: time.Second, Burst: 1}, Hold: 1}, fault: "raise the burst, or leave it out",
		},
		{
			name:  "a queue",
			given: headgate.Policy{Algorithm: headgate.LeakyBucket, Limit: five, Hold: 5 * ms}, fault: "leaky_bucket",
		},
		{
			name:  "a ban",
			given: headgate.Policy{Algorithm: headgate.Ban, BanFor: time.Second, Limit: five, Hold: 5 * ms}, fault: "ban",
		},
		{
			name:  "attempts that count",
			given: headgate.Policy{Algorithm: headgate.SlidingLog, CountRejected: true, Limit: five, Hold: 5 * ms}, fault: "count_rejected",
		},
		{name: "a batch alone", given: headgate.Policy{Limit: five, Batch: 1}, fault: "add a hold"},
		{name: "a negative batch", given: headgate.Policy{Limit: five, Hold: -1}, fault: "at least 0"},
		{name: "longer than the period", given: headgate.Policy{Limit: five, Hold: time.Minute}, fault: "at most 1s"},
		{
			name:  "a policy that the source cannot count",
			given: headgate.Policy{Limit: headgate.Limit{Count: -5, Per: time.Second}, Hold: 5 * ms}, fault: "count",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := &noting{Source: newSource(t, nil)}
			s := behind(t, at, prefetch.Config{})
			id, err := s.Prepare(c.given)
			var fault *limit.PolicyError
			if c.fault != "" {
				if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%v, want a PolicyError with %q", err, c.fault)
				}
				return
			}
			again, _ := s.Prepare(c.given)
			if err != nil || id == 0 || id != again || at.policy.Limit != c.want {
				t.Errorf("named %d, then %d, as %+v, %v", id, again, at.policy.Limit, err)
			}
			if at.policy.Hold != 0 || at.policy.Batch != 0 || at.policy.SubWindows != c.given.SubWindows {
				t.Errorf("the source prepares %+v", at.policy)
			}
		})
	}
}
