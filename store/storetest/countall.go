package storetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// countAll is the policy of testCountAll.
func countAll(count int64) headgate.Policy {
	return headgate.Policy{
		Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Per: time.Minute}, CountRejected: true, CountAll: true,
	}
}

// testCountAll: a policy with CountAll counts first, and refuses when the count exceeds the
// limit.
func (s *suite) testCountAll(t *testing.T) {
	if s.without[headgate.FixedWindow] {
		return
	}
	for _, row := range countAllRows() {
		t.Run(row.name, func(t *testing.T) { row.check(s.bench(t)) })
	}
	for name, story := range map[string]func(b *bench){
		"a clock that steps back": countAllClockBack,
		"groups":                  countAllGroups,
		"saturation":              countAllSaturates,
	} {
		t.Run(name, func(t *testing.T) { story(s.bench(t)) })
	}
}

// countAllRow is a last attempt, at second 20, after earlier attempts.
type countAllRow struct {
	name          string
	count         int64
	costs         []int64
	cost          int64
	reason        headgate.Reason
	remaining     int64
	retry, resets bool
}

func countAllRows() []countAllRow {
	return []countAllRow{
		{"at the limit", 10, []int64{9}, 1, headgate.WithinLimit, 0, false, true},
		{"above the limit", 10, []int64{9}, 2, headgate.OverLimit, 1, true, true},
		{"above the limit at once", 10, nil, 11, headgate.Never, 10, false, true},
		{"nothing at the limit", 10, []int64{10}, 0, headgate.WithinLimit, 0, false, true},
		{"nothing above the limit", 10, []int64{10, 1}, 0, headgate.OverLimit, 0, true, true},
		{"nothing after too much at once", 10, []int64{11}, 0, headgate.OverLimit, 0, true, true},
		{"one after too much at once", 10, []int64{11}, 1, headgate.OverLimit, 0, true, true},
		{"nothing of a new key", 10, nil, 0, headgate.WithinLimit, 10, false, false},
		{"nothing of a limit of 0", 0, nil, 0, headgate.WithinLimit, 0, false, false},
		{"one of a limit of 0", 0, nil, 1, headgate.Never, 0, false, true},
		{"nothing above a limit of 0", 0, []int64{1}, 0, headgate.OverLimit, 0, true, true},
		{"the greatest limit", headgate.MaxUnits, []int64{headgate.MaxUnits}, 1, headgate.OverLimit, 0, true, true},
		{"the greatest cost", headgate.MaxUnits, nil, headgate.MaxUnits, headgate.WithinLimit, 0, false, true},
	}
}

// check makes the last attempt as Peek, and then as Take.
func (r *countAllRow) check(b *bench) {
	b.t.Helper()
	id := b.prepare(countAll(r.count))
	b.clock.Advance(20 * time.Second)
	for _, cost := range r.costs {
		b.take("k", id, cost)
	}
	want := headgate.Decision{Reason: r.reason, Limit: r.count, Remaining: r.remaining, At: b.clock.Now()}
	if r.reason != headgate.WithinLimit {
		want.Verdict = headgate.Deny
	}
	if r.retry {
		want.RetryAfter = 40 * time.Second
	}
	if r.resets {
		want.ResetAfter = 40 * time.Second
	}
	for _, kind := range []headgate.OpKind{headgate.Peek, headgate.Take} {
		got := b.apply(headgate.Op{Key: "k", Policy: id, Cost: r.cost, Kind: kind})[0]
		if empty := kind == headgate.Peek || r.reason != headgate.WithinLimit || r.cost == 0; got.Receipt.Empty() != empty {
			b.t.Errorf("kind %d: the receipt is %+v, want an empty one: %v", kind, got.Receipt, empty)
		}
		got.Receipt = headgate.Receipt{}
		if got != want {
			b.t.Errorf("kind %d:\n got %+v\nwant %+v", kind, got, want)
		}
	}
}

