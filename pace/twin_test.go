package pace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/pace"
)

// Times in a story: windows of 100 ms, an event every 10 ms from 5 ms on, and deadlines 2 ms
// before each event, so that no two things happen at the same time.
const (
	storyPer  = 100 * time.Millisecond
	storyTick = 10 * time.Millisecond
)

// twin is a slow pacer without smoothing: it goes through a list of waiters, window by window.
type twin struct {
	now        time.Time
	plans      []twinPlan
	window     int64
	given      int64
	part       int64
	stopped    time.Time // by a brake of 0 percent; an edge of a window
	lost       bool
	maxWaiters int
	waiting    []twinWaiter
	served     []report
	refused    []report
	acquired   int64
}

type twinPlan struct {
	schedule.Plan

	from int64 // the window
}

type twinWaiter struct {
	id       int
	n        int64
	deadline time.Time // the zero time means never
}

// report is the result for a caller.
type report struct {
	id    int
	at    time.Duration // since the start of the story
	what  string
	opens time.Time
}

func (w *twin) start(window int64) time.Time { return time.Unix(0, window*int64(storyPer)) }

// plan gives the plan of a window.
func (w *twin) plan(window int64) schedule.Plan {
	plan := w.plans[0].Plan
	for _, p := range w.plans {
		if p.from <= window {
			plan = p.Plan
		}
	}
	return plan
}

func (w *twin) assign(plan schedule.Plan) {
	next := w.window + 1
	w.plans = slices.DeleteFunc(w.plans, func(p twinPlan) bool { return p.from >= next })
	w.plans = append(w.plans, twinPlan{plan, next})
	w.retime()
}

func (w *twin) brake(until time.Time) {
	w.stopped = until
	if until.After(w.now) {
		w.part = w.given
	}
	w.retime()
}

// opens gives the time at which a number of units has been given, if no waiter leaves.
func (w *twin) opens(units int64) (time.Time, bool) {
	rest := w.part - w.given
	if units <= rest {
		return w.now, true
	}
	units -= max(rest, 0)
	for k := w.window + 1; k < w.window+1000; k++ {
		if w.start(k).Before(w.stopped) {
			continue
		}
		if units -= w.plan(k).Part(k); units <= 0 {
			return w.start(k), true
		}
	}
	return time.Time{}, false
}

func (w *twin) retime() {
	var ahead int64
	w.waiting = slices.DeleteFunc(w.waiting, func(who twinWaiter) bool {
		opens, ok := w.opens(ahead + who.n)
		if !w.lost && !who.deadline.IsZero() && (!ok || !opens.Before(who.deadline)) {
			w.refuse(who.id, "timeout", opens)
			return true
		}
		ahead += who.n
		return false
	})
}

func (w *twin) refuse(id int, what string, opens time.Time) {
	w.refused = append(w.refused, report{id: id, at: w.since(), what: what, opens: opens})
}

func (w *twin) since() time.Duration { return w.now.Sub(storyBegins) }

func (w *twin) serve() {
	for len(w.waiting) > 0 && !w.lost && w.waiting[0].n <= w.part-w.given {
		w.give(w.waiting[0].id, w.waiting[0].n)
		w.waiting = w.waiting[1:]
	}
}

func (w *twin) give(id int, n int64) {
	w.given += n
	w.acquired += n
	w.served = append(w.served, report{id: id, at: w.since(), what: "served"})
}

func (w *twin) try(id int, n int64) bool {
	if len(w.waiting) > 0 || w.lost || n > w.part-w.given {
		return false
	}
	w.give(id, n)
	return true
}

func (w *twin) ask(id int, n int64, maxWait time.Duration) {
	if w.try(id, n) {
		return
	}
	last := w.plans[len(w.plans)-1].Plan
	if last.Limit > 0 && n > max(last.Most(), w.plan(w.window).Most()) {
		w.refuse(id, "too large", time.Time{})
		return
	}
	units := n
	for _, who := range w.waiting {
		units += who.n
	}
	who := twinWaiter{id: id, n: n}
	opens, ok := w.opens(units)
	if maxWait != pace.Forever {
		who.deadline = w.now.Add(maxWait)
		if maxWait <= 0 || !w.lost && (!ok || !opens.Before(who.deadline)) {
			w.refuse(id, "timeout", opens)
			return
		}
	}
	if len(w.waiting) >= w.maxWaiters {
		w.refuse(id, "too many", time.Time{})
		return
	}
	w.waiting = append(w.waiting, who)
}

