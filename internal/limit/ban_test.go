package limit

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/internal/testkit/property"
)

// attempt is one line of a test table for a ban: the attempt, and the expected decision. A
// line with a policy changes the policy first.
type attempt struct {
	after     time.Duration
	cost      int64
	reason    headgate.Reason
	remaining int64
	// ends is the end of the window or the ban, or 0 without counted attempts.
	ends   time.Duration
	policy *headgate.Policy
}

const banned = headgate.Banned

// banAfter returns a ban that starts after count attempts within ten seconds.
func banAfter(count int64, banFor time.Duration) *headgate.Policy {
	return &headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: count, Per: 10 * sec}, BanFor: banFor}
}

// shortBan returns a ban for a minute that starts after count attempts within per.
func shortBan(count int64, per time.Duration) *headgate.Policy {
	return &headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: count, Per: per}, BanFor: minute}
}

// TestAttemptsDoNotRunOver checks that the counter does not overflow, so that no number of
// attempts ends a ban.
func TestAttemptsDoNotRunOver(t *testing.T) {
	s := newSubject(t, *banAfter(headgate.MaxUnits, minute))
	s.do(at(0), headgate.MaxUnits, headgate.Take)
	for i := range 5000 { // 2,048 attempts would overflow 64 bits.
		if d := s.do(at(0), headgate.MaxUnits, headgate.Take); d.Reason != banned {
			t.Fatalf("attempt %d of the largest cost: the reason is %v, want banned", i, d.Reason)
		}
	}
}

