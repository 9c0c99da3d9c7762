package script

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestLimitsThatDoNotFit: Compile refuses these policies, and its error names a policy that fits.
func TestLimitsThatDoNotFit(t *testing.T) {
	window := func(count int64, per time.Duration, n int) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: count, Per: per}, SubWindows: n}
	}
	for _, c := range []struct {
		name   string
		policy headgate.Policy
		want   string
	}{
		{"a prime count", headgate.Policy{Limit: headgate.Limit{Count: 100_000_007, Per: time.Second}}, "use 100000008/1s"},
		{"a period of odd nanoseconds", headgate.Policy{Limit: headgate.Limit{Count: 5_000_000, Per: 1_000_000_007}}, "use 5000000/1s"},
		{"a year and a nanosecond", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 366*24*time.Hour + 1}}, "use 1/366d"},
		{
			"a long log",
			headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1 << 16, Per: time.Second}},
			"use at most 32768, or sliding_window, or token_bucket",
		},
		{"a count beyond 2^51", window(1<<52, time.Second, 1), "use at most 1125899906842624, or fewer sub-windows, or token_bucket"},
		{"a count beyond 2^51 / 257", window(1<<51, time.Second, 256), "use at most 8761866979320,"},
		{"sub-windows shorter than a microsecond", window(5, 3*time.Microsecond, 4), "use at most 3"},
		{"a sliding window of 1.5 microseconds", window(5, 1500, 1), "use 2µs"},
		{"a fixed window of odd nanoseconds", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: 1_000_000_499}}, "use 1s"},
		{
			"a ban_for of odd nanoseconds",
			headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 5, Per: time.Second}, BanFor: 1_000_000_500},
			"limit: ban_for 1.0000005s is not a whole number of microseconds, in which Redis decides: use 1.000001s",
		},
		{"a negative count", headgate.Policy{Limit: headgate.Limit{Count: -1, Per: time.Second}}, "limit: count -1 is out of range"},
		{"prefetch", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}, Hold: time.Second}, "limit: prefetch"},
	} {
		_, err := Compile(c.policy)
		var fault *limit.PolicyError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want a PolicyError with %q", c.name, err, c.want)
		}
	}
}

// TestLimitsThatFit: Compile accepts rates from one a day to 100 million a second.
func TestLimitsThatFit(t *testing.T) {
	for _, l := range []headgate.Limit{
		{Count: 1, Per: 24 * time.Hour},
		{Count: 3, Per: time.Second},
		{Count: 1_000_003, Per: time.Second},
		{Count: 100_000_000, Per: time.Second},
		{Count: 1, Per: limit.MaxPer},
		{Count: 7, Per: 1001 * time.Nanosecond},
		{Count: 0, Per: time.Second},
		{Count: 1_000_000_000_000, Per: 24 * time.Hour},
	} {
		for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.LeakyBucket} {
			p, err := Compile(headgate.Policy{Algorithm: a, Limit: l})
			if err != nil || p.Policy().Limit != l {
				t.Errorf("Compile(%s %s): got error %v, want a Plan with the same limit", a, l, err)
			}
		}
	}
}

// TestNearestFits: Compile accepts each policy that nearest gives for a random policy that does not
// fit.
func TestNearestFits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	tried, refused := race.Fewer(3000, 300), 0
	for range tried {
		p := headgate.Policy{Algorithm: headgate.Algorithm(r.IntN(2))}
		p.Limit = headgate.Limit{Count: 1 + r.Int64N(1<<r.IntN(53)), Per: limit.MinPer + time.Duration(r.Int64N(1<<(10+r.IntN(44))))}
		if r.IntN(2) == 0 {
			p.Limit.Burst = 1 + r.Int64N(1<<r.IntN(53))
		}
		if r.IntN(2) == 0 {
			p.MaxWait = time.Duration(r.Int64N(1 << r.IntN(54)))
		}
		if _, err := limit.Compile(p); err != nil || fits(p) {
			continue
		}
		refused++
		near := nearest(p)
		if _, err := Compile(near); err != nil {
			t.Fatalf("nearest(%+v) is %+v, which does not fit: %v", p, near, err)
		}
	}
	if refused*30 < tried {
		t.Errorf("%d random policies were refused, want at least %d", refused, tried/30)
	}
}
