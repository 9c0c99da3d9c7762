package fields

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// resultOf returns the result of a rule with one limit and the decision d.
func resultOf(name string, l headgate.Limit, d headgate.Decision) *guard.Result {
	r := &guard.Rule{Rule: rule.Rule{Name: name}, Policies: []headgate.Policy{{Limit: l}}}
	return &guard.Result{Rule: r, Policy: name, Limit: l, Decision: d}
}

func TestAnnounce(t *testing.T) {
	hundred := headgate.Limit{Count: 100, Per: time.Minute}
	allowed := headgate.Decision{Limit: 100, Remaining: 50, ResetAfter: 29*time.Second + 1}
	for _, c := range []struct {
		name  string
		style Style
		r     *guard.Result
		want  http.Header
	}{
		{
			"allowed", Draft, resultOf("name", hundred, allowed),
			http.Header{fieldPolicy: {`"name";q=100;w=60`}, fieldRateLimit: {`"name";r=50;t=30`}},
		},
		{
			"refused: t is Retry-After", Draft,
			resultOf("name", hundred, headgate.Decision{
				Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 100, RetryAfter: 1, ResetAfter: time.Minute,
			}),
			http.Header{fieldPolicy: {`"name";q=100;w=60`}, fieldRateLimit: {`"name";r=0;t=1`}},
		},
		{
			"never: no t", Draft,
			resultOf("name", hundred, headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never, Limit: 100, Remaining: 7}),
			http.Header{fieldPolicy: {`"name";q=100;w=60`}, fieldRateLimit: {`"name";r=7`}},
		},
		{
			"less than a second: w is at least 1", Draft,
			resultOf("ms", headgate.Limit{Count: 5, Per: time.Millisecond}, headgate.Decision{Limit: 5, Remaining: 5}),
			http.Header{fieldPolicy: {`"ms";q=5;w=1`}, fieldRateLimit: {`"ms";r=5;t=0`}},
		},
		{
			"escaped", Draft, resultOf("a\"b\\c\x01é", headgate.Limit{Per: time.Second}, headgate.Decision{}),
			http.Header{fieldPolicy: {`"a\"b\\c%01%C3%A9";q=0;w=1`}, fieldRateLimit: {`"a\"b\\c%01%C3%A9";r=0;t=0`}},
		},
		{
			"greatest", Draft,
			resultOf("max", headgate.Limit{Count: headgate.MaxUnits, Per: math.MaxInt64},
				headgate.Decision{Remaining: headgate.MaxUnits, ResetAfter: math.MaxInt64}),
			http.Header{
				fieldPolicy:    {`"max";q=999999999999999;w=9223372037`}, // An Integer has at most 15 digits.
				fieldRateLimit: {`"max";r=999999999999999;t=9223372037`},
			},
		},
		{
			"a name of any length", Draft, resultOf(strings.Repeat("n", 300), hundred, allowed),
			http.Header{
				fieldPolicy:    {`"` + strings.Repeat("n", 300) + `";q=100;w=60`},
				fieldRateLimit: {`"` + strings.Repeat("n", 300) + `";r=50;t=30`},
			},
		},
		{
			"the greatest numbers", XRateLimit,
			resultOf("max", hundred, headgate.Decision{Limit: math.MaxInt64, Remaining: math.MaxInt64, ResetAfter: math.MaxInt64}),
			http.Header{
				fieldXLimit: {"9223372036854775807"}, fieldXRemaining: {"9223372036854775807"}, fieldXReset: {"9223372037"},
			},
		},
		{
			"x-ratelimit", XRateLimit, resultOf("name", hundred, allowed),
			http.Header{fieldXLimit: {"100"}, fieldXRemaining: {"50"}, fieldXReset: {"30"}},
		},
		{
			"x-ratelimit-epoch: a time, rounded up", XRateLimitEpoch,
			resultOf("name", hundred, headgate.Decision{Limit: 100, ResetAfter: 29 * time.Second, At: 1_800_000_000_000_000_001}),
			http.Header{fieldXLimit: {"100"}, fieldXRemaining: {"0"}, fieldXReset: {"1800000030"}},
		},
		{
			"x-ratelimit-epoch: the time of Retry-After", XRateLimitEpoch,
			resultOf("name", hundred, headgate.Decision{
				Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 100, RetryAfter: 2 * time.Second, ResetAfter: time.Minute,
				At: 1_800_000_000_000_000_000,
			}),
			http.Header{fieldXLimit: {"100"}, fieldXRemaining: {"0"}, fieldXReset: {"1800000002"}},
		},
		{
			"x-ratelimit-epoch: the greatest", XRateLimitEpoch,
			resultOf("max", hundred, headgate.Decision{Limit: 100, ResetAfter: math.MaxInt64, At: 1_800_000_000_000_000_000}),
			http.Header{fieldXLimit: {"100"}, fieldXRemaining: {"0"}, fieldXReset: {"9223372037"}},
		},
		{
			"draft03", Draft03, resultOf("name", hundred, allowed),
			http.Header{fieldLimit: {"100"}, fieldRemaining: {"50"}, fieldReset: {"30"}},
		},
		{"none", None, resultOf("name", hundred, allowed), http.Header{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := http.Header{}
			new(Announcer).announce(c.style, Map(got), c.r)
			for name, want := range c.want {
				if name != http.CanonicalHeaderKey(name) {
					t.Errorf("%s is not in canonical spelling", name)
				}
				if !slices.Equal(got[name], want) {
					t.Errorf("%s = %q, want %q", name, got[name], want)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("header %v, want %v", got, c.want)
			}
		})
	}
}

// TestAnnounceBesideUpstream checks that the upstream's own fields are kept. Lists grow, and
// single numbers stay those of the upstream.
func TestAnnounceBesideUpstream(t *testing.T) {
	r := resultOf("ours", headgate.Limit{Count: 9, Per: time.Second}, headgate.Decision{Limit: 9, Remaining: 8})
	h := http.Header{fieldRateLimit: {`"theirs";r=1;t=2`}, fieldXRemaining: {"1"}}
	new(Announcer).announce(Draft, Map(h), r)
	new(Announcer).announce(XRateLimit, Map(h), r)
	if got, want := h[fieldRateLimit], []string{`"theirs";r=1;t=2`, `"ours";r=8;t=0`}; !slices.Equal(got, want) {
		t.Errorf("RateLimit = %q, want %q", got, want)
	}
	if got := h[fieldXRemaining]; !slices.Equal(got, []string{"1"}) || h[fieldXLimit] != nil {
		t.Errorf("X-RateLimit-Limit = %q and X-RateLimit-Remaining = %q, want only the upstream's values", got, h[fieldXLimit])
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-time.Second: 0, 0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, math.MaxInt64: 9223372037,
	} {
		if got := Seconds(d); got != want {
			t.Errorf("Seconds(%d) = %d, want %d", d, got, want)
		}
	}
	if got := RetryAfter(&guard.Result{}); got != 1 && got != 2 {
		t.Errorf("Retry-After = %d, want at least 1", got)
	}
}

func TestStyles(t *testing.T) {
	for s := Draft; s <= None; s++ {
		if got, ok := ParseStyle(s.String()); got != s || !ok {
			t.Errorf("ParseStyle(%q) = %v, %v, want the style", s.String(), got, ok)
		}
	}
	if _, ok := ParseStyle("ietf"); ok {
		t.Error("ParseStyle accepts an unknown word")
	}
}