// TestBanStories uses a ban that allows three attempts within ten seconds of the first
// attempt. The fourth attempt starts a ban that ends 30 seconds after these ten seconds.
func TestBanStories(t *testing.T) {
	for name, story := range map[string][]attempt{
		"the window starts at the first attempt and includes its last nanosecond": {
			{7 * sec, 1, within, 2, 17 * sec, nil},
			{16 * sec, 2, within, 0, 17 * sec, nil},
			{17*sec - 1, 0, within, 0, 17 * sec, nil},
			{17 * sec, 1, within, 2, 27 * sec, nil}, // A fixed window ignores the two attempts seven seconds before.
		},
		"one attempt above the count bans until the exact end": {
			{0, 3, within, 0, 10 * sec, nil},
			{4 * sec, 1, banned, 0, 40 * sec, nil},
			{10 * sec, 1, banned, 0, 40 * sec, nil}, // The end of the window does not end the ban.
			{39 * sec, 1, banned, 0, 40 * sec, nil}, // Attempts do not extend the ban.
			{40*sec - 1, 1, banned, 0, 40 * sec, nil},
			{40 * sec, 1, within, 2, 50 * sec, nil},
		},
		"a cost of 0 counts nothing and reports the state": {
			{0, 0, within, 3, 0, nil},
			{5 * sec, 1, within, 2, 15 * sec, nil}, // The window starts here.
			{6 * sec, 0, within, 2, 15 * sec, nil},
			{7 * sec, 3, banned, 0, 45 * sec, nil},
			{8 * sec, 0, banned, 0, 45 * sec, nil},
			{45 * sec, 0, within, 3, 0, nil},
		},
		"one cost above the count bans": {
			{0, 4, banned, 0, 40 * sec, nil},
			{40 * sec, headgate.MaxUnits, banned, 0, 80 * sec, nil}, // The cost alone exceeds the count.
			{79 * sec, headgate.MaxUnits, banned, 0, 80 * sec, nil},
			{80 * sec, 3, within, 0, 90 * sec, nil},
		},
		"a step back of the clock ends no ban and extends none beyond a new one": {
			{time.Hour, 4, banned, 0, time.Hour + 40*sec, nil},
			{time.Hour - sec, 1, banned, 0, time.Hour + 39*sec, nil}, // The clock steps back by a second.
			{0, 1, banned, 0, 40 * sec, nil},                         // The clock steps back by an hour.
			{5 * sec, 0, banned, 0, 40 * sec, nil},
			{40 * sec, 3, within, 0, 50 * sec, nil},
			{time.Hour, 1, within, 2, time.Hour + 10*sec, nil}, // The clock is corrected.
		},
		"a step back of the clock counts each attempt once": {
			{time.Hour, 1, within, 2, time.Hour + 10*sec, nil},
			{time.Hour + 5*sec, 1, within, 1, time.Hour + 10*sec, nil},
			{time.Hour + 2*sec, 0, within, 1, time.Hour + 10*sec, nil}, // The clock steps back within the window.
			{time.Hour - 2*sec, 0, within, 1, time.Hour + 8*sec, nil},  // The clock steps back before the window.
			{0, 1, within, 0, 10 * sec, nil},
			{9 * sec, 1, banned, 0, 40 * sec, nil},
		},
		"a raised count ends no ban and applies from the next window on": {
			{0, 3, within, 0, 10 * sec, nil},
			{sec, 2, banned, 0, 40 * sec, nil},
			{2 * sec, 0, banned, 0, 40 * sec, banAfter(7, 30*sec)},
			{20 * sec, 3, banned, 0, 40 * sec, nil}, // The ban lasts beyond the window of the new count.
			{40 * sec, 7, within, 0, 50 * sec, nil},
		},
		"a raised count keeps the attempts of a key that is not banned": {
			{0, 3, within, 0, 10 * sec, nil},
			{2 * sec, 0, within, 4, 10 * sec, banAfter(7, 30*sec)},
			{2 * sec, 5, banned, 0, 40 * sec, nil},
		},
		"a lowered count bans a key above it": {
			{0, 3, within, 0, 10 * sec, nil},
			{2 * sec, 0, banned, 0, 40 * sec, banAfter(2, 30*sec)},
			{3 * sec, 0, banned, 0, 40 * sec, banAfter(3, 30*sec)}, // Another version also reports the ban.
		},
		"a lowered count ignores a window that is over": {
			{0, 3, within, 0, 10 * sec, nil},
			{10 * sec, 0, within, 1, 0, banAfter(1, 30*sec)},
		},
		"the version that set a ban decides when it ends": {
			{0, 4, banned, 0, 40 * sec, nil},
			{5 * sec, 0, banned, 0, 40 * sec, banAfter(3, 20*sec)},
			{6 * sec, 0, banned, 0, 40 * sec, banAfter(3, time.Hour)},
			{40 * sec, 4, banned, 0, 50*sec + time.Hour, nil}, // The new version sets the next ban.
			{50 * sec, 0, banned, 0, 50*sec + time.Hour, banAfter(3, 5*sec)},
		},
		"alternating versions do not change the end of a ban": {
			{0, 4, banned, 0, 40 * sec, nil},
			{1 * sec, 1, banned, 0, 40 * sec, banAfter(3, time.Hour)},
			{2 * sec, 1, banned, 0, 40 * sec, banAfter(9, 30*sec)},
			{3 * sec, 1, banned, 0, 40 * sec, shortBan(1, sec)},
			{40*sec - 1, 1, banned, 0, 40 * sec, banAfter(3, 30*sec)},
			{40 * sec, 1, within, 2, 50 * sec, nil},
		},
		"a count of 0 bans at the first attempt": {
			{0, 0, within, 0, 0, banAfter(0, 30*sec)},
			{sec, 1, banned, 0, 41 * sec, nil},
			{41 * sec, 0, within, 0, 0, nil},
		},
		"the largest count": {
			{0, headgate.MaxUnits, within, 0, 10 * sec, banAfter(headgate.MaxUnits, 30*sec)},
			{1 * sec, 1, banned, 0, 40 * sec, nil},
		},
		"a shortened window ignores attempts outside it": {
			{0, 1, within, 2, 10 * sec, nil},
			{sec, 1, within, 1, 10 * sec, nil},
			{2 * sec, 0, banned, 0, 3*sec + minute, shortBan(1, 3*sec)},
			{3 * sec, 1, banned, 0, 3*sec + minute, nil},
			{4 * sec, 0, banned, 0, 3*sec + minute, shortBan(3, 3*sec)}, // The new version does not end the ban.
		},
		"a shortened window drops attempts outside it": {
			{0, 2, within, 1, 10 * sec, nil},
			{5 * sec, 0, within, 1, 0, shortBan(1, 2*sec)},
			{6 * sec, 1, within, 0, 8 * sec, nil},
		},
	} {
		t.Run(name, func(t *testing.T) { tellBan(t, newSubject(t, *banAfter(3, 30*sec)), story) })
	}
}

