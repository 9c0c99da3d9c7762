package config

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
)

// holdFault says why the Hold of a policy is invalid. It is a slow reference with big integers.
func holdFault(p headgate.Policy) string {
	h, per := p.Hold, p.Limit.Per
	switch {
	case h == 0 && p.Batch == 0:
		return ""
	case h < time.Millisecond || h%time.Microsecond != 0 || h > time.Hour || 2*h > per || p.Batch < 0:
		return fmt.Sprintf("a hold of %s and a batch of %d for %s", h, p.Batch, p.Limit)
	case p.Algorithm == headgate.LeakyBucket || p.Algorithm == headgate.Ban || p.CountRejected || p.MaxWait > 0 || p.Limit.Count == 0:
		return fmt.Sprintf("a hold of a policy that needs the store for every request: %+v", p)
	case p.Algorithm == headgate.TokenBucket:
		refilled := new(big.Int).Mul(big.NewInt(p.Limit.Count), big.NewInt(int64(h)))
		refilled.Add(refilled, big.NewInt(int64(per)-1)).Div(refilled, big.NewInt(int64(per)))
		if refilled.Cmp(big.NewInt(limit.Room(p)-1)) > 0 {
			return fmt.Sprintf("%s units refill in a hold of %s, too many for %s burst %d", refilled, h, p.Limit, p.Limit.Burst)
		}
	case p.Algorithm == headgate.SlidingLog && per+h > limit.MaxPer:
		return fmt.Sprintf("%s and a hold of %s are too long", p.Limit, h)
	}
	return ""
}

// TestGreatestHold checks that the greatest hold is valid, and that a longer one is not.
func TestGreatestHold(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 14))
	for range 20_000 {
		p := headgate.Policy{Algorithm: headgate.Algorithms()[draw.IntN(5)]}
		if p.Algorithm == headgate.LeakyBucket {
			continue
		}
		p.Limit = headgate.Limit{Count: 1 + draw.Int64N(1<<draw.IntN(53)), Per: 1 + time.Duration(draw.Int64N(int64(limit.MaxPer)>>draw.IntN(54)))}
		if p.Algorithm == headgate.TokenBucket && draw.IntN(2) == 0 {
			p.Limit.Burst = 1 + draw.Int64N(1<<draw.IntN(53))
		}
		p.Hold = check.GreatestHold(p)
		if bad := holdFault(p); p.Hold >= check.LeastHold && bad != "" {
			t.Fatalf("%s", bad)
		}
		if p.Hold += time.Microsecond; p.Hold > check.LeastHold && holdFault(p) == "" {
			t.Fatalf("%+v is valid, but its hold is longer than the greatest hold", p)
		}
	}
}

// TestPrefetchOfRules: each row has the prefetch of the top level, a rule, and the resulting
// holds.
func TestPrefetchOfRules(t *testing.T) {
	for _, row := range []struct {
		top, rule string
		holds     []string // Hold and Batch of each limit, first the rule's, then those of overrides.
	}{
		{"off", "limits: [100/s]", []string{"0s/0"}},
		{"auto", "limits: [100/s]", []string{"5ms/0"}},
		{"20", "limits: [100/s]", []string{"5ms/20"}},
		{"{hold: 50ms}", "limits: [100/s]", []string{"50ms/0"}},
		{"{batch: 7, hold: 50ms}", "limits: [100/s], prefetch: auto", []string{"5ms/0"}},
		{"auto", "limits: [100/s], prefetch: off", []string{"0s/0"}},
		{"off", "limits: [100/s], prefetch: {batch: 3}", []string{"5ms/3"}},
		{"off", "limits: [100/s], prefetch: {}", []string{"5ms/0"}},
		// The shortest hold of several limits. Each override has its own.
		{"auto", "limits: [100/s, 3000/m]", []string{"5ms/0", "5ms/0"}},
		{"auto", "limits: [100/s], overrides: {192.0.2.1: {limits: [5000/m]}, 192.0.2.2: {limits: [1/s]}}", []string{"5ms/0", "300ms/0", "0s/0"}},
		// If one limit of a key cannot be held, none is.
		{"auto", "limits: [100/s, 50/100ms], algorithm: sliding_log", []string{"0s/0", "0s/0"}},
		{"auto", "limits: [0/s]", []string{"0s/0"}},
		{"off", "limits: [100/s], overrides: {192.0.2.1: {limits: [0/s]}}, prefetch: auto", []string{"5ms/0", "0s/0"}},
		// These settings need the store for every request.
		{"auto", "limits: [100/s], algorithm: leaky_bucket", []string{"0s/0"}},
		{"auto", "limits: [100/s], algorithm: fixed_window, count_rejected: true", []string{"0s/0"}},
		{"auto", "limits: [100/s], ban: {for: 1h}", []string{"0s/0"}},
		{"auto", "limits: [100/s], on_exceed: {action: delay, max_wait: 1s}", []string{"0s/0"}},
		{"auto", "limits: [100/s], on_exceed: {action: degrade, header: X-A, value: b, hard: 900/s}", []string{"0s/0"}},
		{"auto", "limits: [100/s], on_exceed: {action: degrade, header: X-A, value: b}", []string{"5ms/0"}},
		// An hour is the longest hold, even for a long period.
		{"auto", "limits: [100000/360d], algorithm: fixed_window", []string{"1h/0"}},
		// Holds are whole microseconds.
		{"auto", "limits: [1000/201001us]", []string{"1.005ms/0"}},
	} {
		c := parsed(t, "version: 1\nstore: redis://h\nprefetch: "+row.top+"\nrules: [{name: a, key: [ip], "+row.rule+"}]\n")
		var got []string
		for _, set := range check.Sets(&c.Rules[0]) {
			for _, p := range set {
				if bad := holdFault(p); bad != "" {
					t.Error(bad)
				}
				got = append(got, fmt.Sprintf("%s/%d", field.FormatDuration(p.Hold), p.Batch))
			}
		}
		if strings.Join(got, " ") != strings.Join(row.holds, " ") {
			t.Errorf("prefetch: %s with %s: got %v, want %v", row.top, row.rule, got, row.holds)
		}
	}
}

// TestInMemory checks that InMemory keeps the limits and removes all settings of shared stores.
func TestInMemory(t *testing.T) {
	c := parsed(t, "version: 1\nstore: redis://:secret@h\nprefetch: auto\nfallback: local\nlocal_share: 50%\n"+
		"rules: [{name: a, key: [ip], limits: [100/s], overrides: {192.0.2.1: {limits: [5000/m]}}}]\n")
	want := parsed(t, "version: 1\nrules: [{name: a, key: [ip], limits: [100/s], overrides: {192.0.2.1: {limits: [5000/m]}}}]\n")
	want.written = c.written
	if got := c.InMemory(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if c.Rules[0].Policies[0].Hold == 0 || c.Rules[0].Overrides[0].Policies[0].Hold == 0 || c.Shared == nil {
		t.Error("the configuration itself has changed")
	}
}
