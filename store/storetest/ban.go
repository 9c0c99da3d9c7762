package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// banAfter is a ban of length banFor after count attempts within ten seconds.
func banAfter(count int64, banFor time.Duration) headgate.Policy {
	return headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: count, Per: 10 * time.Second}, BanFor: banFor}
}

// banned bans for half a minute after three attempts.
func banned() headgate.Policy { return banAfter(3, 30*time.Second) }

// testBan: every attempt counts, allowed or refused. Too many attempts set a ban.
func (s *suite) testBan(t *testing.T) {
	for name, story := range map[string]func(b *bench){
		"Alone": banAlone, "Costs": banCosts, "Looks": banLooks, "ClockBack": banClockBack,
		"LimitChanged": banLimitChanged, "TwoVersions": banTwoVersions, "Concurrency": banConcurrency,
	} {
		t.Run(name, func(t *testing.T) { story(s.bench(t)) })
	}
	for name, story := range map[string]func(b *bench, p headgate.Policy, id headgate.PolicyID){
		"Refusing": banRefusesAGroup, "Refused": banInARefusedGroup,
	} {
		t.Run(name, func(t *testing.T) { s.each(t, headgate.Limit{Count: 4, Per: time.Hour}, story) })
	}
}

// wantBan checks that a key is banned, and when the ban ends.
func (b *bench) wantBan(what string, d headgate.Decision, retry time.Duration) {
	b.t.Helper()
	if d.Verdict != headgate.Deny || d.Reason != headgate.Banned || d.Remaining != 0 || d.RetryAfter != retry || d.ResetAfter != retry {
		b.t.Errorf("%s: %v %v remaining %d retry %v reset %v, want a ban for %v",
			what, d.Verdict, d.Reason, d.Remaining, d.RetryAfter, d.ResetAfter, retry)
	}
	if !d.Receipt.Empty() {
		b.t.Errorf("%s: the attempt has the receipt %+v", what, d.Receipt)
	}
}

// wantFree checks that a key is not banned, and its remaining attempts.
func (b *bench) wantFree(what string, d headgate.Decision, remaining int64, reset time.Duration) {
	b.t.Helper()
	passes := d.Verdict == headgate.Allow && d.Reason == headgate.WithinLimit && d.RetryAfter == 0
	if !passes || d.Remaining != remaining || d.ResetAfter != reset {
		b.t.Errorf("%s: %v %v remaining %d retry %v reset %v, want %d for %v",
			what, d.Verdict, d.Reason, d.Remaining, d.RetryAfter, d.ResetAfter, remaining, reset)
	}
	if !d.Receipt.Empty() {
		b.t.Errorf("%s: the attempt has the receipt %+v", what, d.Receipt)
	}
}

func banAlone(b *bench) {
	id := b.prepare(banned())
	b.wantFree("a first attempt", b.take("k", id, 1), 2, 10*time.Second)
	b.clock.Advance(4 * time.Second)
	b.wantFree("a second and third", b.take("k", id, 2), 0, 6*time.Second)
	b.wantBan("a fourth", b.take("k", id, 1), 36*time.Second)
	b.wantFree("another key", b.take("l", id, 1), 2, 10*time.Second)
	b.clock.Advance(6 * time.Second)
	b.wantBan("the window is over", b.take("k", id, 1), 30*time.Second)
	b.clock.Advance(30*time.Second - time.Microsecond)
	b.wantBan("an attempt just before the end", b.take("k", id, 1), time.Microsecond)
	b.clock.Advance(time.Microsecond)
	b.wantFree("the ban is over", b.take("k", id, 1), 2, 10*time.Second)
	b.clock.Advance(10 * time.Second)
	b.wantFree("the next window is over too", b.take("k", id, 3), 0, 10*time.Second)
}

