package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/limit/twin"
)

// calendarLimit gives a policy of a unit of the calendar.
func calendarLimit(count int64, unit headgate.CalendarUnit) headgate.Policy {
	return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Calendar: unit}}
}

// zones are settings whose windows begin at other times.
func zones() []calendar.Settings {
	return []calendar.Settings{
		calendar.Default(),
		{Zone: time.FixedZone("east", 9*3600), WeekStarts: time.Monday, MonthStarts: 1},
		{Zone: time.FixedZone("west", -11*3600), WeekStarts: time.Sunday, MonthStarts: 31},
		{Zone: time.UTC, WeekStarts: time.Thursday, MonthStarts: 12},
	}
}

// testCalendar checks windows of the calendar.
func (s *suite) testCalendar(t *testing.T) {
	if s.without[headgate.FixedWindow] {
		return
	}
	for name, story := range map[string]func(b *bench){
		"a month":                     calendarMonth,
		"clocks of callers":           calendarCallers,
		"outside the edges":           func(b *bench) { calendarOutside(b, s.apart) },
		"outside, beside others":      calendarOutsideBesideOthers,
		"changed settings":            calendarChanged,
		"receipts":                    calendarReceipts,
		"beside a period of a length": calendarBeside,
		"forgotten":                   calendarForgotten,
		"a refused group":             calendarRefusedGroup,
		"after a long time":           calendarExpires,
	} {
		t.Run(name, func(t *testing.T) { story(s.bench(t)) })
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("trace %d", seed), func(t *testing.T) { calendarTrace(s.bench(t), seed) })
	}
}

// edgesOf gives the edges of a caller whose clock is ahead of the store's by skew.
func (b *bench) edgesOf(s calendar.Settings, unit headgate.CalendarUnit, skew time.Duration) *headgate.Edges {
	e := s.Edges(unit, b.clock.Now().Add(skew).Time())
	return &e
}

// wantDecision checks the verdict, the remaining units, and when the count ends.
func (b *bench) wantDecision(what string, d headgate.Decision, verdict headgate.Verdict, left int64, ends headgate.Instant) {
	b.t.Helper()
	end := b.clock.Now().Add(max(d.RetryAfter, d.ResetAfter))
	if d.Verdict != verdict || d.Remaining != left || end != ends || d.At != b.clock.Now() {
		b.t.Errorf("%s: %s with %d left, until %s, at %s; want %s with %d left, until %s, at %s", what, d.Verdict, d.Remaining,
			end.Time(), d.At.Time(), verdict, left, ends.Time(), b.clock.Now().Time())
	}
}

// calendarMonth uses up a month, in groups and alone, and begins the next one.
func calendarMonth(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Month)), calendar.Default()
	e := b.edgesOf(utc, headgate.Month, 0)
	op := headgate.Op{Key: "k", Policy: id, Cost: 3, Edges: e}
	b.wantDecision("the first 3", b.apply(op)[0], headgate.Allow, 2, e[2])
	two := op
	two.Window, two.Cost = 1, 2
	op.Cost = 2
	all := b.apply(op, two)
	b.wantDecision("2 more, in a group", all[0], headgate.Allow, 0, e[2])
	b.wantDecision("another window of the key", all[1], headgate.Allow, 3, e[2])
	all = b.apply(op, two)
	b.wantDecision("2 too much", all[0], headgate.Deny, 0, e[2])
	b.wantDecision("the other op of the refused group", all[1], headgate.Allow, 3, e[2])
	b.clock.Advance(e[2].Sub(b.clock.Now()))
	next := b.edgesOf(utc, headgate.Month, 0)
	op.Edges, op.Cost = next, 5
	b.wantDecision("the next month", b.apply(op)[0], headgate.Allow, 0, next[2])
	peek := op
	peek.Kind, peek.Cost = headgate.Peek, 1
	b.wantDecision("a peek", b.apply(peek)[0], headgate.Deny, 0, next[2])
	refund := op
	refund.Kind, refund.Cost = headgate.Refund, 4
	given := b.apply(refund)[0]
	b.wantDecision("a refund", given, headgate.Allow, 4, next[2])
	if given.Receipt != (headgate.Receipt{Cost: 4}) {
		b.t.Errorf("the refund has the receipt %+v, want the cost 4 alone", given.Receipt)
	}
}

