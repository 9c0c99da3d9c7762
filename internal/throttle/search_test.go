package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// tried is a searcher before a service of four cores, whose requests take 1 or 20 ms of CPU time and wait
// 10 ms for others.
type tried struct {
	*testing.T

	searcher

	now     headgate.Instant
	most    float64 // requests that the traffic brings at once
	silent  bool    // the service reports nothing
	late    bool    // all clients leave
	another time.Duration
}

func triedAt(t *testing.T, start int, c Search) *tried {
	t.Helper()
	if err := c.check(start); err != nil {
		t.Fatal(err)
	}
	s := &tried{T: t, now: headgate.Instant(time.Hour), most: math.Inf(1), another: 10 * time.Millisecond}
	s.configure(c, start)
	return s
}

// runs simulates seconds of the service, as means: all requests in flight slow each other down equally.
func (s *tried) runs(seconds int) {
	const mean = 0.0105 // seconds of CPU time
	for range seconds {
		queued := s.most > s.limit
		n := min(s.limit, s.most)
		waiting := 4 / mean * s.another.Seconds() // at most, by Little's law
		slope := max(1, (n-waiting)/4)
		ended := int(n / (s.another.Seconds() + slope*mean))
		for i := range ended {
			work := time.Millisecond
			if i%2 == 0 {
				work = 20 * time.Millisecond
			}
			span := s.another + time.Duration(slope*float64(work))
			began := s.now
			s.change(began, int(n))
			r := &Request{area: s.area}
			s.now = s.now.Add(span)
			s.change(s.now, int(n))
			s.now = began.Add(time.Second / time.Duration(ended))
			s.counted = s.now
			e := Ended{Work: work}
			if s.silent {
				e.Work = 0
			}
			if s.late {
				e.Lesson = LearnMiss
			}
			s.end(s.now, r, e, span, queued)
		}
	}
}

func (s *tried) is(what string, got, low, high int) {
	s.Helper()
	if got < low || got > high {
		s.Errorf("%s: %d, want %d to %d", what, got, low, high)
	}
}

var applied = Search{Min: 4, Max: 100, Apply: true}

// TestSearch reads as a story: four cores need 12 requests that run, and those that wait meanwhile.
func TestSearch(t *testing.T) {
	t.Parallel()
	s := triedAt(t, 90, applied)
	s.runs(10)
	s.is("too many", s.found(), 13, 20)
	if s.eased == 0 {
		t.Error("a cut does not ease the service")
	}
	s.another = 100 * time.Millisecond
	s.runs(20)
	s.is("a slow dependency", s.found(), 36, 60)
	s.another = 10 * time.Millisecond
	s.runs(20)
	s.is("a fast one again", s.found(), 13, 20)

	s.most = 8
	s.runs(3) // A trial ends.
	before := s.limit
	s.runs(20)
	if s.limit != before {
		t.Errorf("without a queue the limit moved from %v to %v", before, s.limit)
	}
	s.configure(Search{Min: 30, Max: 50, Apply: true}, 40)
	s.is("other bounds", s.found(), 30, 30)
	s.configure(Search{}, 7)
	s.is("no search", int(s.limit), 7, 7)
	s.is("no search", s.found(), 0, 0)
}

// TestSearchWithoutQueue: requests that slow each other down show the limit before a queue does.
func TestSearchWithoutQueue(t *testing.T) {
	t.Parallel()
	s := triedAt(t, 90, applied)
	s.most = 14
	s.runs(5)
	s.is("a busy service", s.found(), 13, 20)
	s = triedAt(t, 90, applied)
	s.most = 5
	s.runs(5)
	s.is("a calm service", s.found(), 90, 90)
}

// TestSearchWithoutReports: the search does not move the limit of a service that reports nothing.
func TestSearchWithoutReports(t *testing.T) {
	t.Parallel()
	s := triedAt(t, 90, applied)
	s.silent = true
	s.runs(20)
	s.is("no reports", s.found(), 90, 90)
}

// TestSearchAdvice: a search that is not applied only tells.
func TestSearchAdvice(t *testing.T) {
	t.Parallel()
	s := triedAt(t, 60, Search{Min: 4, Max: 100})
	s.most = 3
	s.runs(5)
	s.is("calm", s.found(), 0, 0)
	s.most = 1000
	s.runs(5)
	s.is("busy", s.found(), 12, 20)
	s.is("the limit in use", int(s.limit), 60, 60)
	s.configure(applied, 50)
	s.is("applied now", s.found(), 50, 50)
}

// TestSearchNumbers: clocks that step back, windows without time, and work of nothing give no numbers that
// are none.
func TestSearchNumbers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := triedAt(t, 1+r.IntN(50), Search{Min: 1, Max: 50, Apply: r.IntN(2) == 0})
		for range 5000 {
			s.now = s.now.Add(time.Duration(r.IntN(int(20*time.Millisecond)) - int(5*time.Millisecond)))
			s.change(s.now, r.IntN(100))
			e := Ended{Work: time.Duration(r.IntN(int(30*time.Millisecond)) - int(10*time.Millisecond)), Lesson: Lesson(r.IntN(3))}
			s.end(s.now, &Request{area: s.area * r.Float64()}, e, time.Duration(r.IntN(int(50*time.Millisecond))), r.IntN(3) > 0)
			if !(s.limit >= 1 && s.limit <= 50) || !(s.advice >= 0 && s.advice <= 50) {
				t.Fatalf("seed %d: the limit is %v, the advice is %v", seed, s.limit, s.advice)
			}
		}
	}
}

// TestSearchFaults lists the faults of the configuration.
func TestSearchFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{CPUInFlight: time.Second, Search: applied},
		{Concurrency: 3, Search: applied},
		{Concurrency: 101, Search: applied},
		{Concurrency: 5, Search: Search{Max: 9}},
		{Concurrency: 5, Search: Search{Min: 1, Max: maxConcurrency + 1}},
		{Concurrency: 5, Search: Search{Apply: true}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c.Search)
		}
	}
}

// TestLine compares the regression with an obvious one in two passes.
func TestLine(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 4))
	for range 200 {
		n, a, b := 25+r.IntN(200), r.Float64(), 10*r.Float64()
		var g regression
		xs, ys := make([]float64, n), make([]float64, n)
		for i := range n {
			xs[i] = r.ExpFloat64()
			ys[i] = a + b*xs[i] + r.NormFloat64()/10
			g.add(xs[i], ys[i])
		}
		l, ok := g.line()
		slope, intercept, err := twoPasses(xs, ys)
		if !ok || math.Abs(l.slope-slope) > 1e-6 || math.Abs(l.intercept-intercept) > 1e-6 || math.Abs(l.err-err) > 1e-6 {
			t.Fatalf("line is %+v (%v), want %v + %v x, with the error %v", l, ok, intercept, slope, err)
		}
	}
	var equal regression
	for range 100 {
		equal.add(3, 4)
	}
	if l, ok := equal.line(); ok {
		t.Errorf("equal values give the line %+v", l)
	}
}

func twoPasses(xs, ys []float64) (slope, intercept, err float64) {
	n := float64(len(xs))
	var mx, my, sxx, sxy, rest float64
	for i := range xs {
		mx += xs[i] / n
		my += ys[i] / n
	}
	for i := range xs {
		sxx += (xs[i] - mx) * (xs[i] - mx)
		sxy += (xs[i] - mx) * (ys[i] - my)
	}
	slope = sxy / sxx
	intercept = my - slope*mx
	for i := range xs {
		off := ys[i] - intercept - slope*xs[i]
		rest += off * off
	}
	return slope, intercept, math.Sqrt(rest / n / sxx)
}