// countAllClockBack: the clock steps back into the window before. The count stays, and the
// times of the decision are from now.
func countAllClockBack(b *bench) {
	id := b.prepare(countAll(10))
	b.clock.Advance(50 * time.Second)
	b.take("k", id, 11)
	b.clock.Advance(-55 * time.Second)
	got := b.take("k", id, 0)
	want := headgate.Decision{
		Verdict: headgate.Deny, Reason: headgate.OverLimit, Limit: 10,
		RetryAfter: 65 * time.Second, ResetAfter: 65 * time.Second, At: Start,
	}
	if got != want {
		b.t.Errorf("5 s before the window:\n got %+v\nwant %+v", got, want)
	}
	b.clock.Advance(65 * time.Second)
	b.wantRemaining("in the next window", "k", id, 10)
	b.wantReason("nothing in the next window", b.take("k", id, 0), headgate.WithinLimit)
}

// countAllGroups: an Op with CountAll counts, whatever the other Ops of its group say. An Op
// that only counts refused attempts does not count when another Op can never pass.
func countAllGroups(b *bench) {
	all := b.prepare(countAll(10))
	plain := countAll(10)
	plain.CountAll = false
	rejected := b.prepare(plain)
	for i, c := range []struct {
		costAll, costRejected int64
		leftAll, leftRejected int64
	}{
		{11, 1, 0, 10}, // The Op with CountAll can never pass.
		{1, 11, 9, 10}, // The other Op can never pass.
		{1, 1, 9, 9},
		{11, 11, 0, 10},
	} {
		key := string(rune('a' + i))
		b.apply(headgate.Op{Key: key + "1", Policy: all, Cost: c.costAll},
			headgate.Op{Key: key + "2", Policy: rejected, Cost: c.costRejected})
		b.wantRemaining("under CountAll", key+"1", all, c.leftAll)
		b.wantRemaining("under CountRejected", key+"2", rejected, c.leftRejected)
	}
	b.take("full", rejected, 10)
	got := b.apply(headgate.Op{Key: "free", Policy: all, Cost: 3}, headgate.Op{Key: "full", Policy: rejected, Cost: 3})
	if got[0].Verdict != headgate.Allow || got[0].Remaining != 7 || !got[0].Receipt.Empty() {
		b.t.Errorf("an Op that passes and counts in a refused group: %+v, want 7 remaining", got[0])
	}
}

// testCountAllVersions: a version with CountAll and one that counts no refused attempts.
func (s *suite) testCountAllVersions(t *testing.T) {
	if !s.without[headgate.FixedWindow] && !s.missing("CountAllVersions", headgate.FixedWindow) {
		countAllVersions(s.bench(t))
	}
}

// countAllVersions: two versions take turns. Each judges the shared count in its own terms.
func countAllVersions(b *bench) {
	small, large := countAll(5), countAll(20)
	large.CountAll, large.CountRejected = false, false
	first, second := b.prepare(small), b.prepare(large)
	b.take("k", first, 4)
	b.wantReason("3 of 5 more", b.take("k", first, 3), headgate.OverLimit)
	b.wantRemaining("7 are counted", "k", second, 13)
	b.wantReason("14 of 20 more", b.take("k", second, 14), headgate.OverLimit)
	b.wantRemaining("a refusal that does not count", "k", second, 13)
	b.wantReason("nothing, above 5", b.take("k", first, 0), headgate.OverLimit)
	b.wantReason("nothing, below 20", b.take("k", second, 0), headgate.WithinLimit)
	b.wantReason("100 at once", b.take("k", first, 100), headgate.Never)
	b.wantReason("one of 20", b.take("k", second, 1), headgate.OverLimit)
	b.wantReason("nothing, without CountAll", b.take("k", second, 0), headgate.WithinLimit)
}

// countAllSaturates: counts stop at MaxUnits, exactly.
func countAllSaturates(b *bench) {
	id := b.prepare(countAll(10))
	for range 3 {
		b.wantReason("the greatest cost", b.take("k", id, headgate.MaxUnits), headgate.Never)
	}
	refund := headgate.Op{Key: "k", Policy: id, Cost: headgate.MaxUnits - 5, Kind: headgate.Refund}
	if d := b.apply(refund)[0]; d.Remaining != 5 {
		b.t.Errorf("after a refund of all but 5 of MaxUnits, %d of 10 remain, want 5", d.Remaining)
	}
	b.take("k", id, headgate.MaxUnits-6)
	refund.Cost = headgate.MaxUnits - 2
	if d := b.apply(refund)[0]; d.Remaining != 9 {
		b.t.Errorf("after a refund of all but 1 of MaxUnits - 1, %d of 10 remain, want 9", d.Remaining)
	}
}