// calendarCallers has callers whose clocks differ by 30 s from the store's, around an edge.
func calendarCallers(b *bench) {
	id, utc := b.prepare(calendarLimit(4, headgate.Day)), calendar.Default()
	e := b.edgesOf(utc, headgate.Day, 0)
	b.clock.Advance(e[2].Sub(b.clock.Now()) - 10*time.Second)
	take := func(skew time.Duration) headgate.Decision {
		return b.apply(headgate.Op{Key: "k", Policy: id, Cost: 1, Edges: b.edgesOf(utc, headgate.Day, skew)})[0]
	}
	for left, skew := range []time.Duration{30 * time.Second, -30 * time.Second, 0} {
		b.wantDecision("before midnight, by a clock "+skew.String(), take(skew), headgate.Allow, int64(3-left), e[2])
	}
	b.clock.Advance(20 * time.Second)
	for left, skew := range []time.Duration{-30 * time.Second, 30 * time.Second, 0} {
		b.wantDecision("after midnight, by a clock "+skew.String(), take(skew), headgate.Allow, int64(3-left), e[3])
	}
}

// calendarOutside: without a window for the time of the store, nothing is counted, except for
// other keys of a group on other servers.
func calendarOutside(b *bench, apart bool) {
	id, utc := b.prepare(calendarLimit(5, headgate.Day)), calendar.Default()
	other := b.prepare(policy(headgate.FixedWindow, headgate.Limit{Count: 5, Per: time.Hour}))
	op := headgate.Op{Key: "k", Policy: id, Cost: 1, Edges: b.edgesOf(utc, headgate.Day, 0)}
	b.apply(op)
	plain := headgate.Op{Key: "other", Policy: other, Cost: 1}
	for what, skew := range map[string]time.Duration{"early": 72 * time.Hour, "late": -72 * time.Hour} {
		bad := op
		bad.Edges = b.edgesOf(utc, headgate.Day, skew)
		for _, ops := range [][]headgate.Op{{bad}, {plain, bad}, {bad, plain}} {
			ds := make([]headgate.Decision, len(ops))
			err := b.store.Apply(context.Background(), ops, ds)
			var edge *headgate.EdgeError
			if !errors.As(err, &edge) || edge.At != b.clock.Now() || edge.Edges != *bad.Edges || ds[0] != headgate.Undecided() {
				b.t.Errorf("%d ops, of a caller whose clock makes the store's %s: %+v, %v", len(ops), what, ds, err)
			}
		}
	}
	for _, bad := range []*headgate.Edges{nil, {}, {4, 3, 2, 1}} {
		op.Edges = bad
		err := b.store.Apply(context.Background(), []headgate.Op{op}, make([]headgate.Decision, 1))
		if !errors.Is(err, headgate.ErrNoEdges) {
			b.t.Errorf("edges %v: %v, want ErrNoEdges", bad, err)
		}
	}
	if !apart {
		b.wantRemaining("the other key", "other", other, 5)
	}
	op.Edges, op.Kind = b.edgesOf(utc, headgate.Day, 0), headgate.Peek
	if d := b.apply(op)[0]; d.Remaining != 3 {
		b.t.Errorf("after the errors, a peek of 1 leaves %d, want 3", d.Remaining)
	}
}

// calendarOutsideBesideOthers: groups without a window outside of the edges are decided beside others. The others count nothing, so
// a caller that sends them again without these windows counts nothing twice.
func calendarOutsideBesideOthers(b *bench) {
	outside := b.edgesOf(calendar.Default(), headgate.Day, 72*time.Hour)
	id, hour := b.prepare(calendarLimit(5, headgate.Day)), b.prepare(policy(headgate.FixedWindow, headgate.Limit{Count: 5, Per: time.Hour}))
	second := b.prepare(policy(headgate.FixedWindow, headgate.Limit{Count: 5, Per: time.Second}))
	for what, keys := range map[string][]string{
		"other keys": {"a", "b", "c", "d", "e", "f"}, "shared keys": {"g", "h", "i", "g", "h", "i"},
	} {
		at := func(group uint8, key int, id headgate.PolicyID) headgate.Op {
			return headgate.Op{Key: keys[key], Policy: id, Group: group, Cost: 1}
		}
		late := func(group uint8, key int) headgate.Op {
			return headgate.Op{Key: keys[key], Policy: id, Window: 1, Group: group, Cost: 1, Edges: outside}
		}
		ops := []headgate.Op{
			at(0, 0, hour), late(1, 0), at(2, 1, hour), at(3, 2, hour), late(3, 1), late(4, 2),
			at(5, 3, hour), late(5, 2), at(5, 4, second), at(6, 5, hour),
		}
		ds := make([]headgate.Decision, len(ops))
		err := b.store.Apply(context.Background(), ops, ds)
		if edge := new(headgate.EdgeError); !errors.As(err, &edge) {
			b.t.Fatalf("%s: %v, want an EdgeError", what, err)
		}
		var again []headgate.Op
		for i, op := range ops {
			if decided := op.Group == 0 || op.Group == 2 || op.Group == 6; decided != (ds[i] != headgate.Undecided()) {
				b.t.Errorf("%s: Op %d is %+v; decided: want %t", what, i, ds[i], decided)
			}
			if ds[i] == headgate.Undecided() && op.Edges == nil {
				again = append(again, op)
			}
		}
		b.apply(again...)
		used := map[string]int64{}
		for _, op := range ops {
			if op.Policy == hour {
				used[op.Key]++
			}
		}
		for key, n := range used {
			b.wantRemaining(what+": "+key, key, hour, 5-n)
		}
		peek := headgate.Op{Key: keys[0], Policy: id, Window: 1, Kind: headgate.Peek, Edges: b.edgesOf(calendar.Default(), headgate.Day, 0)}
		if d := b.apply(peek)[0]; d.Remaining != 5 {
			b.t.Errorf("%s: the day has %d left, want 5", what, d.Remaining)
		}
	}
}

