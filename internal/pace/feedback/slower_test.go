package feedback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/pace/feedback"
)

// noon is the beginning of a window of any length that divides a day. noon has no monotonic
// reading, because the tests pass their own times.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// mid is the middle of a window of one second.
var mid = noon.Add(500 * time.Millisecond)

// at returns a brake that ends the given time after mid.
func at(percent int, ends time.Duration, reason string) feedback.Brake {
	return feedback.Brake{Until: mid.Add(ends), Percent: percent, Reason: reason}
}

// brakes returns all brakes from mid on, in order.
func brakes(s *feedback.Slower) (all []feedback.Brake) {
	for now := mid; ; {
		b, next := s.Brake(now)
		if next.IsZero() {
			return all
		}
		all, now = append(all, b), next
	}
}

const sec = time.Second

// TestSlowerRecovers expects a stop after a refusal, then 80 percent, then 5 more every 5 s.
func TestSlowerRecovers(t *testing.T) {
	var s feedback.Slower
	if b, next := s.Brake(mid); b.Percent != 100 || !next.IsZero() {
		t.Errorf("a Slower without advice has the brake %+v, and the next one at %v", b, next)
	}
	if !s.Observe(refused(2*sec, "429"), mid, mid, sec) {
		t.Error("Observe reports no change after a refusal")
	}
	want := []feedback.Brake{
		at(0, 2*sec, "429"), at(80, 7*sec, "429"), at(85, 12*sec, "429"), at(90, 17*sec, "429"), at(95, 22*sec, "429"),
	}
	got := brakes(&s)
	if len(got) != len(want) {
		t.Fatalf("got the brakes %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("brake %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if b, _ := s.Brake(mid.Add(time.Hour)); b.Percent != 100 {
		t.Errorf("after an hour, the brake is %+v, want 100 percent", b)
	}
}

// TestSlowerHears checks the brake after each advice of a sequence.
func TestSlowerHears(t *testing.T) {
	type event struct {
		sent, came time.Duration // after mid
		a          feedback.Advice
		changed    bool
		want       feedback.Brake
	}
	for name, c := range map[string]struct {
		per    time.Duration
		events []event
	}{
		"an empty advice": {sec, []event{{0, 0, feedback.Advice{}, false, feedback.Brake{Percent: 100}}}},
		"refusals of calls in flight count as one": {sec, []event{
			{0, 100, refused(sec, "429"), true, at(0, sec+100, "429")},
			{1, 200, refused(sec, "429"), false, at(0, sec+100, "429")},
			{2, 50 * time.Millisecond, refused(sec, "429"), false, at(0, sec+100, "429")},
			{3, 50 * time.Millisecond, unsaid, false, at(0, sec+100, "429")},
			{3, sec / 2, unsaid, false, at(0, sec+100, "429")},
			{0, 2 * sec, feedback.Advice{}, false, at(80, 6*sec+100, "429")},
		}},
		"a later stop replaces the current one": {sec, []event{
			{0, 0, refused(sec, "429"), true, at(0, sec, "429")},
			{-1, sec / 2, refused(sec, "429"), true, at(0, 3*sec/2-margin, "429")},
			{-1, 3*sec/2 - margin, feedback.Advice{}, false, at(80, 13*sec/2-margin, "429")},
		}},
		"a refusal of a later call lowers again": {sec, []event{
			{0, 0, refused(sec, "429"), true, at(0, sec, "429")},
			{sec, sec + 1, refused(sec, "429"), true, at(0, 2*sec+1, "429")},
			{sec, 3 * sec, feedback.Advice{}, false, at(64, 7*sec+1, "429")},
		}},
		"a refusal for 0 stops until the next window": {sec, []event{{0, 100, refused(0, "429"), true, at(0, sec/2-margin, "429")}}},
		"a refusal for 0 just before the next window does not stop": {sec, []event{
			{0, sec/2 - margin + 1, refused(0, "429"), true, at(80, 11*sec/2-margin, "429")},
		}},
		"a refusal for 0 before the first plan": {0, []event{{0, 0, refused(0, "429"), true, at(80, 5*sec, "429")}}},
		"no remaining units": {sec, []event{
			{0, 0, spent(30*sec, "r=0"), true, at(0, 30*sec, "r=0")},
			{0, sec, spent(29*sec, "r=0"), false, at(0, 30*sec, "r=0")},
			{0, 30 * sec, feedback.Advice{}, false, feedback.Brake{Percent: 100}},
		}},
		"no remaining units for a second": {sec, []event{{0, 0, spent(sec, "r=0"), false, feedback.Brake{Percent: 100}}}},
		"no remaining units below full speed": {sec, []event{
			{0, 0, warned, true, at(80, 5*sec, warned.Reason)},
			{0, sec, spent(30*sec, "r=0"), true, at(0, 31*sec, "r=0")},
			{0, 31 * sec, feedback.Advice{}, false, at(80, 36*sec, "r=0")},
		}},
		"warnings lower once a second": {sec, []event{
			{0, 0, warned, true, at(80, 5*sec, warned.Reason)},
			{1, 2, warned, false, at(80, 5*sec, warned.Reason)},
			{sec - 1, sec, warned, true, at(64, 6*sec, warned.Reason)},
			{sec - 1, 3 * sec, warned, false, at(64, 6*sec, warned.Reason)}, // The call was sent before the last decrease.
			{2 * sec, 3 * sec, warned, true, at(51, 8*sec, warned.Reason)},
		}},
		"warnings lower once a window": {time.Minute, []event{
			{0, 0, warned, true, at(80, 120*sec, warned.Reason)},
			{sec, 59 * sec, warned, false, at(80, 120*sec, warned.Reason)},
			{sec, 60 * sec, warned, true, at(64, 180*sec, warned.Reason)},
		}},
		"a recovery interval is ten minutes at most": {time.Hour, []event{{0, 0, warned, true, at(80, 600*sec, warned.Reason)}}},
		"a warning during a stop": {sec, []event{
			{0, 0, spent(30*sec, "r=0"), true, at(0, 30*sec, "r=0")},
			{0, sec, warned, true, at(0, 30*sec, warned.Reason)},
			{0, 30 * sec, feedback.Advice{}, false, at(80, 35*sec, warned.Reason)},
		}},
	} {
		s := feedback.Slower{Random: func() float64 { return 0 }}
		for i, e := range c.events {
			now := mid.Add(e.came)
			if got := s.Observe(e.a, mid.Add(e.sent), now, c.per); got != e.changed {
				t.Errorf("%s: event %d: Observe returns %v, want %v", name, i, got, e.changed)
			}
			if got, _ := s.Brake(now); got != e.want {
				t.Errorf("%s: after event %d the brake is %+v, want %+v", name, i, got, e.want)
			}
		}
	}
}

// margin is the minimum time between the end of a brake and the next edge of a window.
const margin = 20 * time.Millisecond

// TestSlowerEndsBeforeEdges checks that a brake ends at least margin before the edge of a
// window, so that the next brake is known when the window begins.
func TestSlowerEndsBeforeEdges(t *testing.T) {
	for _, c := range []struct{ per, ends, want time.Duration }{
		{sec, 2 * sec, 2*sec - margin},
		{sec, 2*sec - 1, 2*sec - margin},
		{sec, 2*sec - margin + 1, 2*sec - margin},
		{sec, 2*sec - margin, 2*sec - margin},
		{sec, 2*sec - margin - 1, 2*sec - margin - 1},
		{sec, 2*sec + 1, 2*sec + 1},
		{10 * time.Millisecond, 2 * sec, 2*sec - 2500*time.Microsecond},
		{7 * sec, 2 * sec, 2 * sec},
		{0, 2 * sec, 2 * sec},
	} {
		var s feedback.Slower
		s.Observe(refused(c.ends, ""), noon, noon, c.per)
		if b, _ := s.Brake(noon); b.Until != noon.Add(c.want) {
			t.Errorf("windows of %v: a stop of %v ended after %v, want %v", c.per, c.ends, b.Until.Sub(noon), c.want)
		}
	}
	// The same applies to each step of the recovery. With windows of 2 s, every second interval of 5 s ends at an edge.
	var steps feedback.Slower
	steps.Observe(warned, noon, noon, 2*sec)
	now := noon
	for _, want := range []time.Duration{5 * sec, 10*sec - margin, 15*sec - margin, 20*sec - margin} {
		b, next := steps.Brake(now)
		if b.Until != noon.Add(want) {
			t.Errorf("the brake of %d percent ended after %v, want %v", b.Percent, b.Until.Sub(noon), want)
		}
		now = next
	}
	// Times before 1970 have negative Unix times.
	var s feedback.Slower
	old := time.Unix(-1000, 0)
	s.Observe(refused(sec, ""), old, old, sec)
	if b, _ := s.Brake(old); b.Until != old.Add(sec-margin) {
		t.Errorf("before 1970: a stop of 1s ended after %v, want 980ms", b.Until.Sub(old))
	}
}

// TestSlowerFloor checks that constant warnings or refusals lower the level to the floor only.
func TestSlowerFloor(t *testing.T) {
	for _, a := range []feedback.Advice{warned, refused(sec, "429")} {
		var s feedback.Slower
		now, lowest, times := noon, 100, 0
		for range 50 {
			s.Observe(a, now, now, sec)
			now = now.Add(sec)
			b, _ := s.Brake(now)
			if b.Percent < lowest {
				lowest = b.Percent
				times++
			}
		}
		if lowest != feedback.Floor || times > 11 {
			t.Errorf("%v: the lowest level is %d percent after %d decreases, want %d after at most 11", a.Kind, lowest, times, feedback.Floor)
		}
	}
}

// TestSlowerBacksOff checks that refusals without a time stop for longer each time, up to a
// minute, and with jitter between instances.
func TestSlowerBacksOff(t *testing.T) {
	for _, random := range []float64{0, 0.5} {
		s := feedback.Slower{Random: func() float64 { return random }}
		now := mid
		for _, want := range []float64{1, 2, 4, 8, 16, 32, 60, 60} {
			s.Observe(unsaid, now, now, 0)
			b, _ := s.Brake(now)
			wait := b.Until.Sub(now)
			if least := time.Duration((1 - random/2) * want * float64(sec)); wait != least {
				t.Errorf("random %v: the stop lasts %v, want %v", random, wait, least)
			}
			now = b.Until.Add(100 * time.Millisecond)
		}
		now = now.Add(2 * time.Minute) // After a time without a refusal, the backoff starts at one second again.
		s.Observe(unsaid, now, now, 0)
		if b, _ := s.Brake(now); b.Until.Sub(now) > sec {
			t.Errorf("random %v: after 2m without a refusal, the stop lasts %v, want at most 1s", random, b.Until.Sub(now))
		}
	}
	different := map[time.Time]bool{}
	for range 96 {
		var s feedback.Slower
		s.Observe(unsaid, mid, mid, 0)
		b, _ := s.Brake(mid)
		different[b.Until] = true
	}
	if len(different) < 90 {
		t.Errorf("96 instances continue at only %d different times, want at least 90", len(different))
	}
}

// TestSlowerSettles has a provider that accepts less than the pacer's limit. The level stays
// near the accepted amount, nine tenths of the amount are used, and few windows have
// refusals. The package comment has the same numbers.
func TestSlowerSettles(t *testing.T) {
	for accepted, apart := range map[int]int{15: 5, 30: 8, 50: 12, 75: 16, 95: 20} { // percent, and seconds between refusals
		var s feedback.Slower
		now := mid
		var used, refusals, lowest, highest int
		const warmUp, windows = 60, 3600
		lowest = 100
		for w := range warmUp + windows {
			b, _ := s.Brake(now)
			refuse := b.Percent > accepted
			if refuse {
				s.Observe(refused(sec/2, "429"), now, now, sec)
			}
			if w >= warmUp {
				used += min(b.Percent, accepted)
				if refuse {
					refusals++
				}
				if b.Percent > 0 {
					lowest, highest = min(lowest, b.Percent), max(highest, b.Percent)
				}
			}
			now = now.Add(sec)
		}
		t.Logf("accepted %d %%: levels %d to %d, %.1f %% of the accepted amount used, one refusal in %d s",
			accepted, lowest, highest, 100*float64(used)/float64(windows*accepted), windows/refusals)
		if highest > accepted+feedback.Increase || lowest < max(accepted*feedback.Decrease/100, feedback.Floor) {
			t.Errorf("accepted %d %%: the levels from %d to %d are too far from the accepted percentage", accepted, lowest, highest)
		}
		if float64(used) < 0.9*float64(windows*accepted) {
			t.Errorf("accepted %d %%: %.3f of the accepted amount is used, want at least 0.9", accepted, float64(used)/float64(windows*accepted))
		}
		if refusals > windows/apart {
			t.Errorf("accepted %d %%: %d of %d windows have refusals, want one in %d", accepted, refusals, windows, apart)
		}
	}
}

// TestSlowerBounds checks that any sequence of advice leaves the brake within its bounds,
// and that the brake ends when no more advice arrives.
func TestSlowerBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	advices := []feedback.Advice{{}, warned, unsaid, refused(0, "a"), refused(sec, "b"), refused(time.Hour, "c"), spent(time.Hour, "d"), {Kind: 200}}
	for range 200 {
		var s feedback.Slower
		now := noon
		for range 300 {
			now = now.Add(time.Duration(r.Int64N(int64(3 * sec))))
			sent := now.Add(-time.Duration(r.Int64N(int64(2 * sec))))
			per := []time.Duration{0, time.Millisecond, sec, time.Minute, 366 * 24 * time.Hour}[r.IntN(5)]
			s.Observe(advices[r.IntN(len(advices))], sent, now, per)
			b, next := s.Brake(now)
			if b.Percent < 0 || b.Percent > 100 || (b.Percent == 100) != next.IsZero() || b.Percent < 100 && !b.Until.Equal(next) {
				t.Fatalf("the brake %+v contradicts its end %v", b, next)
			}
			if b.Percent > 0 && b.Percent < feedback.Floor || b.Percent < 100 && !next.After(now) || next.Sub(now) > feedback.Longest+time.Hour {
				t.Fatalf("the brake %+v until %v is out of bounds at %v", b, next, now)
			}
		}
		steps := 0
		for b, next := s.Brake(now); b.Percent < 100; b, next = s.Brake(now) {
			if now = next; steps > 30 {
				t.Fatal("the brake has not ended after 30 steps")
			}
			steps++
		}
	}
}
