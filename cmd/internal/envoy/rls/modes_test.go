package rls_test

import (
	"strconv"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
)

// leaf is a limit with changed fields.
func leaf(l *guard.Leaf, change func(*guard.Leaf)) *guard.Leaf {
	change(l)
	return l
}

func inShadow(l *guard.Leaf) *guard.Leaf {
	return leaf(l, func(l *guard.Leaf) { l.Mode = guard.Shadow })
}

func inQuota(l *guard.Leaf) *guard.Leaf {
	return leaf(l, func(l *guard.Leaf) { l.QuotaMode = true })
}

func called(name string, l *guard.Leaf, replaces ...string) *guard.Leaf {
	return leaf(l, func(l *guard.Leaf) { l.Name, l.Replaces = name, replaces })
}

// multiplied is a limit of one request in some units.
func multiplied(n uint32, u typev3.RateLimitUnit) *commonv3.RateLimitDescriptor_RateLimitOverride {
	return &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: u, UnitMultiplier: wrapperspb.UInt32(n)}
}

// sent adds a limit to a descriptor.
func sent(n uint32, u typev3.RateLimitUnit, d *commonv3.RateLimitDescriptor) *commonv3.RateLimitDescriptor {
	d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: u}
	return d
}

func domain(level ...guard.Descriptor) guard.Config {
	return guard.Config{Domains: []guard.Domain{{Name: "d", Descriptors: level}}}
}

