package schedule

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestLine checks lines of a few permits, mostly five in a window of 100. Each step checks a
// line at one time.
func TestLine(t *testing.T) {
	type step struct {
		at, given int64
		idle      bool  // no caller has waited until at
		open      int64 // total number of open permits
		next      int64 // when given+1 permits are open
	}
	for _, c := range []struct {
		name  string
		line  Line
		steps []step
	}{
		{"evenly", Line{Part: 5, Length: 100}, []step{{0, 0, false, 1, 0}, {19, 1, false, 1, 20}, {20, 1, false, 2, 20}, {79, 4, false, 4, 80}, {99, 4, false, 5, 80}, {500, 5, false, 5, 100}}},
		{"in half a window", Line{Part: 5, Length: 50}, []step{{0, 0, false, 1, 0}, {39, 4, false, 4, 40}, {40, 4, false, 5, 40}}},
		{"with a phase", Line{Part: 5, Length: 100, Phase: 6}, []step{{5, 0, false, 0, 6}, {6, 0, false, 1, 6}, {85, 4, false, 4, 86}, {86, 4, false, 5, 86}}},
		{"distances that are not whole", Line{Part: 3, Length: 100}, []step{{33, 1, false, 1, 34}, {34, 1, false, 2, 34}, {66, 2, false, 2, 67}, {67, 2, false, 3, 67}}},
		{"idle at first, then the same pace", Line{Part: 5, Length: 100}, []step{{45, 0, true, 1, 40}, {45, 1, true, 1, 60}, {60, 1, false, 2, 60}, {100, 3, false, 4, 100}, {130, 4, false, 5, 120}}},
		{"idle at first, with a credit of two", Line{Part: 5, Length: 100, Credit: 2}, []step{{45, 0, true, 2, 20}, {45, 1, false, 2, 40}, {45, 2, false, 2, 60}}},
		{"idle at first, then past the end of a short line", Line{Part: 5, Length: 50}, []step{{80, 0, true, 1, 80}, {89, 1, false, 1, 90}, {90, 1, false, 2, 90}, {120, 4, false, 5, 120}}},
		{"no length opens all permits at once", Line{Part: 5}, []step{{0, 0, true, 5, 0}, {99, 3, true, 5, 0}}},
		{"a single permit stays open", Line{Part: 1, Length: 100}, []step{{0, 0, true, 1, 0}, {99, 0, true, 1, 0}}},
		{"no permits", Line{Length: 100}, []step{{0, 0, true, 0, 0}, {99, 0, true, 0, 0}}},
		{"the zero line", Line{}, []step{{0, 0, true, 0, 0}}},
		{"negative numbers", Line{Part: -5, Length: -1, Credit: -9}, []step{{3, 0, true, 0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := c.line
			for _, s := range c.steps {
				if s.idle {
					l.Idle(s.at, s.given)
				}
				if open, next := l.Open(s.at), l.When(s.given+1); open != s.open || next != s.next {
					t.Errorf("at %d, with %d given: %d permits are open and the next opens at %d, want %d and %d", s.at, s.given, open, next, s.open, s.next)
				}
			}
		})
	}
}

// slowLine is the twin of a line: a list of the times at which its permits open, without
// the expired permits.
type slowLine struct {
	opens  []int64 // opening times, may be more than part
	part   int
	credit int
}

func newSlowLine(l Line, most int64) *slowLine {
	s := &slowLine{part: int(l.Part), credit: int(max(l.Credit, 1))}
	for k := int64(0); l.Part > 0 && l.Length > 0; k++ {
		at := l.Phase + (k*l.Length+l.Part-1)/l.Part
		if at > most {
			break
		}
		s.opens = append(s.opens, at)
	}
	return s
}

func (s *slowLine) open(elapsed int64) int {
	n := 0
	for n < len(s.opens) && s.opens[n] <= elapsed {
		n++
	}
	return min(n, s.part)
}

func (s *slowLine) turns(elapsed int64) (n int) {
	for n < len(s.opens) && s.opens[n] <= elapsed {
		n++
	}
	return n
}

func (s *slowLine) idle(elapsed int64, given int) {
	if n := s.turns(elapsed) - given - s.credit; n > 0 {
		s.opens = append(s.opens[:given:given], s.opens[given+n:]...) // These permits expired.
	}
}

// TestLineByListing compares a line with its twin, while callers arrive and some wait.
func TestLineByListing(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for n := range inputs() / 20 {
		l := Line{Part: r.Int64N(30), Length: 1 + r.Int64N(200), Credit: r.Int64N(5), Phase: r.Int64N(10)}
		s := newSlowLine(l, 1000)
		given, waiting := 0, 0
		for elapsed := int64(0); elapsed < 300; elapsed += r.Int64N(20) {
			if waiting == 0 {
				l.Idle(elapsed, int64(given))
				s.idle(elapsed, given)
			}
			if l.Open(elapsed) != int64(s.open(elapsed)) {
				t.Fatalf("line %d, %+v: %d permits are open at %d, want %d", n, l, l.Open(elapsed), elapsed, s.open(elapsed))
			}
			if given < s.part {
				if at := l.When(int64(given) + 1); at != s.opens[given] {
					t.Fatalf("line %d, %+v: permit %d opens at %d, want %d", n, l, given, at, s.opens[given])
				}
			}
			waiting += r.IntN(6)
			give := min(waiting, s.open(elapsed)-given)
			given, waiting = given+give, waiting-give
		}
	}
}

// TestLineEnds checks that a line with the largest numbers does not overflow or run backwards.
func TestLineEnds(t *testing.T) {
	const most = math.MaxInt64
	for _, l := range []Line{
		{Part: most, Length: 1, Credit: most},
		{Part: most, Length: most},
		{Part: 1, Length: most, Phase: most},
		{Part: MaxLimit, Length: int64(MaxPer)},
		{Part: 7, Length: 1, Phase: math.MinInt64},
	} {
		var before int64
		for _, elapsed := range []int64{math.MinInt64, -1, 0, 1, 1 << 40, most - 1, most} {
			l.Idle(elapsed, 0)
			open := l.Open(elapsed)
			if open < 0 || open > l.Part || open < before && l.lapsed == 0 {
				t.Errorf("line %+v: %d permits are open at %d, and %d were open before", l, open, elapsed, before)
			}
			if at := l.When(1); at < l.Phase || l.When(most) < at {
				t.Errorf("line %+v: the first permit opens at %d, and the last at %d", l, at, l.When(most))
			}
			before = open
		}
	}
}

// inputs returns the number of random inputs for each property.
func inputs() int {
	if race.On {
		return 5_000
	}
	return 50_000
}
