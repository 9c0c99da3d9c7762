package pace_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// asker is a pacer of either kind: f is called once.
type asker interface {
	ask(maxWait time.Duration, f func(error))
}

// published is the pacer of the article: its counter is set to 0 in each new second of the wall
// clock. A caller that finds the counter full tries again in its own task, when the next second
// begins.
type published struct {
	limit   int64
	wall    func() headgate.Instant
	late    time.Duration // the delay of its timers
	mu      sync.Mutex
	random  *rand.Rand
	second  int64
	counter int64
	tasks   map[time.Time][]func()
}

func newPublished(limit int64, wall func() headgate.Instant) *published {
	return &published{
		limit: limit, wall: wall, second: int64(wall()) / int64(time.Second),
		random: rand.New(rand.NewPCG(1, 2)), tasks: map[time.Time][]func(){},
	}
}

var errLate = errors.New("it would take too long")

// try gives 0 for a permit, and otherwise the time until the next second.
func (p *published) try() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := int64(p.wall())
	second := now / int64(time.Second)
	switch {
	case second != p.second:
		p.second, p.counter = second, 1
		return 0
	case p.counter < p.limit:
		p.counter++
		return 0
	}
	return time.Duration((second+1)*int64(time.Second) - now)
}

func (p *published) ask(maxWait time.Duration, f func(error)) { p.again(maxWait, 0, f) }

func (p *published) again(maxWait, waited time.Duration, f func(error)) {
	wait := p.try()
	waited += wait
	switch {
	case wait == 0:
		f(nil)
	case maxWait <= waited:
		f(errLate)
	default:
		p.after(wait+p.late, func() { p.again(maxWait, waited, f) })
	}
}

// after runs tasks of one due time in random order, as a scheduler does.
func (p *published) after(d time.Duration, task func()) {
	at := time.Now().Add(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.tasks[at]; !known {
		time.AfterFunc(d, func() {
			p.mu.Lock()
			due := p.tasks[at]
			delete(p.tasks, at)
			p.random.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
			p.mu.Unlock()
			for _, task := range due {
				task()
			}
		})
	}
	p.tasks[at] = append(p.tasks[at], task)
}

// oneByOne lets one goroutine at a time call the callback.
type oneByOne struct {
	asker

	mu *sync.Mutex
}

func (o oneByOne) ask(maxWait time.Duration, f func(error)) {
	o.asker.ask(maxWait, func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		f(err)
	})
}

type ours struct{ *pace.Pacer }

func (o ours) ask(maxWait time.Duration, f func(error)) {
	o.AcquireFunc(1, maxWait, func(_ headgate.Instant, err error) { f(err) })
}

// bothWays shows that a property fails for the published pacer and holds for a Pacer.
func bothWays(t *testing.T, limit int64, c pace.Config, property func(a asker, wall *setClock) string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		if wrong := property(newPublished(limit, wall.now), &wall); wrong == "" {
			t.Error("the published algorithm has the property: this test shows nothing")
		} else {
			t.Log("published:", wrong)
		}
		sleep(time.Hour) // After this time, no caller waits.
	})
	synctest.Test(t, func(t *testing.T) {
		toEdge(time.Second)
		var wall setClock
		c.Wall = wall.now
		if wrong := property(ours{static(t, limit, c)}, &wall); wrong != "" {
			t.Error(wrong)
		}
	})
}

// most gives the largest number of times within d.
func most(at []time.Time, d time.Duration) int {
	best, from := 0, 0
	for to := range at {
		for at[to].Sub(at[from]) >= d {
			from++
		}
		best = max(best, to-from+1)
	}
	return best
}