func (w *twin) cancel(id int) bool {
	before := len(w.waiting)
	w.waiting = slices.DeleteFunc(w.waiting, func(who twinWaiter) bool { return who.id == id })
	w.serve()
	return len(w.waiting) < before
}

// pass advances the time, from one edge or deadline to the next.
func (w *twin) pass(to time.Time) {
	for {
		next := w.start(w.window + 1)
		for _, who := range w.waiting {
			if !who.deadline.IsZero() && who.deadline.Before(next) {
				next = who.deadline
			}
		}
		if next.After(to) {
			break
		}
		if w.now = next; next.Equal(w.start(w.window + 1)) {
			w.window++
			w.given, w.part = 0, w.plan(w.window).Part(w.window)
			if next.Before(w.stopped) {
				w.part = 0
			}
		}
		w.serve()
		w.waiting = slices.DeleteFunc(w.waiting, func(who twinWaiter) bool {
			if who.deadline.IsZero() || who.deadline.After(next) {
				return false
			}
			w.refuse(who.id, "timeout", time.Time{})
			return true
		})
		w.serve()
	}
	w.now = to
}

// storyBegins is the start of the clocks in bubbles, which is an edge.
var storyBegins = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// story is a pacer and its twin, with the same events.
type story struct {
	t       *testing.T
	next    func(n int) int // gives a number from 0 to n-1
	twin    twin
	p       *pace.Pacer
	to      pace.Receiver
	tickets map[int]pace.Ticket
	ids     int
	units   int64 // the largest request
	plans   bool  // the plan changes; otherwise the source is sometimes lost

	mu              sync.Mutex
	served, refused []report
}

func (s *story) receive(id int, err error, opened bool) {
	what := report{id: id, at: time.Since(storyBegins), what: "served"}
	var late *pace.TimeoutError
	switch {
	case err == nil:
	case errors.As(err, &late):
		what.what = "timeout"
		if opened {
			what.opens = late.Opens
		}
	case errors.Is(err, pace.ErrTooLarge):
		what.what = "too large"
	case errors.Is(err, pace.ErrTooManyWaiters):
		what.what = "too many"
	default:
		what.what = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.served = append(s.served, what)
	} else {
		s.refused = append(s.refused, what)
	}
}

func (s *story) plan() schedule.Plan {
	instances := []int{1, 3, 7}[s.next(3)]
	return even(s.t, int64(s.next(13)), storyPer, instances, s.next(instances))
}

// some gives the units of a request.
func (s *story) some() int64 { return 1 + int64(s.next(int(s.units))) }

func (s *story) ask() {
	n, maxWait := s.some(), pace.Forever
	if k := s.next(60); k < 50 {
		maxWait = time.Duration(k)*storyTick - 2*time.Millisecond + time.Duration(s.ids) // no two deadlines are equal
	}
	id := s.ids
	s.ids++
	s.twin.ask(id, n, maxWait)
	at := time.Now()
	s.tickets[id] = s.p.AcquireFunc(n, maxWait, func(_ headgate.Instant, err error) {
		s.receive(id, err, time.Since(at) == 0)
	})
}

