package redis

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
	for _, c := range []struct {
		name   string
		policy headgate.Policy
		want   string
	}{
		{
			"a shaper",
			headgate.Policy{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 5, Per: time.Second}},
			"limit: algorithm leaky_bucket is not built yet for Redis: use token_bucket, which admits the same and books departures with Book, or use the memory store",
		},
		{
			"a window",
			headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: time.Second}},
			"limit: algorithm fixed_window is not built yet for Redis: use sliding_log (exact) or token_bucket, or use the memory store",
		},
		{
			"a ban",
			headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 5, Per: time.Second}, BanFor: time.Minute},
			"limit: algorithm ban is not built yet for Redis: leave the ban out, or use the memory store",
		},
		{"an odd count", headgate.Policy{Limit: headgate.Limit{Count: 100_000_007, Per: time.Second}}, "use 100000008/1s"},
		{"an odd period", headgate.Policy{Limit: headgate.Limit{Count: 5_000_000, Per: 1_000_000_007}}, "use 5000000/1.000000007s with a burst of 900718"},
		{
			"a long log",
			headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1 << 16, Per: time.Second}},
			"use at most 32768, or token_bucket",
		},
		{"no limit at all", headgate.Policy{Limit: headgate.Limit{Count: -1, Per: time.Second}}, "limit: count -1 is out of range"},
	} {
		_, err := compile(c.policy)
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
		if _, err := compile(headgate.Policy{Limit: l}); err != nil {
			t.Errorf("%s: %v", l, err)
		}
	}
}

// TestNearestFits: what a refusal names is not refused, and what limit accepts and
// Redis refuses is refused for one of the two bounds.
func TestNearestFits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	refused := 0
	for range 3000 {
		p := headgate.Policy{Limit: headgate.Limit{Count: 1 + r.Int64N(1<<r.IntN(53)), Per: limit.MinPer + time.Duration(r.Int64N(1<<(10+r.IntN(44))))}}
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
		if _, err := compile(near); err != nil {
			t.Fatalf("%+v is refused with %+v, and that with: %v", p, near, err)
		}
	}
	if refused < 100 {
		t.Errorf("%d limits were refused: too few to show anything", refused)
	}
}

// TestPlacesAreNames: a place survives the way into a Receipt and back, and names nothing
// but itself.
func TestPlacesAreNames(t *testing.T) {
	names := map[string]bool{}
	for _, key := range []string{"", "a", "{a}", "}{", "a\x00", "hg1:{a}:0", "\r\nFLUSHALL\r\n", strings.Repeat("x", 1<<20)} {
		for _, window := range []uint8{0, 1, 255} {
			p := placeOf(key, window)
			if placeIn(p.words()) != p {
				t.Errorf("%.20q: %v became %v on the way", key, p, placeIn(p.words()))
			}
			name := p.name()
			tag, rest, ok := strings.Cut(strings.TrimPrefix(name, "hg1:{"), "}:")
			if !ok || len(tag) != 20 || len(rest) > 3 || strings.Trim(tag, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
				t.Errorf("%.20q has the name %q", key, name)
			}
			if names[name] {
				t.Errorf("%.20q shares the name %q", key, name)
			}
			names[name] = true
		}
	}
}
