package script

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// TestLimitsThatDoNotFit: what is refused is refused with what to write instead.
func TestLimitsThatDoNotFit(t *testing.T) {
	window := func(count int64, per time.Duration, n int) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.SlidingWindow, Limit: headgate.Limit{Count: count, Per: per}, SubWindows: n}
	}
	for _, c := range []struct {
		name   string
		policy headgate.Policy
		want   string
	}{
		{"an odd count", headgate.Policy{Limit: headgate.Limit{Count: 100_000_007, Per: time.Second}}, "use 100000008/1s"},
		{"an odd period", headgate.Policy{Limit: headgate.Limit{Count: 5_000_000, Per: 1_000_000_007}}, "use 5000000/1s"},
		{"a long odd period", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 366*24*time.Hour + 1}}, "use 1/366d"},
		{
			"a long log",
			headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1 << 16, Per: time.Second}},
			"use at most 32768, or sliding_window, or token_bucket",
		},
		{"counters without bound", window(1<<52, time.Second, 1), "use at most 1125899906842624, or fewer sub-windows, or token_bucket"},
		{"many counters", window(1<<51, time.Second, 256), "use at most 8761866979320,"},
		{"sub-windows within a microsecond", window(5, 3*time.Microsecond, 4), "use at most 3"},
		{"a window of an odd length", window(5, 1500, 1), "use 2µs"},
		{"a fixed one", headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: 1_000_000_499}}, "use 1s"},
		{
			"a ban of an odd length",
			headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 5, Per: time.Second}, BanFor: 1_000_000_500},
			"limit: ban_for 1.0000005s is not a whole number of microseconds, in which Redis decides: use 1.000001s",
		},
		{"no limit at all", headgate.Policy{Limit: headgate.Limit{Count: -1, Per: time.Second}}, "limit: count -1 is out of range"},
		{"units taken ahead", headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Second}, Hold: time.Second}, "limit: prefetch"},
	} {
		_, err := Compile(c.policy)
		var fault *limit.PolicyError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a PolicyError with %q", c.name, err, c.want)
		}
	}
}

// TestLimitsThatFit: rates from one a day to 100 million a second are there.
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
				t.Errorf("%s %s: %v", a, l, err)
			}
		}
	}
}

// TestNearestFits: what a refusal names is not refused, and what limit accepts and
// Redis refuses is refused for one of the bounds.
func TestNearestFits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	refused := 0
	for range 3000 {
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
			t.Fatalf("%+v is refused with %+v, and that with: %v", p, near, err)
		}
	}
	if refused < 100 {
		t.Errorf("%d limits were refused: too few to show anything", refused)
	}
}