// calendarChanged changes the zone in the middle of a month, and back.
func calendarChanged(b *bench) {
	id := b.prepare(calendarLimit(5, headgate.Month))
	at := zones()
	take := func(s calendar.Settings, cost int64) (headgate.Decision, *headgate.Edges) {
		e := b.edgesOf(s, headgate.Month, 0)
		return b.apply(headgate.Op{Key: "k", Policy: id, Cost: cost, Edges: e})[0], e
	}
	d, e := take(at[0], 3)
	b.wantDecision("3 in UTC", d, headgate.Allow, 2, e[2])
	d, e = take(at[1], 2)
	b.wantDecision("2 in the east", d, headgate.Allow, 0, e[2])
	b.clock.Advance(e[2].Sub(b.clock.Now()))
	d, e = take(at[1], 4)
	b.wantDecision("the next month, which begins in the east", d, headgate.Allow, 1, e[2])
	d, e = take(at[0], 1)
	b.wantDecision("the old month of UTC has 9 units", d, headgate.Deny, 0, e[2])
	if d.Carried {
		b.t.Error("the decision says that units can be from before the month, and both counts began in it")
	}
	b.clock.Advance(e[2].Sub(b.clock.Now()))
	d, e = take(at[0], 5)
	b.wantDecision("the next month, which begins in UTC", d, headgate.Allow, 0, e[2])
	d, e = take(at[1], 1)
	b.wantDecision("the month of the east has 9 units", d, headgate.Deny, 0, e[2])
}

// calendarReceipts returns units to their own window only.
func calendarReceipts(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Week)), calendar.Default()
	op := headgate.Op{Key: "k", Policy: id, Cost: 3, Edges: b.edgesOf(utc, headgate.Week, 0)}
	first := b.apply(op)[0].Receipt
	op.Cost = 2
	second := b.apply(op)[0].Receipt
	b.giveBack(first, first)
	peek := op
	peek.Kind, peek.Cost = headgate.Peek, 0
	if d := b.apply(peek)[0]; d.Remaining != 3 {
		b.t.Errorf("after a return of 3 of 5, %d remain, want 3", d.Remaining)
	}
	b.clock.Advance(op.Edges[2].Sub(b.clock.Now()))
	op.Edges, peek.Edges = b.edgesOf(utc, headgate.Week, 0), b.edgesOf(utc, headgate.Week, 0)
	b.apply(op)
	b.giveBack(second)
	if d := b.apply(peek)[0]; d.Remaining != 3 {
		b.t.Errorf("after a return to a week that is over, %d remain, want 3", d.Remaining)
	}
}

// calendarBeside: a day of the calendar and one of 24 hours count separately, and so do units.
func calendarBeside(b *bench) {
	day, week := b.prepare(calendarLimit(5, headgate.Day)), b.prepare(calendarLimit(9, headgate.Week))
	hours := b.prepare(policy(headgate.FixedWindow, headgate.Limit{Count: 5, Per: 24 * time.Hour}))
	utc := calendar.Default()
	b.take("k", hours, 4)
	b.apply(headgate.Op{Key: "k", Policy: day, Cost: 3, Edges: b.edgesOf(utc, headgate.Day, 0)})
	d := b.apply(headgate.Op{Key: "k", Policy: week, Cost: 2, Edges: b.edgesOf(utc, headgate.Week, 0)})[0]
	if d.Remaining != 7 {
		b.t.Errorf("the week has %d left, want 7", d.Remaining)
	}
	b.wantRemaining("24 hours", "k", hours, 1)
}