func tellBan(t *testing.T, s *subject, story []attempt) {
	t.Helper()
	for i, e := range story {
		if e.policy != nil {
			s.change(*e.policy)
		}
		before := s.cell
		s.do(at(e.after), e.cost, headgate.Peek)
		s.cell = before
		looked := s.do(at(e.after), e.cost, headgate.Peek)
		s.cell = before
		d := s.do(at(e.after), e.cost, headgate.Take)
		if d != looked {
			t.Errorf("line %d: the take gives %+v and the peek %+v; want equal decisions", i, d, looked)
		}
		want := headgate.Decision{Reason: e.reason, Limit: s.plan.count, Remaining: e.remaining, At: at(e.after)}
		if e.ends > 0 {
			want.ResetAfter = e.ends - e.after
		}
		if e.reason == banned {
			want.Verdict, want.RetryAfter = headgate.Deny, want.ResetAfter
		}
		if d != want {
			t.Errorf("line %d, at %v:\n got %+v\nwant %+v", i, e.after, d, want)
		}
		if free := s.record.CellFreeAt(&s.cell); e.ends > 0 && free != at(e.ends) || e.ends == 0 && free > at(e.after) {
			t.Errorf("line %d: CellFreeAt is %v, want %v", i, free, e.ends)
		}
	}
}

// TestBanIsItsTwin compares a ban with its twin over random attempts, peeks, steps of the
// clock and changes of the policy.
func TestBanIsItsTwin(t *testing.T) {
	property.Check(t, func(r *property.T) {
		policy := drawBan(r)
		plan, err := Compile(policy)
		if err != nil {
			r.Fatal(err)
		}
		var cell Cell
		var draw Draw
		record := plan
		twin, now := twin.New(policy), at(0)
		for range property.IntRange(1, 60).Draw(r, "steps") {
			now += headgate.Instant(drawStep(r, policy))
			if property.IntRange(0, 9).Draw(r, "what") == 0 {
				policy = drawBan(r)
				if plan, err = Compile(policy); err != nil {
					r.Fatal(err)
				}
				twin.Change(policy, now)
				continue
			}
			cost := property.Int64Range(0, policy.Limit.Count+2).Draw(r, "cost")
			mode := property.SampledFrom([]headgate.OpKind{headgate.Take, headgate.Take, headgate.Peek}).Draw(r, "mode")
			kept := cell
			plan.JudgeOf(&kept, record, now, cost, mode, &draw)
			if mode == headgate.Take {
				if plan.TakeOf(&kept, record, &draw) {
					record = plan
				}
				cell = kept
			}
			var got headgate.Decision
			plan.Explain(&draw, &got)
			want := twin.Do(now, cost, mode)
			if got.Verdict != want.Verdict || got.Reason != want.Reason || got.Remaining != want.Remaining ||
				got.RetryAfter != want.Retry || got.ResetAfter != want.Reset {
				r.Fatalf("at %v:\n got %+v\nwant %+v", now.Sub(at(0)), got, want)
			}
		}
	})
}

// drawBan returns a random short ban.
func drawBan(r *property.T) headgate.Policy {
	return headgate.Policy{
		Algorithm: headgate.Ban, BanFor: property.SampledFrom([]time.Duration{time.Microsecond, time.Millisecond, sec, 2 * sec}).Draw(r, "for"),
		Limit: headgate.Limit{
			Count: property.Int64Range(0, 6).Draw(r, "count"),
			Per:   property.SampledFrom([]time.Duration{time.Microsecond, 10 * time.Millisecond, sec, 2 * sec}).Draw(r, "per"),
		},
	}
}

// drawStep returns a random pause or step back. It prefers 0 and times at an edge.
func drawStep(r *property.T, p headgate.Policy) time.Duration {
	return property.OneOf(
		property.Just(time.Duration(0)),
		property.SampledFrom([]time.Duration{p.Limit.Per - 1, p.Limit.Per, p.Limit.Per + p.BanFor - 1, p.Limit.Per + p.BanFor}),
		property.Map(property.Int64Range(0, int64(p.Limit.Per)), func(n int64) time.Duration { return time.Duration(n) }),
		property.Map(property.Int64Range(-int64(p.Limit.Per+p.BanFor), -1), func(n int64) time.Duration { return time.Duration(n) }),
		property.Just(-time.Hour),
	).Draw(r, "step")
}

// TestCarriedBansEnd checks that a thousand attempts under alternating versions do not
// change the end of a ban.
func TestCarriedBansEnd(t *testing.T) {
	for _, longer := range []time.Duration{sec, time.Hour, 7200 * time.Hour, 1, sec + 1, time.Hour + 1} {
		s := newSubject(t, headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Per: 20 * minute}, BanFor: time.Hour})
		short, long := s.plan.Policy, s.plan.Policy
		long.BanFor += longer
		ends := s.do(at(0), 1, headgate.Take).RetryAfter
		for range 500 {
			for _, p := range []headgate.Policy{long, short} {
				s.change(p)
				if d := s.do(at(0), 1, headgate.Take); d.RetryAfter != ends {
					t.Fatalf("under %v the ban ends in %v, want %v as before", p.BanFor, d.RetryAfter, ends)
				}
			}
		}
	}
}