// TestModes tells a story for each setting of a limit.
func TestModes(t *testing.T) {
	minute := func(n int64) *guard.Leaf { return counted(n, time.Minute) }
	for name, c := range map[string]struct {
		options rls.Options
		config  guard.Config
		steps   []step
	}{
		"depth": {config: domain(node("k", "v", minute(5), node("l", "", minute(1)))), steps: []step{
			{"the first level", descriptors(asked("k", "v")), "ok ok(4 of 5/MINUTE, 50s)"},
			{"the second", descriptors(asked("k", "v", "l", "w")), "ok ok(0 of 1/MINUTE, 50s)"},
			{"is over", descriptors(asked("k", "v", "l", "w")), "over over(0 of 1/MINUTE, 50s)"},
			{"below the tree", descriptors(asked("k", "v", "l", "w", "m", "x")), "ok ok(0)"},
			{"beside the tree", descriptors(asked("k", "w")), "ok ok(0)"},
		}},
		"a node without a limit": {config: domain(node("k", "", nil, node("l", "", minute(1)))), steps: []step{
			{"allows", descriptors(asked("k", "v")), "ok ok(0)"},
			{"the level below", descriptors(asked("k", "v", "l", "w")), "ok ok(0 of 1/MINUTE, 50s)"},
		}},
		"unlimited": {config: domain(node("k", "", &guard.Leaf{Unlimited: true})), steps: []step{
			{"shows the greatest number", descriptors(asked("k", "v")), "ok ok(4294967295)"},
		}},
		"shadow": {config: domain(node("k", "", inShadow(minute(1)))), steps: []step{
			{"within", descriptors(asked("k", "v")), "ok ok(0 of 1/MINUTE, 50s)"},
			{"over, and allowed", descriptors(hits(3, asked("k", "v"))), "ok ok(0 of 1/MINUTE, 50s)"},
		}},
		"shadow of the service": {options: rls.Options{ShadowMode: true}, config: domain(node("k", "", minute(1))), steps: []step{
			{"within", descriptors(asked("k", "v")), "ok ok(0 of 1/MINUTE, 50s)"},
			{"only the status is over", descriptors(asked("k", "v")), "ok over(0 of 1/MINUTE, 50s)"},
		}},
		"quota": {config: domain(node("a", "", inQuota(minute(1))), node("b", "", inQuota(minute(2))), node("c", "", minute(3))), steps: []step{
			{"both pass", descriptors(asked("a", "1"), asked("b", "1")), "ok ok(0 of 1/MINUTE, 50s) ok(1 of 2/MINUTE, 50s)"},
			{"one still passes", descriptors(asked("a", "1"), asked("b", "1")), "ok ok(0 of 1/MINUTE, 50s) ok(0 of 2/MINUTE, 50s)"},
			{"none does", descriptors(asked("a", "1"), asked("b", "1")), "over over(0 of 1/MINUTE, 50s) over(0 of 2/MINUTE, 50s)"},
			{"a limit beside them does not help", descriptors(asked("a", "1"), asked("c", "1")), "over over(0 of 1/MINUTE, 50s) ok(2 of 3/MINUTE, 50s)"},
		}},
		"replaces": {config: domain(
			node("a", "", called("first", minute(1))), node("b", "", called("second", minute(3), "first")),
			node("c", "", leaf(&guard.Leaf{Unlimited: true}, func(l *guard.Leaf) { l.Replaces = []string{"first", "second"} })),
			node("d", "", called("free", &guard.Leaf{Unlimited: true})), node("e", "", called("paid", minute(3), "free")),
		), steps: []step{
			{"unlimited, and replaced in vain", descriptors(asked("d", "1"), asked("e", "1")), "ok ok(4294967295) ok(2 of 3/MINUTE paid, 50s)"},
			{"alone", descriptors(asked("a", "1")), "ok ok(0 of 1/MINUTE first, 50s)"},
			{"replaced: not counted, not shown", descriptors(asked("a", "1"), asked("b", "1")), "ok ok(0) ok(2 of 3/MINUTE second, 50s)"},
			{"an unlimited one replaces two", descriptors(asked("a", "1"), asked("b", "1"), asked("c", "1")), "ok ok(0) ok(0) ok(4294967295)"}, //nolint:dupword // two statuses
			{"alone again", descriptors(asked("a", "1")), "over over(0 of 1/MINUTE first, 50s)"},
		}},
		"quota mode of the service": {options: rls.Options{QuotaMode: true}, config: domain(node("a", "", minute(1))), steps: []step{
			{"a sent limit that is over is one of two quotas", descriptors(sent(0, typev3.RateLimitUnit_MINUTE, asked("b", "1")), asked("a", "1")), "ok ok(0 of 0/MINUTE, 50s) ok(0 of 1/MINUTE, 50s)"},
		}},
		"stop increment": {options: rls.Options{StopIncrement: true}, config: domain(node("a", "", minute(5)), node("b", "", minute(1))), steps: []step{
			{"both pass", descriptors(asked("a", "1"), asked("b", "1")), "ok ok(4 of 5/MINUTE, 50s) ok(0 of 1/MINUTE, 50s)"},
			{"one is over: the other is not counted", descriptors(asked("a", "1"), asked("b", "1")), "over ok(4 of 5/MINUTE, 50s) over(0 of 1/MINUTE, 50s)"},
			{"a descriptor twice", descriptors(hits(2, asked("a", "1")), hits(1, asked("a", "1"))), "ok ok(2 of 5/MINUTE, 50s) ok(1 of 5/MINUTE, 50s)"},
			{"twice, and the second is over", descriptors(asked("a", "1"), asked("a", "1")), "over ok(0 of 5/MINUTE, 50s) over(0 of 5/MINUTE, 50s)"},
		}},
		"other periods": {config: domain(
			node("a", "", counted(20, 90*time.Second)), node("b", "", called("named", counted(20, 90*time.Second))),
			node("c", "", counted(20, 7*day)), node("d", "", counted(20, 30*day)), node("e", "", counted(20, 365*day)),
			node("f", "", counted(1<<40, time.Minute)),
		), steps: []step{
			{"no unit", descriptors(asked("a", "1")), "ok ok(19 of 20/UNKNOWN 20/90s, 20s)"},
			{"no unit, with a name", descriptors(asked("b", "1")), "ok ok(19 of 20/UNKNOWN named, 20s)"},
			{"a week begins on Thursday", descriptors(asked("c", "1")), "ok ok(19 of 20/WEEK, 25h46m50s)"},
			{"a month", descriptors(asked("d", "1")), "ok ok(19 of 20/MONTH, 97h46m50s)"},
			{"a year", descriptors(asked("e", "1")), "ok ok(19 of 20/YEAR, 817h46m50s)"},
			{"above 32 bits", descriptors(asked("f", "1")), "ok ok(4294967295 of 4294967295/MINUTE, 50s)"},
		}},
		"several limits": {config: domain(node("a", "", &guard.Leaf{Policies: []headgate.Policy{
			counted(2, time.Minute).Policies[0], counted(3, time.Hour).Policies[0],
		}})), steps: []step{
			{"the closest is shown", descriptors(asked("a", "1")), "ok ok(1 of 2/MINUTE, 50s)"},
			{"over the first", descriptors(hits(2, asked("a", "1"))), "over over(0 of 2/MINUTE, 50s)"},
			{"both counted", descriptors(asked("a", "1")), "over over(0 of 3/HOUR, 46m50s)"},
		}},
		"a bucket": {config: domain(node("a", "", &guard.Leaf{Policies: []headgate.Policy{{
			Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 60, Per: time.Minute, Burst: 2},
		}}})), steps: []step{
			{"one of the burst", descriptors(asked("a", "1")), "ok ok(1 of 60/MINUTE, 1s)"},
			{"the burst is used", descriptors(asked("a", "1")), "ok ok(0 of 60/MINUTE, 2s)"},
			{"over", descriptors(asked("a", "1")), "over over(0 of 60/MINUTE, 2s)"},
		}},
	} {
		t.Run(name, func(t *testing.T) { serve(t, c.options, c.config).tell("d", c.steps) })
	}
}