func (s *story) step() {
	switch k := s.next(12); {
	case k < 6:
		s.ask()
	case k < 7:
		n := s.some()
		id := s.ids
		s.ids++
		got := s.p.TryAcquireN(n)
		if got {
			s.receive(id, nil, false)
		}
		if want := s.twin.try(id, n); got != want {
			s.t.Errorf("at %v: TryAcquireN(%d) is %v, want %v", s.twin.since(), n, got, want)
		}
	case k < 9 && s.ids > 0:
		id := max(s.ids-1-s.next(8), 0)
		if got, want := s.tickets[id].Cancel(), s.twin.cancel(id); got != want {
			s.t.Errorf("at %v: Cancel of %d is %v, want %v", s.twin.since(), id, got, want)
		}
	case k < 10 && s.plans:
		plan := s.plan()
		s.twin.assign(plan)
		s.to.Assign(pace.Assignment{Plan: plan, Revision: int64(len(s.twin.plans)) + s.twin.now.UnixNano()})
	case k < 11 && s.plans:
		until := s.twin.start(s.twin.window + int64(s.next(6)))
		s.twin.brake(until)
		s.to.Brake(pace.Brake{Until: until})
	case k < 11 && !s.plans:
		s.twin.lost = !s.twin.lost
		if s.twin.lost {
			s.to.ValidUntil(time.Now())
		} else {
			s.to.ValidUntil(time.Time{})
			s.twin.serve()
		}
	default:
		s.pass(storyTick * time.Duration(s.next(30)))
	}
	s.pass(storyTick)
}

func (s *story) pass(d time.Duration) {
	s.twin.pass(s.twin.now.Add(d))
	sleep(d)
	synctest.Wait()
	stats := s.p.Stats()
	if stats.Waiters != len(s.twin.waiting) || int64(stats.Acquired) != s.twin.acquired || stats.Part != s.twin.part {
		s.t.Errorf("at %v: %d wait, %d were given, the part is %d; want %d, %d, %d", s.twin.since(),
			stats.Waiters, stats.Acquired, stats.Part, len(s.twin.waiting), s.twin.acquired, s.twin.part)
	}
}

// tell runs the same events on a pacer and its twin, and compares their results.
func tell(t *testing.T, steps int, next func(n int) int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := story{t: t, next: next, tickets: map[int]pace.Ticket{}, units: 1, plans: next(2) == 0}
		if !s.plans {
			s.units = 1 + int64(next(5))
		}
		s.twin = twin{now: storyBegins, window: storyBegins.UnixNano() / int64(storyPer), maxWaiters: 2 + next(12)}
		plan := s.plan()
		s.twin.plans = []twinPlan{{plan, s.twin.window}}
		s.twin.part = plan.Part(s.twin.window)
		s.p, s.to = scriptedPacer(t, pace.Config{MaxWaiters: s.twin.maxWaiters})
		s.to.Assign(pace.Assignment{Plan: plan, Revision: 1})
		s.pass(storyTick / 2)
		for range steps {
			if s.step(); t.Failed() {
				break
			}
		}
		s.p.Close()
		for _, who := range s.twin.waiting {
			s.twin.refuse(who.id, pace.ErrClosed.Error(), time.Time{})
		}
		s.compare()
	})
}

func (s *story) compare() {
	for i := range max(len(s.served), len(s.twin.served)) {
		if i >= len(s.served) || i >= len(s.twin.served) || s.served[i] != s.twin.served[i] {
			s.t.Errorf("served: %v,\nwant %v", around(s.served, i), around(s.twin.served, i))
			break
		}
	}
	byID := func(a, b report) int { return a.id - b.id }
	slices.SortFunc(s.refused, byID)
	slices.SortFunc(s.twin.refused, byID)
	for i := range max(len(s.refused), len(s.twin.refused)) {
		if i < len(s.refused) && i < len(s.twin.refused) {
			got, want := s.refused[i], s.twin.refused[i]
			if got.opens.IsZero() || want.opens.IsZero() || got.opens.Equal(want.opens) {
				got.opens, want.opens = time.Time{}, time.Time{}
			}
			if got == want {
				continue
			}
		}
		s.t.Errorf("refused: %v,\nwant %v", around(s.refused, i), around(s.twin.refused, i))
		break
	}
}

func around(all []report, i int) string {
	return fmt.Sprint(all[min(max(i-1, 0), len(all)):min(i+3, len(all))])
}

// TestTwin: a pacer equals its slow twin, to the nanosecond.
func TestTwin(t *testing.T) {
	stories := uint64(1000)
	if race.On {
		stories = 60
	}
	for seed := range stories {
		random := rand.New(rand.NewPCG(seed, 6))
		if tell(t, 150, random.IntN); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