// TestBansAreKeptInACell checks that a ban needs no more memory than other algorithms.
func TestBansAreKeptInACell(t *testing.T) {
	if size := unsafe.Sizeof(Cell{}); size != 24 {
		t.Errorf("the size of a Cell is %d bytes, want 24", size)
	}
	plan := mustCompile(t, *banAfter(3, sec))
	if !plan.InCell() || plan.Whole() || plan.Blocks() || plan.Returnable() || !plan.CountsRefused(false) {
		t.Errorf("a ban has InCell %v, Whole %v, Blocks %v, Returnable %v, CountsRefused(false) %v; want only InCell and CountsRefused",
			plan.InCell(), plan.Whole(), plan.Blocks(), plan.Returnable(), plan.CountsRefused(false))
	}
}

// TestAttemptsAreNotReturned checks that no receipt reduces the attempts of a ban.
func TestAttemptsAreNotReturned(t *testing.T) {
	s := newSubject(t, *banAfter(3, sec))
	if d := s.do(at(0), 3, headgate.Take); !d.Receipt.Empty() {
		t.Errorf("an attempt has the receipt %+v, want an empty receipt", d.Receipt)
	}
	if s.plan.ReturnCell(&s.cell, nil, &headgate.Receipt{Nonce: 1, Cost: 3, From: at(0)}, at(0)) || s.cell.Units != 3 {
		t.Errorf("%d of three attempts are left after returns, want 3", s.cell.Units)
	}
}

// TestBanBeginsAnew checks that a ban and a bucket do not read each other's counts.
func TestBanBeginsAnew(t *testing.T) {
	bucket := headgate.Policy{Limit: headgate.Limit{Count: 2, Per: minute}}
	s := newSubject(t, bucket)
	s.do(at(0), 2, headgate.Take)
	s.change(*banAfter(1, time.Hour))
	if d := s.do(at(0), 1, headgate.Take); d.Reason != within || d.ResetAfter != 10*sec {
		t.Errorf("a ban read the count of a bucket: %+v", d)
	}
	s.do(at(0), 1, headgate.Take)
	s.change(bucket)
	if d := s.do(at(0), 2, headgate.Take); d.Reason != within {
		t.Errorf("a bucket read the count of a ban: %+v", d)
	}
}

// TestCompileRefusesBans checks the fix in each error for an invalid ban.
func TestCompileRefusesBans(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(*headgate.Policy)
		field, fix string
	}{
		{"a burst", func(p *headgate.Policy) { p.Limit.Burst = 2 }, "burst", "leave it out"},
		{"sub-windows", func(p *headgate.Policy) { p.SubWindows = 2 }, "sub_windows", "leave it out"},
		{"counted refusals", func(p *headgate.Policy) { p.CountRejected = true }, "count_rejected", "a ban counts every attempt"},
		{"a wait", func(p *headgate.Policy) { p.MaxWait = sec }, "max_wait", "leave it out"},
		{"no time", func(p *headgate.Policy) { p.BanFor = 0 }, "ban_for", "use 1µs to 367d"},
		{"a negative time", func(p *headgate.Policy) { p.BanFor = -sec }, "ban_for", "use 1µs to 367d"},
		{"two years", func(p *headgate.Policy) { p.BanFor = 731 * 24 * time.Hour }, "ban_for", "use 1µs to 367d"},
		{"a negative count", func(p *headgate.Policy) { p.Limit.Count = -1 }, "count", "use 0 to"},
		{"no period", func(p *headgate.Policy) { p.Limit.Per = 0 }, "period", "use 1µs to 367d"},
		{"a fixed window", func(p *headgate.Policy) { p.Algorithm = headgate.FixedWindow }, "ban_for", "leave it out"},
		{"a token bucket", func(p *headgate.Policy) { p.Algorithm = headgate.TokenBucket }, "ban_for", "leave it out"},
		{"an algorithm after the last", func(p *headgate.Policy) { p.Algorithm = headgate.Ban + 1 }, "algorithm", "token_bucket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := *banAfter(3, sec)
			c.change(&policy)
			_, err := Compile(policy)
			var fault *PolicyError
			if !errors.As(err, &fault) || fault.Field != c.field || !strings.Contains(err.Error(), c.fix) {
				t.Errorf("got error %v, want field %s and text %q", err, c.field, c.fix)
			}
		})
	}
	for _, a := range headgate.Algorithms() {
		if a == headgate.Ban {
			t.Error("headgate.Algorithms() includes ban, want only algorithms of limits")
		}
	}
}
