package feedback_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/pace/feedback"
)

// noon is the begin of a window of any length that divides a day, and has no monotonic
// reading: the tests' clock is theirs.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// mid is in the middle of a window of a second.
var mid = noon.Add(500 * time.Millisecond)

// at gives a brake of so many percent that ends so long after mid.
func at(percent int, ends time.Duration, reason string) feedback.Brake {
	return feedback.Brake{Until: mid.Add(ends), Percent: percent, Reason: reason}
}

// brakes gives all brakes from mid on, one after the other.
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

// One refusal: a stop, then 80 percent, then 5 more each 5 s.
func TestSlowerRecovers(t *testing.T) {
	var s feedback.Slower
	if b, next := s.Brake(mid); b.Percent != 100 || !next.IsZero() {
		t.Errorf("a Slower that heard nothing brakes: %+v until %v", b, next)
	}
	if !s.Hear(refused(2*sec, "429"), mid, mid, sec) {
		t.Error("a refusal changes nothing")
	}
	want := []feedback.Brake{
		at(0, 2*sec, "429"), at(80, 7*sec, "429"), at(85, 12*sec, "429"), at(90, 17*sec, "429"), at(95, 22*sec, "429"),
	}
	got := brakes(&s)
	if len(got) != len(want) {
		t.Fatalf("brakes %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("brake %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if b, _ := s.Brake(mid.Add(time.Hour)); b.Percent != 100 {
		t.Errorf("after an hour: %+v", b)
	}
}

// What is heard, and what it makes of the brake at that time.
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
		"nothing": {sec, []event{{0, 0, feedback.Advice{}, false, feedback.Brake{Percent: 100}}}},
		"all that was in flight is one refusal": {sec, []event{
			{0, 100, refused(sec, "429"), true, at(0, sec+100, "429")},
			{1, 200, refused(sec, "429"), false, at(0, sec+100, "429")},
			{2, 50 * time.Millisecond, refused(sec, "429"), false, at(0, sec+100, "429")},
			{3, 50 * time.Millisecond, unsaid, false, at(0, sec+100, "429")},
			{3, sec / 2, unsaid, false, at(0, sec+100, "429")},
			{0, 2 * sec, feedback.Advice{}, false, at(80, 6*sec+100, "429")},
		}},
		"a later stop is a stop": {sec, []event{
			{0, 0, refused(sec, "429"), true, at(0, sec, "429")},
			{-1, sec / 2, refused(sec, "429"), true, at(0, 3*sec/2-margin, "429")},
			{-1, 3*sec/2 - margin, feedback.Advice{}, false, at(80, 13*sec/2-margin, "429")},
		}},
		"a refusal of what was sent after it lowers again": {sec, []event{
			{0, 0, refused(sec, "429"), true, at(0, sec, "429")},
			{sec, sec + 1, refused(sec, "429"), true, at(0, 2*sec+1, "429")},
			{sec, 3 * sec, feedback.Advice{}, false, at(64, 7*sec+1, "429")},
		}},
		"0 is until the next window": {sec, []event{{0, 100, refused(0, "429"), true, at(0, sec/2-margin, "429")}}},
		"0 just before the next window is no stop": {sec, []event{
			{0, sec/2 - margin + 1, refused(0, "429"), true, at(80, 11*sec/2-margin, "429")},
		}},
		"0 before there is a plan": {0, []event{{0, 0, refused(0, "429"), true, at(80, 5*sec, "429")}}},
		"nothing remains": {sec, []event{
			{0, 0, spent(30*sec, "r=0"), true, at(0, 30*sec, "r=0")},
			{0, sec, spent(29*sec, "r=0"), false, at(0, 30*sec, "r=0")},
			{0, 30 * sec, feedback.Advice{}, false, feedback.Brake{Percent: 100}},
		}},
		"nothing remains of a second": {sec, []event{{0, 0, spent(sec, "r=0"), false, feedback.Brake{Percent: 100}}}},
		"nothing remains while it is slow": {sec, []event{
			{0, 0, warned, true, at(80, 5*sec, warned.Reason)},
			{0, sec, spent(30*sec, "r=0"), true, at(0, 31*sec, "r=0")},
			{0, 31 * sec, feedback.Advice{}, false, at(80, 36*sec, "r=0")},
		}},
		"warnings lower once a second": {sec, []event{
			{0, 0, warned, true, at(80, 5*sec, warned.Reason)},
			{1, 2, warned, false, at(80, 5*sec, warned.Reason)},
			{sec - 1, sec, warned, true, at(64, 6*sec, warned.Reason)},
			{sec - 1, 3 * sec, warned, false, at(64, 6*sec, warned.Reason)}, // It was sent before.
			{2 * sec, 3 * sec, warned, true, at(51, 8*sec, warned.Reason)},
		}},
		"warnings lower once a window": {time.Minute, []event{
			{0, 0, warned, true, at(80, 120*sec, warned.Reason)},
			{sec, 59 * sec, warned, false, at(80, 120*sec, warned.Reason)},
			{sec, 60 * sec, warned, true, at(64, 180*sec, warned.Reason)},
		}},
		"a hold is ten minutes at most": {time.Hour, []event{{0, 0, warned, true, at(80, 600*sec, warned.Reason)}}},
		"warned in a stop": {sec, []event{
			{0, 0, spent(30*sec, "r=0"), true, at(0, 30*sec, "r=0")},
			{0, sec, warned, true, at(0, 30*sec, warned.Reason)},
			{0, 30 * sec, feedback.Advice{}, false, at(80, 35*sec, warned.Reason)},
		}},
	} {
		s := feedback.Slower{Random: func() float64 { return 0 }}
		for i, e := range c.events {
			now := mid.Add(e.came)
			if got := s.Hear(e.a, mid.Add(e.sent), now, c.per); got != e.changed {
				t.Errorf("%s: event %d changes the brake: %v", name, i, got)
			}
			if got, _ := s.Brake(now); got != e.want {
				t.Errorf("%s: event %d makes it %+v, want %+v", name, i, got, e.want)
			}
		}
	}
}

