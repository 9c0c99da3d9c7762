package rls_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

const day = 24 * time.Hour

// published are the domains of the reference's own tests.
func published() guard.Config {
	share := node("files", "files/*", counted(10, time.Hour))
	share.ShareThreshold = true
	return guard.Config{Domains: []guard.Domain{
		{Name: "basic", Descriptors: []guard.Descriptor{node("key1", "", counted(50, time.Second))}},
		{Name: "another", Descriptors: []guard.Descriptor{
			node("key2", "", counted(20, time.Minute)), node("key3", "", counted(10, time.Hour)), node("key4", "", counted(20, day)),
		}},
		{Name: "share-threshold-test", Descriptors: []guard.Descriptor{
			share, node("files_no_share", "", counted(10, time.Hour)),
		}},
	}}
}

// TestPublished asks what the reference's own tests ask, and expects what they expect.
func TestPublished(t *testing.T) {
	s := serve(t, rls.Options{}, published())
	want := func(got *ratelimitv3.RateLimitResponse, want string) {
		t.Helper()
		if brief(got) != want {
			t.Errorf("got %s, want %s", brief(got), want)
		}
	}
	want(s.ask("foo", asked("hello", "world")), "ok ok(0)")
	want(s.ask("basic", asked("key1", "foo")), "ok ok(49 of 50/SECOND, 1s)")
	for i := range 25 {
		got := s.ask("another", asked("key2", "random"))
		if left := 19 - i; left >= 0 && got.GetStatuses()[0].GetLimitRemaining() != uint32(left) || (left < 0) != (word(got.GetOverallCode()) == "over") {
			t.Fatalf("call %d of 20: %s", i+1, brief(got))
		}
	}
	for i := range 15 {
		got := s.ask("another", asked("key2", "r"), asked("key3", "r"))
		if i < 10 && word(got.GetOverallCode()) != "ok" || got.GetStatuses()[0].GetLimitRemaining() != uint32(19-i) {
			t.Fatalf("call %d of 10: %s", i+1, brief(got))
		}
		if i >= 10 {
			want(got, "over ok("+strconv.Itoa(19-i)+" of 20/MINUTE, 50s) over(0 of 10/HOUR, 46m50s)")
		}
	}
	want(s.ask("another", asked("key4", "durTest")), "ok ok(19 of 20/DAY, 1h46m50s)")
	s.now = s.now.Add(2 * time.Second)
	want(s.ask("another", asked("key4", "durTest")), "ok ok(18 of 20/DAY, 1h46m48s)")
	for range 10 {
		s.ask("share-threshold-test", asked("files", "files/a.pdf"))
	}
	want(s.ask("share-threshold-test", asked("files", "files/b.csv")), "over over(0 of 10/HOUR, 46m48s)")
	for i := range 10 {
		want(s.ask("share-threshold-test", asked("files_no_share", "f"+strconv.Itoa(i))), "ok ok(9 of 10/HOUR, 46m48s)")
	}
}

// step is one call of a story, and its answer in brief.
type step struct {
	why  string
	ask  []*commonv3.RateLimitDescriptor
	want string
}

func (s *subject) tell(domain string, steps []step) {
	s.t.Helper()
	for _, one := range steps {
		if got := brief(s.ask(domain, one.ask...)); got != one.want {
			s.t.Errorf("%s: got %s, want %s", one.why, got, one.want)
		}
	}
}

func descriptors(d ...*commonv3.RateLimitDescriptor) []*commonv3.RateLimitDescriptor { return d }

// TestCounting is the story of one limit of 5 a minute: Envoy's service counts first, and compares
// then.
func TestCounting(t *testing.T) {
	key := func() *commonv3.RateLimitDescriptor { return asked("k", "v") }
	s := serve(t, rls.Options{}, guard.Config{Domains: []guard.Domain{{
		Name: "d", Descriptors: []guard.Descriptor{node("k", "", counted(5, time.Minute)), node("none", "", counted(0, time.Minute))},
	}}})
	s.tell("d", []step{
		{"0 hits look and count nothing", descriptors(hits(0, key())), "ok ok(5 of 5/MINUTE, 50s)"},
		{"4 of 5", descriptors(hits(4, key())), "ok ok(1 of 5/MINUTE, 50s)"},
		{"2 hits with 1 left are over, and are counted", descriptors(hits(2, key())), "over over(0 of 5/MINUTE, 50s)"},
		{"so 0 hits are over", descriptors(hits(0, key())), "over over(0 of 5/MINUTE, 50s)"},
		{"one more", descriptors(key()), "over over(0 of 5/MINUTE, 50s)"},
		{"another value has its own count", descriptors(asked("k", "w")), "ok ok(4 of 5/MINUTE, 50s)"},
		{"more than the limit at once is over", descriptors(hits(6, asked("k", "x"))), "over over(0 of 5/MINUTE, 50s)"},
		{"and is counted", descriptors(hits(0, asked("k", "x"))), "over over(0 of 5/MINUTE, 50s)"},
		{"the most that can be counted", descriptors(hits(headgate.MaxUnits, asked("k", "y"))), "over over(0 of 5/MINUTE, 50s)"},
		{"stays counted", descriptors(hits(headgate.MaxUnits, asked("k", "y"))), "over over(0 of 5/MINUTE, 50s)"},
		{"a limit of 0 lets 0 hits pass", descriptors(hits(0, asked("none", "v"))), "ok ok(0 of 0/MINUTE, 50s)"},
		{"and refuses one", descriptors(asked("none", "v")), "over over(0 of 0/MINUTE, 50s)"},
		{
			"the same descriptor twice counts twice, in order", descriptors(hits(3, asked("k", "z")), hits(3, asked("k", "z"))),
			"over ok(2 of 5/MINUTE, 50s) over(0 of 5/MINUTE, 50s)",
		},
	})
	s.now = s.now.Add(50 * time.Second)
	s.tell("d", []step{{"the next window", descriptors(key()), "ok ok(4 of 5/MINUTE, 1m0s)"}})
}

