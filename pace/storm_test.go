package pace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
)

// storm is a set of goroutines that make random calls in real time.
type storm struct {
	p       *pace.Pacer
	units   atomic.Uint64 // units given
	waiting atomic.Int64  // callbacks that are neither called nor cancelled
	wrong   atomic.Int64  // callbacks that were called twice, or after a successful Cancel
}

// do makes one random call.
func (s *storm) do(random *rand.Rand) {
	n := 1 + random.Int64N(3)
	maxWait := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
	switch random.IntN(6) {
	case 0:
		if s.p.TryAcquireN(n) {
			s.units.Add(uint64(n))
		}
	case 1:
		ctx, cancel := context.WithTimeout(context.Background(), maxWait)
		if s.p.AcquireN(ctx, n, pace.Forever) == nil {
			s.units.Add(uint64(n))
		}
		cancel()
	case 2:
		ctx, cancel := context.WithCancel(context.Background())
		stop := time.AfterFunc(maxWait/4, cancel)
		if s.p.AcquireN(ctx, n, maxWait) == nil {
			s.units.Add(uint64(n))
		}
		stop.Stop()
		cancel()
	default:
		s.callback(n, maxWait, random.IntN(2) == 0, random.IntN(8) == 0)
	}
}

func (s *storm) callback(n int64, maxWait time.Duration, cancel, again bool) {
	var notified atomic.Int32
	s.waiting.Add(1)
	ticket := s.p.AcquireFunc(n, maxWait, func(_ headgate.Instant, err error) {
		if notified.Add(1) != 1 {
			s.wrong.Add(1)
		}
		s.waiting.Add(-1)
		if err == nil {
			s.units.Add(uint64(n))
		}
		if again {
			s.p.Stats()
			s.callback(1, maxWait, true, false)
		}
	})
	if cancel && ticket.Cancel() {
		if notified.Add(1) != 1 {
			s.wrong.Add(1)
		}
		s.waiting.Add(-1)
	}
}

// blow runs a storm for some time, beside meanwhile.
func (s *storm) blow(seed uint64, d time.Duration, meanwhile func(*rand.Rand)) {
	var all sync.WaitGroup
	until := time.Now().Add(d)
	for i := range uint64(16) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, i))
			for time.Now().Before(until) {
				if i == 0 {
					meanwhile(random)
				} else {
					s.do(random)
				}
			}
		})
	}
	all.Wait()
}

// TestStormChanges changes plans, brakes and clocks, and loses the source, during a storm. No
// unit is lost or counted twice, and each callback is called once.
func TestStormChanges(t *testing.T) {
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			var wall setClock
			p, to := scriptedPacer(t, pace.Config{Smoothing: smoothing, MaxWaiters: 500, Wall: wall.now})
			s := storm{p: p}
			revision := int64(0)
			s.blow(uint64(smoothing), 200*time.Millisecond, func(random *rand.Rand) {
				switch random.IntN(8) {
				case 0, 1, 2:
					revision++
					pers := []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond}
					to.Assign(pace.Assignment{
						Plan:     even(t, random.Int64N(300), pers[random.IntN(len(pers))], 1, 0),
						Revision: revision,
					})
				case 3:
					to.ValidUntil(time.Now().Add(time.Duration(random.Int64N(int64(5 * time.Millisecond)))))
				case 4:
					to.ValidUntil(time.Time{})
				case 5:
					b := pace.Brake{Until: time.Now().Add(3 * time.Millisecond), Percent: random.IntN(101)}
					to.Brake(b)
					p.Brake(b)
				case 6:
					wall.set(time.Duration(random.Int64N(int64(2*time.Millisecond))) - time.Millisecond)
				default:
					to.Demand()
					to.ClockOffset(time.Millisecond)
					to.Fault(errors.New("a fault"))
				}
				sleep(500 * time.Microsecond)
			})
			s.settle(t)
		})
	}
}

// settle closes the pacer and compares the statistics with the callbacks.
func (s *storm) settle(t *testing.T) {
	t.Helper()
	s.p.Close()
	if got, want := s.p.Stats().Acquired, s.units.Load(); got != want {
		t.Errorf("%d units are counted, and %d were given", got, want)
	}
	if n := s.waiting.Load(); n != 0 {
		t.Errorf("%d were never told", n)
	}
	if n := s.wrong.Load(); n != 0 {
		t.Errorf("%d were told twice", n)
	}
	if n := s.p.Stats().Waiters; n != 0 {
		t.Errorf("%d wait still", n)
	}
}

// TestStormKeepsTheLimit: with many concurrent callers, no window gives more than its part.
func TestStormKeepsTheLimit(t *testing.T) {
	const per = 10 * time.Millisecond
	for _, smoothing := range []pace.Smoothing{pace.Off, pace.EvenSpread, pace.PID} {
		t.Run(smoothing.String(), func(t *testing.T) {
			p, to := scriptedPacer(t, pace.Config{Smoothing: smoothing})
			plan := even(t, 200, per, 3, 1)
			to.Assign(pace.Assignment{Plan: plan, Revision: 1})
			var windows sync.Map
			var all sync.WaitGroup
			until := time.Now().Add(150 * time.Millisecond)
			for range 8 {
				all.Go(func() {
					for time.Now().Before(until) {
						p.AcquireFunc(1, 15*time.Millisecond, func(at headgate.Instant, err error) {
							if err == nil {
								n, _ := windows.LoadOrStore(plan.Window(at), new(atomic.Int64))
								n.(*atomic.Int64).Add(1)
							}
						})
					}
				})
			}
			all.Wait()
			p.Close()
			windows.Range(func(window, n any) bool {
				if got, part := n.(*atomic.Int64).Load(), plan.Part(window.(int64)); got > part {
					t.Errorf("%d in window %d, whose part is %d", got, window, part)
				}
				return true
			})
		})
	}
}

// TestCloseInAStorm: Close notifies all callers, and then returns.
func TestCloseInAStorm(t *testing.T) {
	for round := range uint64(20) {
		p, to := scriptedPacer(t, pace.Config{})
		to.Assign(pace.Assignment{Plan: even(t, 50, time.Millisecond, 1, 0), Revision: 1})
		s := storm{p: p}
		var closing sync.Once
		s.blow(round, 5*time.Millisecond, func(*rand.Rand) {
			sleep(2 * time.Millisecond)
			closing.Do(p.Close)
		})
		s.settle(t)
	}
}