// margin is by how much a brake ends before the edge of a window that it would end at.
const margin = 20 * time.Millisecond

// A brake that would end at the edge of a window, or just before, ends a little
// earlier, so that there is time to say what holds in that window.
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
		s.Hear(refused(c.ends, ""), noon, noon, c.per)
		if b, _ := s.Brake(noon); b.Until != noon.Add(c.want) {
			t.Errorf("windows of %v: a stop of %v ends after %v, want %v", c.per, c.ends, b.Until.Sub(noon), c.want)
		}
	}
	// Each step of the way back as well: of windows of 2 s, a hold of 5 s ends at an edge each other time.
	var steps feedback.Slower
	steps.Hear(warned, noon, noon, 2*sec)
	now := noon
	for _, want := range []time.Duration{5 * sec, 10*sec - margin, 15*sec - margin, 20*sec - margin} {
		b, next := steps.Brake(now)
		if b.Until != noon.Add(want) {
			t.Errorf("%d percent end after %v, want %v", b.Percent, b.Until.Sub(noon), want)
		}
		now = next
	}
	// Before 1970 as well.
	var s feedback.Slower
	old := time.Unix(-1000, 0)
	s.Hear(refused(sec, ""), old, old, sec)
	if b, _ := s.Brake(old); b.Until != old.Add(sec-margin) {
		t.Errorf("before 1970: a stop of a second ends after %v", b.Until.Sub(old))
	}
}

// Who warns or refuses always is heard to the floor, and not below.
func TestSlowerFloor(t *testing.T) {
	for _, a := range []feedback.Advice{warned, refused(sec, "429")} {
		var s feedback.Slower
		now, lowest, times := noon, 100, 0
		for range 50 {
			s.Hear(a, now, now, sec)
			now = now.Add(sec)
			b, _ := s.Brake(now)
			if b.Percent < lowest {
				lowest = b.Percent
				times++
			}
		}
		if lowest != feedback.Floor || times > 11 {
			t.Errorf("%v: the least is %d percent after %d times, want %d after at most 11", a.Kind, lowest, times, feedback.Floor)
		}
	}
}