func banCosts(b *bench) {
	id := b.prepare(banned())
	b.wantFree("nothing asked", b.take("k", id, 0), 3, 0)
	b.wantBan("more than the count at once", b.take("k", id, 4), 40*time.Second)
	b.wantBan("cost 0 under a ban", b.take("k", id, 0), 40*time.Second)
	for range 3 {
		b.wantBan("the greatest cost", b.take("m", id, headgate.MaxUnits), 40*time.Second)
	}
	none := b.prepare(banAfter(0, 30*time.Second))
	b.wantFree("cost 0 under a count of 0", b.take("n", none, 0), 0, 0)
	b.wantBan("a first attempt under a count of 0", b.take("n", none, 1), 40*time.Second)
}

func banLooks(b *bench) {
	id := b.prepare(banned())
	look := func(cost int64) headgate.Decision {
		return b.apply(headgate.Op{Key: "k", Policy: id, Cost: cost, Kind: headgate.Peek})[0]
	}
	for range 5 {
		b.wantFree("a Peek at a new key", look(1), 2, 10*time.Second)
		b.wantBan("a Peek above the count", look(4), 40*time.Second)
	}
	b.wantFree("taken", b.take("k", id, 2), 1, 10*time.Second)
	for range 5 {
		b.wantFree("a Peek at the third attempt", look(1), 0, 10*time.Second)
	}
	b.wantFree("the third", b.take("k", id, 1), 0, 10*time.Second)
}

// banClockBack: the clock steps back. No ban ends early, no attempt is forgotten, and no
// client waits longer than one window and one ban.
func banClockBack(b *bench) {
	id := b.prepare(banned())
	for _, step := range []time.Duration{time.Millisecond, 5 * time.Second, 12 * time.Hour} {
		key := step.String()
		b.take(key, id, 4)
		b.take(key+" free", id, 3)
		b.clock.Advance(-step)
		b.wantBan(key+" back", b.take(key, id, 1), 40*time.Second)
		b.wantFree(key+" back, before a ban", b.take(key+" free", id, 0), 0, 10*time.Second)
		b.clock.Advance(10 * time.Second)
		b.wantBan(key+" back and a window on", b.take(key, id, 1), 30*time.Second)
		b.wantFree(key+" back and a window on, before a ban", b.take(key+" free", id, 3), 0, 10*time.Second)
		b.clock.Advance(30 * time.Second)
		b.wantFree(key+" back and a ban on", b.take(key, id, 1), 2, 10*time.Second)
	}
}

func banLimitChanged(b *bench) {
	id, raised := b.prepare(banned()), b.prepare(banAfter(9, 30*time.Second))
	shorter, longer := b.prepare(banAfter(3, 10*time.Second)), b.prepare(banAfter(3, time.Hour))
	b.take("k", id, 5)
	b.wantBan("raised above the attempts", b.take("k", raised, 1), 40*time.Second)
	b.wantBan("longer", b.take("k", longer, 1), 40*time.Second)
	b.wantBan("shorter", b.take("k", shorter, 0), 40*time.Second)
	b.clock.Advance(39 * time.Second)
	b.wantBan("after the shorter one's end", b.take("k", shorter, 1), time.Second)
	b.wantBan("after the window of the raised one", b.take("k", raised, 1), time.Second)
	b.clock.Advance(time.Second)
	b.wantFree("when it is over", b.take("k", longer, 3), 0, 10*time.Second)
	b.wantBan("the next ban is as long as its policy says", b.take("k", longer, 1), time.Hour+10*time.Second)
	b.wantBan("a second version does not shorten the ban", b.take("k", shorter, 1), time.Hour+10*time.Second)
	b.take("l", raised, 3)
	b.wantBan("a lowered count bans for earlier attempts too", b.take("l", id, 1), 40*time.Second)
	b.wantBan("the raised count sees the ban too", b.take("l", raised, 1), 40*time.Second)
}