// TestRefusals checks what can never be decided.
func TestRefusals(t *testing.T) {
	s := serve(t, rls.Options{}, published())
	many := make([]*commonv3.RateLimitDescriptor, 1001)
	for i := range many {
		many[i] = asked("k", "v")
	}
	sent := asked("key1", "v")
	sent.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}
	week := asked("key1", "v")
	week.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: typev3.RateLimitUnit(7)}
	years, none := asked("key1", "v"), asked("key1", "v")
	years.Limit, none.Limit = multiplied(1<<31, typev3.RateLimitUnit_YEAR), multiplied(0, typev3.RateLimitUnit_SECOND)
	for _, c := range []struct {
		why  string
		req  *ratelimitv3.RateLimitRequest
		want string
	}{
		{"no domain", &ratelimitv3.RateLimitRequest{Descriptors: descriptors(asked("k", "v"))}, "rate limit domain must not be empty"},
		{"no descriptors", &ratelimitv3.RateLimitRequest{Domain: "basic"}, "rate limit descriptor list must not be empty"},
		{"too many descriptors", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: many}, "there are 1001 descriptors: send at most 1000"},
		{"no entries", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(asked("k", "v"), asked())}, "descriptor 1 has 0 entries: send 1 to 32"},
		{"too many entries", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(asked(make([]string, 66)...))}, "descriptor 0 has 33 entries: send 1 to 32"},
		{"an empty key", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(asked("k", "v", "", "v"))}, "descriptor 0, entry 1: the key is empty: send a key"},
		{"a long value", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(asked("k", strings.Repeat("v", 4097)))}, "descriptor 0, entry 0: a key or value has 4097 bytes: send at most 4096"},
		{"too many hits", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(hits(1<<53, asked("key1", "v")))}, "descriptor 0: 9007199254740992 hits cannot be counted: send at most 9007199254740991"},
		{"the most hits of the protocol", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(hits(math.MaxUint64, asked("key1", "v")))}, "descriptor 0: 18446744073709551615 hits cannot be counted: send at most 9007199254740991"},
		{"a limit without a unit", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(sent)}, "descriptor 0: the unit of its limit is UNKNOWN: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR"},
		{"a limit with an unknown unit", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(week)}, "descriptor 0: the unit of its limit is 7: send SECOND, MINUTE, HOUR, DAY, MONTH or YEAR"},
		{"a multiplier of 0", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(none)}, "descriptor 0: the unit_multiplier of its limit is 0: send 1 to 31708800 for SECOND"},
		{"a multiplier beyond time", &ratelimitv3.RateLimitRequest{Domain: "basic", Descriptors: descriptors(years)}, "descriptor 0: the unit_multiplier of its limit is 2147483648: send 1 to 1 for YEAR"},
	} {
		t.Run(c.why, func(t *testing.T) {
			got, err := s.ShouldRateLimit(t.Context(), c.req)
			if got != nil || status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != c.want {
				t.Errorf("got %v, %v, want INVALID_ARGUMENT: %s", got, err, c.want)
			}
		})
	}
	if got := s.Faults().Service.Load(); got != 13 {
		t.Errorf("%d calls count as refused, want 13", got)
	}
}

// TestRulesDecide has a domain without a tree: the rules that name it, or descriptors, decide.
func TestRulesDecide(t *testing.T) {
	named := func(name string, m rule.Match, p headgate.Policy) guard.Rule {
		part, err := rule.ParsePart("descriptor:k")
		if err != nil {
			t.Fatal(err)
		}
		return guard.Rule{Rule: rule.Rule{Name: name, Match: m, Key: []rule.Part{part}}, Policies: []headgate.Policy{p}}
	}
	minute := func(a headgate.Algorithm, n int64) headgate.Policy {
		return headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: n, Per: time.Minute, Burst: n}}
	}
	s := serve(t, rls.Options{}, guard.Config{Rules: []guard.Rule{
		named("http", rule.Match{}, minute(headgate.TokenBucket, 1)),
		named("wide", rule.Match{Domain: "d"}, minute(headgate.TokenBucket, 3)),
		named("narrow", rule.Match{Descriptors: map[string]string{"k": "a"}}, minute(headgate.TokenBucket, 2)),
		named("slow", rule.Match{Domain: "waits"}, minute(headgate.LeakyBucket, 3)),
	}})
	s.tell("d", []step{
		{"both rules, the closer one is shown", descriptors(asked("k", "a")), "ok ok(1 of 2/MINUTE, 30s)"},
		{"one rule", descriptors(asked("k", "b")), "ok ok(2 of 3/MINUTE, 20s)"},
		{"each descriptor is a request", descriptors(asked("k", "a"), asked("k", "a")), "over ok(0 of 2/MINUTE, 1m0s) over(0 of 2/MINUTE, 1m0s)"},
		{"0 hits count nothing", descriptors(hits(0, asked("k", "b"))), "ok ok(2 of 3/MINUTE, 20s)"},
	})
	s.tell("other", []step{{"no rule names the domain or the entry", descriptors(asked("k", "b")), "ok ok(0)"}})
	s.tell("waits", []step{
		{"departs at once", descriptors(asked("k", "b")), "ok ok(2 of 3/MINUTE, 20s)"},
		{"would wait", descriptors(asked("k", "b")), "over over(0 of 3/MINUTE, 20s)"},
		{"and has not booked", descriptors(asked("k", "b")), "over over(0 of 3/MINUTE, 20s)"},
	})
}