// Refusals that say no time are waited for longer each time, up to a minute, and not
// by all for the same time.
func TestSlowerBacksOff(t *testing.T) {
	for _, random := range []float64{0, 0.5} {
		s := feedback.Slower{Random: func() float64 { return random }}
		now := mid
		for _, want := range []float64{1, 2, 4, 8, 16, 32, 60, 60} {
			s.Hear(unsaid, now, now, 0)
			b, _ := s.Brake(now)
			wait := b.Until.Sub(now)
			if least := time.Duration((1 - random/2) * want * float64(sec)); wait != least {
				t.Errorf("random %v: waits %v, want %v", random, wait, least)
			}
			now = b.Until.Add(100 * time.Millisecond)
		}
		now = now.Add(2 * time.Minute) // A while without a refusal: it begins anew.
		s.Hear(unsaid, now, now, 0)
		if b, _ := s.Brake(now); b.Until.Sub(now) > sec {
			t.Errorf("random %v: waits %v after a while", random, b.Until.Sub(now))
		}
	}
	different := map[time.Time]bool{}
	for range 96 {
		var s feedback.Slower
		s.Hear(unsaid, mid, mid, 0)
		b, _ := s.Brake(mid)
		different[b.Until] = true
	}
	if len(different) < 90 {
		t.Errorf("96 instances come back at %d times", len(different))
	}
}

// A provider that bears less than the pacer's limit: the level comes near to what it
// bears from above and stays there, nine tenths of it are used, and few windows are
// refused. The numbers are those of the package's comment.
func TestSlowerSettles(t *testing.T) {
	for bears, apart := range map[int]int{15: 5, 30: 8, 50: 12, 75: 16, 95: 20} { // percent, and seconds between refusals
		var s feedback.Slower
		now := mid
		var used, refusals, lowest, highest int
		const warmUp, windows = 60, 3600
		lowest = 100
		for w := range warmUp + windows {
			b, _ := s.Brake(now)
			refuse := b.Percent > bears
			if refuse {
				s.Hear(refused(sec/2, "429"), now, now, sec)
			}
			if w >= warmUp {
				used += min(b.Percent, bears)
				if refuse {
					refusals++
				}
				if b.Percent > 0 {
					lowest, highest = min(lowest, b.Percent), max(highest, b.Percent)
				}
			}
			now = now.Add(sec)
		}
		t.Logf("bears %d: levels %d to %d, %.1f %% of it used, refused once in %d s",
			bears, lowest, highest, 100*float64(used)/float64(windows*bears), windows/refusals)
		if highest > bears+feedback.Increase || lowest < max(bears*feedback.Decrease/100, feedback.Floor) {
			t.Errorf("bears %d: levels from %d to %d", bears, lowest, highest)
		}
		if float64(used) < 0.9*float64(windows*bears) {
			t.Errorf("bears %d: %.3f of it is used", bears, float64(used)/float64(windows*bears))
		}
		if refusals > windows/apart {
			t.Errorf("bears %d: %d of %d windows are refused", bears, refusals, windows)
		}
	}
}

// Any advice at any time leaves a brake within the bounds, and a Slower that nobody
// speaks to comes to rest.
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
			s.Hear(advices[r.IntN(len(advices))], sent, now, per)
			b, next := s.Brake(now)
			if b.Percent < 0 || b.Percent > 100 || (b.Percent == 100) != next.IsZero() || b.Percent < 100 && !b.Until.Equal(next) {
				t.Fatalf("brake %+v until %v", b, next)
			}
			if b.Percent > 0 && b.Percent < feedback.Floor || b.Percent < 100 && !next.After(now) || next.Sub(now) > feedback.Longest+time.Hour {
				t.Fatalf("brake %+v until %v at %v", b, next, now)
			}
		}
		steps := 0
		for b, next := s.Brake(now); b.Percent < 100; b, next = s.Brake(now) {
			if now = next; steps > 30 {
				t.Fatal("it does not come to rest")
			}
			steps++
		}
	}
}