// calendarForgotten: Forget begins a new count, and voids receipts.
func calendarForgotten(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Year)), calendar.Default()
	op := headgate.Op{Key: "k", Policy: id, Cost: 5, Edges: b.edgesOf(utc, headgate.Year, 0)}
	r := b.apply(op)[0].Receipt
	if err := b.store.Forget(context.Background(), []headgate.Op{op}); err != nil {
		b.t.Fatal(err)
	}
	op.Cost = 2
	d := b.apply(op)[0]
	b.giveBack(r)
	op.Kind, op.Cost = headgate.Peek, 0
	if left := b.apply(op)[0].Remaining; d.Remaining != 3 || left != 3 {
		b.t.Errorf("after Forget %d remain, and after an old receipt %d, want 3", d.Remaining, left)
	}
}

// calendarRefusedGroup: a refused group ends a count, and other settings still see it. Forget drops
// it.
func calendarRefusedGroup(b *bench) {
	id, first, late := b.prepare(calendarLimit(5, headgate.Month)), calendar.Default(), calendar.Default()
	late.MonthStarts = 20
	op := headgate.Op{Key: "k", Policy: id, Cost: 3, Edges: b.edgesOf(first, headgate.Month, 0)}
	b.until(time.October, 25, 0)
	op.Edges = b.edgesOf(first, headgate.Month, 0)
	b.apply(op)
	b.until(time.November, 2, 0)
	op.Edges, op.Cost = b.edgesOf(first, headgate.Month, 0), 1
	never := op
	never.Window, never.Cost = 1, 6
	all := b.apply(op, never)
	b.wantDecision("the op that passes alone", all[0], headgate.Allow, 5, b.clock.Now())
	peek := op
	peek.Kind, peek.Cost, peek.Edges = headgate.Peek, 3, b.edgesOf(late, headgate.Month, 0)
	b.wantDecision("in a month from the 20th", b.apply(peek)[0], headgate.Deny, 2, peek.Edges[2])
	b.wantDecision("1 in November", b.apply(op)[0], headgate.Allow, 4, op.Edges[2])
	b.wantDecision("in a month from the 20th, with both", b.apply(peek)[0], headgate.Deny, 1, peek.Edges[2])
	if err := b.store.Forget(context.Background(), []headgate.Op{op}); err != nil {
		b.t.Fatal(err)
	}
	peek.Cost = 5
	b.wantDecision("after Forget", b.apply(peek)[0], headgate.Allow, 0, peek.Edges[2])
}

// calendarExpires: a count is still there at the end of a long window, and is gone after it.
func calendarExpires(b *bench) {
	id, utc := b.prepare(calendarLimit(5, headgate.Year)), calendar.Default()
	e := b.edgesOf(utc, headgate.Year, 0)
	op := headgate.Op{Key: "k", Policy: id, Cost: 5, Edges: e}
	b.apply(op)
	b.clock.Advance(e[2].Sub(b.clock.Now()) - time.Second)
	op.Cost = 1
	b.wantDecision("a second before the new year", b.apply(op)[0], headgate.Deny, 0, e[2])
	b.clock.Advance(limit.LongestWindow(headgate.Year))
	op.Edges = b.edgesOf(utc, headgate.Year, 0)
	b.wantDecision("much later", b.apply(op)[0], headgate.Allow, 4, op.Edges[2])
}

// calendarTrace compares a random trace with the twin: two policies of one unit in turns, with
// changing settings and callers whose clocks differ.
func calendarTrace(b *bench, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 11))
	unit := headgate.Day + headgate.CalendarUnit(seed%4)
	policies := []headgate.Policy{calendarLimit(6, unit), calendarLimit(9, unit), calendarLimit(4, unit)}
	policies[1].CountRejected = true
	policies[2].CountRejected, policies[2].CountAll = true, true
	ids := make([]headgate.PolicyID, len(policies))
	for i := range policies {
		ids[i] = b.prepare(policies[i])
	}
	key, settings := twin.NewCalendar(policies[0]), zones()
	for step := range 120 {
		b.clock.Advance(time.Duration(r.Int64N(int64(limit.LongestWindow(unit)/8))) / 1000 * 1000)
		v, at := r.IntN(len(policies)), settings[r.IntN(len(settings))]
		skew := time.Duration(r.IntN(61)-30) * time.Second
		kind := []headgate.OpKind{headgate.Take, headgate.Take, headgate.Take, headgate.Peek, headgate.Refund}[r.IntN(5)]
		op := headgate.Op{Key: "k", Policy: ids[v], Cost: r.Int64N(4), Kind: kind, Edges: b.edgesOf(at, unit, skew)}
		got := b.apply(op)[0]
		key.Policy = policies[v]
		want := key.Do(op.Edges, b.clock.Now(), op.Cost, kind)
		if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining {
			b.t.Fatalf("step %d, %s, %s: cost %d of kind %d gives %s %s with %d left, the twin %+v", step, policies[v].Limit,
				b.clock.Now().Time(), op.Cost, kind, got.Verdict, got.Reason, got.Remaining, want)
		}
	}
}