// TestSentLimits sends limits with descriptors. All limits of one period share the count of a key, so
// changing them in turns gains nothing.
func TestSentLimits(t *testing.T) {
	key := func() *commonv3.RateLimitDescriptor { return asked("k", "v") }
	c := domain(node("k", "v", counted(5, time.Minute)))
	c.MaxSentLimits = 2
	s := serve(t, rls.Options{}, c)
	m := typev3.RateLimitUnit_MINUTE
	thrice := key()
	thrice.Limit = multiplied(3, m)
	s.tell("d", []step{
		{"the tree's limit", descriptors(key()), "ok ok(4 of 5/MINUTE, 50s)"},
		{"a wider limit sees its count", descriptors(sent(10, m, key())), "ok ok(8 of 10/MINUTE, 50s)"},
		{"a narrower one too", descriptors(sent(2, m, key())), "over over(0 of 2/MINUTE, 50s)"},
		{"a third limit lets the first one go", descriptors(sent(7, m, key())), "ok ok(3 of 7/MINUTE, 50s)"},
		{"which comes back with the count", descriptors(sent(10, m, key())), "ok ok(5 of 10/MINUTE, 50s)"},
		{"another period has its own count", descriptors(sent(10, typev3.RateLimitUnit_HOUR, key())), "ok ok(9 of 10/HOUR, 46m50s)"},
		{"without a node", descriptors(sent(1, m, asked("free", "v"))), "ok ok(0 of 1/MINUTE, 50s)"},
		{"over", descriptors(sent(1, m, asked("free", "v"))), "over over(0 of 1/MINUTE, 50s)"},
		{"a multiplied unit", descriptors(thrice), "ok ok(0 of 1/UNKNOWN 1/3m, 1m50s)"},
		{"0 refuses", descriptors(sent(0, m, asked("free", "w"))), "over over(0 of 0/MINUTE, 50s)"},
	})
	if got := brief(s.ask("unknown", sent(1, m, key()))); got != "ok ok(0)" {
		t.Errorf("in an unknown domain, a sent limit gives %s, want ok ok(0)", got)
	}
}

// TestManySentLimits sends more limits than the store can keep at once.
func TestManySentLimits(t *testing.T) {
	if race.On { // It has one client, and 66,000 calls.
		return
	}
	s := serve(t, rls.Options{}, domain())
	for i := range uint32(headgateLimits) {
		d := sent(i+1, typev3.RateLimitUnit_MINUTE, asked("k", strconv.Itoa(int(i))))
		if _, err := s.ShouldRateLimit(t.Context(), request("d", d)); err != nil {
			if status.Code(err) != codes.ResourceExhausted || i < headgateLimits/2 {
				t.Fatalf("limit %d: %v, want RESOURCE_EXHAUSTED after at least half of the limits", i, err)
			}
			s.now = s.now.Add(2 * time.Minute)
			if _, err := s.ShouldRateLimit(t.Context(), request("d", d)); err != nil {
				t.Fatalf("after the windows have ended: %v", err)
			}
			return
		}
	}
	t.Fatal("the store kept more limits than it has ids for")
}

// headgateLimits is more than the different limits that a store can have.
const headgateLimits = 66_000

// TestRefund gives hits back.
func TestRefund(t *testing.T) {
	key := func() *commonv3.RateLimitDescriptor { return asked("k", "v") }
	s := serve(t, rls.Options{}, domain(node("k", "v", counted(5, time.Minute)), node("b", "", &guard.Leaf{
		Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 60, Per: time.Minute, Burst: 10}}},
	})))
	s.tell("d", []step{
		{"3 of 5", descriptors(hits(3, key())), "ok ok(2 of 5/MINUTE, 50s)"},
		{"1 back", descriptors(back(1, key())), "ok ok(3 of 5/MINUTE, 50s)"},
		{"never below 0", descriptors(back(9, key())), "ok ok(5 of 5/MINUTE, 50s)"},
		{"over", descriptors(hits(7, key())), "over over(0 of 5/MINUTE, 50s)"},
		{"1 back leaves 6", descriptors(back(1, key())), "ok ok(0 of 5/MINUTE, 50s)"},
		{"so one is over", descriptors(hits(0, key())), "over over(0 of 5/MINUTE, 50s)"},
		{"2 back and 1 in one request", descriptors(back(2, key()), key()), "ok ok(1 of 5/MINUTE, 50s) ok(0 of 5/MINUTE, 50s)"},
		{"a bucket", descriptors(hits(4, asked("b", "1"))), "ok ok(6 of 60/MINUTE, 4s)"},
		{"never above its burst", descriptors(back(9, asked("b", "1"))), "ok ok(10 of 60/MINUTE, 1s)"},
	})
	s.now = s.now.Add(time.Minute)
	s.tell("d", []step{{"another window has nothing to give back", descriptors(back(3, key())), "ok ok(5 of 5/MINUTE, 50s)"}})
}