// banTwoVersions uses random versions of a ban in random order. A ban ends for all versions
// when the version that set it says.
func banTwoVersions(b *bench) {
	r := rand.New(rand.NewPCG(4, 12))
	for story := range 30 {
		var ids []headgate.PolicyID
		for range 2 + r.IntN(2) {
			p := banAfter(r.Int64N(5), time.Duration(1+r.IntN(40))*time.Second)
			p.Limit.Per = time.Duration(1+r.IntN(10)) * time.Second
			ids = append(ids, b.prepare(p))
		}
		key, ends := fmt.Sprint("versions ", story), headgate.Instant(0)
		for range 40 {
			b.clock.Advance(time.Duration(r.IntN(3000)) * time.Millisecond)
			d, now := b.take(key, ids[r.IntN(len(ids))], 1+r.Int64N(2)), b.clock.Now()
			switch {
			case now < ends && (d.Reason != headgate.Banned || now.Add(d.RetryAfter) != ends):
				b.t.Fatalf("story %d: %v for %v, and the key is banned for another %v", story, d.Reason, d.RetryAfter, ends.Sub(now))
			case d.Reason == headgate.Banned:
				ends = now.Add(d.RetryAfter)
			}
		}
		if ends == 0 {
			b.t.Errorf("story %d: no version has set a ban", story)
		}
	}
}

// banConcurrency: exactly count attempts pass, however many goroutines try at once.
func banConcurrency(b *bench) {
	id := b.prepare(banAfter(500, time.Hour))
	var passed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				d := b.apply(headgate.Op{Key: "one", Policy: id, Cost: 1})[0]
				if d.Verdict == headgate.Allow {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if passed.Load() != 500 {
		b.t.Errorf("%d of 1,600 passed a ban after 500", passed.Load())
	}
}

// banRefusesAGroup: when a ban refuses a group, the limits of the group take nothing.
func banRefusesAGroup(b *bench, _ headgate.Policy, id headgate.PolicyID) {
	ban := b.prepare(banned())
	ops := func(cost int64) []headgate.Op {
		return []headgate.Op{{Key: "k", Policy: id, Cost: cost}, {Key: "k", Policy: ban, Window: 1, Cost: cost}}
	}
	taken := b.apply(ops(3)...)
	b.wantFree("three attempts in a group", taken[1], 0, 10*time.Second)
	for range 3 {
		ds := b.apply(ops(1)...)
		b.wantBan("the ban of a group", ds[1], 40*time.Second)
		if ds[0].Verdict == headgate.Deny || !ds[0].Receipt.Empty() || ds[0].Remaining != 1 || ds[0].At != ds[1].At {
			b.t.Errorf("beside a ban: %v, receipt %+v, remaining %d at %v", ds[0].Verdict, ds[0].Receipt, ds[0].Remaining, ds[0].At)
		}
	}
	b.wantRemaining("beside three banned attempts", "k", id, 1)
	b.giveBack(taken[0].Receipt, taken[1].Receipt)
	b.wantRemaining("returned beside a ban", "k", id, 4)
	b.wantBan("after the return", b.apply(ops(1)...)[1], 40*time.Second)
}

// banInARefusedGroup: an attempt counts when another Op of its group is refused, and also
// when an Op can never pass. Peek counts nothing in any group.
func banInARefusedGroup(b *bench, p headgate.Policy, id headgate.PolicyID) {
	ban := b.prepare(banAfter(6, 30*time.Second))
	group := func(cost, attempts int64, mode headgate.OpKind) []headgate.Decision {
		return b.apply(
			headgate.Op{Key: "k", Policy: id, Cost: cost, Kind: mode},
			headgate.Op{Key: "k", Policy: ban, Window: 1, Cost: attempts, Kind: mode},
		)
	}
	group(4, 1, headgate.Take)
	ds := group(1, 1, headgate.Take)
	b.wantReason("a limit that is used up", ds[0], excess(p))
	b.wantFree("the attempt that it refuses", ds[1], 4, 10*time.Second)
	ds = group(5, 3, headgate.Take)
	b.wantReason("more than the limit ever admits", ds[0], headgate.Never)
	b.wantFree("the attempts that can never pass", ds[1], 1, 10*time.Second)
	for range 3 {
		group(1, 1, headgate.Peek)
	}
	b.wantFree("the sixth attempt", group(1, 1, headgate.Take)[1], 0, 10*time.Second)
	ds = group(5, 1, headgate.Take)
	b.wantReason("both refuse", ds[0], headgate.Never)
	b.wantBan("both refuse", ds[1], 40*time.Second)
}