// TestPublishedLimitOfZero: at a new second, the published pacer does not check the limit.
func TestPublishedLimitOfZero(t *testing.T) {
	bothWays(t, 0, pace.Config{}, func(a asker, _ *setClock) string {
		a = oneByOne{a, new(sync.Mutex)}
		admitted := 0
		for range 100 {
			a.ask(0, func(err error) {
				if err == nil {
					admitted++
				}
			})
			sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if admitted > 0 {
			return "a limit of 0 admits"
		}
		return ""
	})
}

// TestPublishedClockSteps: the published pacer sets its counter to 0 whenever the second
// differs.
func TestPublishedClockSteps(t *testing.T) {
	for _, step := range []time.Duration{
		-100 * time.Millisecond, -time.Second, -time.Hour, 100 * time.Millisecond, time.Second, time.Hour,
	} {
		t.Run(step.String(), func(t *testing.T) {
			const limit = 10
			bothWays(t, limit, pace.Config{}, func(a asker, wall *setClock) string {
				a = oneByOne{a, new(sync.Mutex)}
				var at []time.Time
				for i := range 1000 {
					if i%7 == 3 && i < 200 {
						wall.set(step)
					} else if i%7 == 5 && i < 200 {
						wall.set(-step)
					}
					for range limit + 1 {
						a.ask(0, func(err error) {
							if err == nil {
								at = append(at, time.Now())
							}
						})
					}
					sleep(10 * time.Millisecond)
				}
				synctest.Wait()
				if n := most(at, time.Second); n > 2*limit {
					return "more than two seconds' permits within one second"
				}
				if len(at) < 7*limit { // the clock does not change in eight of ten seconds
					return "a clock that is set takes permits away"
				}
				return ""
			})
		})
	}
}

// TestPublishedOrder: all waiters for the next second wake up in random order, and a new caller
// may come first.
func TestPublishedOrder(t *testing.T) {
	bothWays(t, 2, pace.Config{}, func(a asker, _ *setClock) string {
		a = oneByOne{a, new(sync.Mutex)}
		var order []int
		for i := range 100 {
			a.ask(pace.Forever, func(err error) {
				if err == nil {
					order = append(order, i)
				}
			})
			sleep(20 * time.Millisecond)
		}
		sleep(2 * time.Minute)
		synctest.Wait()
		switch {
		case len(order) != 100:
			return "not all were served"
		case !slices.IsSorted(order):
			return "who came later was served before"
		}
		return ""
	})
}

// TestPublishedStarvation: a caller that can wait for all earlier callers must not be refused
// because later callers went first.
func TestPublishedStarvation(t *testing.T) {
	bothWays(t, 5, pace.Config{}, func(a asker, _ *setClock) string {
		a = oneByOne{a, new(sync.Mutex)}
		lost := 0
		for i := range 50 {
			a.ask(time.Duration(i/5+1)*time.Second, func(err error) {
				if err != nil {
					lost++
				}
			})
		}
		for range 200 { // as many callers again, later
			sleep(50 * time.Millisecond)
			a.ask(pace.Forever, func(error) {})
		}
		synctest.Wait()
		if lost > 0 {
			return "who came in time was refused"
		}
		return ""
	})
}

// TestPublishedLateTimers: the published pacer counts the planned wait, not the real one.
func TestPublishedLateTimers(t *testing.T) {
	const late = 400 * time.Millisecond
	bothWays(t, 1, pace.Config{}, func(a asker, _ *setClock) string {
		if p, ok := a.(*published); ok {
			p.late = late
		}
		slow := func(error) {
			if _, ok := a.(ours); ok {
				sleep(late) // an earlier callback delays the timer
			}
		}
		for i := range 10 {
			a.ask(time.Duration(i+1)*time.Second, slow)
		}
		wrong := ""
		fine := oneByOne{a, new(sync.Mutex)}
		for i := range 40 {
			began, maxWait := time.Now(), time.Duration(i)*97*time.Millisecond
			fine.ask(maxWait, func(error) {
				if elapsed := time.Since(began); elapsed > maxWait+late {
					wrong = "told long after its time"
				}
			})
			sleep(83 * time.Millisecond)
		}
		sleep(time.Minute)
		synctest.Wait()
		return wrong
	})
}

// TestPublishedBurst: all permits of a second open at its start.
func TestPublishedBurst(t *testing.T) {
	const limit, seconds = 10_000, 2
	bothWays(t, limit, pace.Config{Smoothing: pace.EvenSpread, MaxWaiters: 1 << 20}, func(a asker, _ *setClock) string {
		a = oneByOne{a, new(sync.Mutex)}
		var slots [100 * seconds]float64
		began := time.Now()
		for range seconds {
			for range 3 * limit {
				a.ask(pace.Forever, func(err error) {
					if slot := int(time.Since(began) / (10 * time.Millisecond)); err == nil && slot < len(slots) {
						slots[slot]++
					}
				})
			}
			sleep(time.Second)
		}
		sleep(time.Millisecond)
		synctest.Wait()
		sum, squares := 0.0, 0.0
		for _, n := range slots {
			sum += n
		}
		mean := sum / float64(len(slots))
		for _, n := range slots {
			squares += (n - mean) * (n - mean)
		}
		switch variation := math.Sqrt(squares/float64(len(slots))) / mean; {
		case variation > 0.2:
			return "the coefficient of variation over slots of 10 ms is above 0.2"
		case sum < 0.99*limit*seconds || sum > limit*seconds:
			return "less than 99 percent, or more than all, is used"
		}
		return ""
	})
}

// TestPublishedDivision: 10 a second over 96 instances is 10 a second, not 0 and not 96.
func TestPublishedDivision(t *testing.T) {
	for _, limit := range []int64{10, 95, 1000} {
		const instances, seconds = 96, 10
		used := func(fleet []asker) (seen [seconds]int64) {
			began := time.Now()
			for range seconds * 10 {
				for _, a := range fleet {
					for range limit/instances + 2 {
						a.ask(0, func(err error) {
							if err == nil {
								seen[time.Since(began)/time.Second]++
							}
						})
					}
				}
				sleep(100 * time.Millisecond)
			}
			return seen
		}
		synctest.Test(t, func(t *testing.T) {
			toEdge(time.Second)
			var wall setClock
			var theirs, fleet []asker
			for i := range instances {
				theirs = append(theirs, newPublished(limit/instances, wall.now))
				p, to := scriptedPacer(t, pace.Config{})
				to.Assign(pace.Assignment{Plan: even(t, limit, time.Second, instances, i), Revision: 1})
				fleet = append(fleet, ours{p})
			}
			for second, n := range used(fleet) {
				if n != limit {
					t.Errorf("%d of %d in second %d", n, limit, second)
				}
			}
			toEdge(time.Second)
			right := true
			for _, n := range used(theirs) {
				right = right && n == limit
			}
			if right {
				t.Errorf("the published division is right for %d: this shows nothing", limit)
			}
		})
	}
}
