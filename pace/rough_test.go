package pace_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/pace"
)

// rough is a pacer with random events: changed clocks, plans with other windows, brakes, lost
// sources, and callbacks that call the pacer. The invariants must hold at any time.
type rough struct {
	t         *testing.T
	choose    func(n int) int
	choice    sync.Mutex
	p         *pace.Pacer
	to        pace.Receiver
	wall      setClock
	mu        sync.Mutex // guards the fields below, for callbacks
	asked     []*roughAsk
	units     int64       // units given, by the callbacks
	overtaken []*roughAsk // decided, but notified after a later caller
	plain     bool        // plan and clock do not change: windows are exact
	per       time.Duration
	windows   map[int64]int64
	parts     func(window int64) int64
	nested    int
}

type roughAsk struct {
	id        int
	n         int64
	since     time.Time
	deadline  time.Time
	ticket    pace.Ticket
	answers   int
	cancelled bool
	immediate bool
}

// next gives a number from 0 to n-1.
func (r *rough) next(n int) int {
	r.choice.Lock()
	defer r.choice.Unlock()
	return r.choose(n)
}

func (r *rough) ask(n int64, maxWait time.Duration) {
	r.mu.Lock()
	a := &roughAsk{id: len(r.asked), n: n, since: time.Now(), immediate: true}
	if maxWait != pace.Forever {
		a.deadline = a.since.Add(max(maxWait, 0))
	}
	r.asked = append(r.asked, a)
	r.mu.Unlock()
	ticket := r.p.AcquireFunc(n, maxWait, func(_ headgate.Instant, err error) { r.receive(a, err) })
	r.mu.Lock()
	defer r.mu.Unlock()
	a.ticket, a.immediate = ticket, false
}

func (r *rough) receive(a *roughAsk, err error) {
	r.mu.Lock()
	r.note(a, err)
	what := 3
	if r.nested > 0 && r.next(4) == 0 { // A callback may do anything except wait.
		r.nested--
		what = r.next(3)
	}
	wait, whom := time.Duration(r.next(3))*time.Second, r.next(len(r.asked))
	r.mu.Unlock()
	switch what {
	case 0:
		r.ask(1, wait)
	case 1:
		r.cancel(whom)
	case 2:
		r.p.Stats()
	}
}

func (r *rough) note(a *roughAsk, err error) {
	a.answers++
	now := time.Now()
	switch {
	case a.answers > 1 || a.cancelled:
		r.t.Errorf("%d was told %d times, cancelled %v", a.id, a.answers, a.cancelled)
	case err == nil:
		r.given(a, now)
	case errors.Is(err, pace.ErrTimeout):
		if !a.deadline.IsZero() && now.After(a.deadline) {
			r.t.Errorf("%d was refused %v after its deadline", a.id, now.Sub(a.deadline))
		}
		if a.deadline.IsZero() {
			r.t.Errorf("%d would wait for ever, and was told %v", a.id, err)
		}
	}
}

func (r *rough) given(a *roughAsk, now time.Time) {
	r.units += a.n
	for _, before := range r.asked[:a.id] {
		if before.answers > 0 || before.cancelled || before.immediate {
			continue
		}
		if r.overtaken = append(r.overtaken, before); !a.immediate {
			r.t.Errorf("%d was served before %d", a.id, before.id)
		}
	}
	if !a.deadline.IsZero() && now.After(a.deadline) && !a.immediate {
		// Units that opened before the deadline are given at the next check.
		if late := now.Sub(a.deadline); late > 500*time.Microsecond {
			r.t.Errorf("%d was served %v after its deadline", a.id, late)
		}
	}
	if r.plain {
		window := now.UnixNano() / int64(r.per)
		if r.windows[window] += a.n; r.windows[window] > r.parts(window) {
			r.t.Errorf("%d in window %d, whose part is %d", r.windows[window], window, r.parts(window))
		}
	}
}

func (r *rough) cancel(id int) {
	r.mu.Lock()
	a := r.asked[id]
	ticket := a.ticket
	r.mu.Unlock()
	cancelled := ticket.Cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancelled && a.answers > 0 {
		r.t.Errorf("%d was told, and then cancelled", a.id)
	}
	a.cancelled = a.cancelled || cancelled
}

func (r *rough) assign(limit int64) {
	instances := 1 + r.next(5)
	plan := even(r.t, limit, r.per, instances, r.next(instances))
	a := pace.Assignment{Plan: plan, Revision: time.Now().UnixNano()}
	if r.next(3) == 0 {
		wall := r.wall.now()
		a.From = plan.Start(plan.Window(wall) + int64(r.next(4)))
	}
	if r.next(3) == 0 {
		a.Settled = time.Now().Add(time.Duration(r.next(2000)) * time.Millisecond)
	}
	r.to.Assign(a)
}

var (
	roughPers  = []time.Duration{time.Millisecond, 70 * time.Millisecond, time.Second, time.Minute, time.Hour}
	roughSteps = []time.Duration{time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, time.Second, 20 * time.Second}
)

func (r *rough) step() {
	switch r.next(16) {
	case 0, 1, 2, 3, 4:
		maxWait := time.Duration(r.next(1<<16)) * 100 * time.Microsecond
		if r.next(3) == 0 {
			maxWait = pace.Forever
		}
		r.ask(1+int64(r.next(4)), maxWait)
	case 5:
		if n := 1 + int64(r.next(4)); r.p.TryAcquireN(n) {
			r.mu.Lock()
			a := &roughAsk{id: len(r.asked), n: n, since: time.Now(), answers: 1, immediate: true}
			r.asked = append(r.asked, a)
			r.given(a, time.Now())
			r.mu.Unlock()
		}
	case 6, 7:
		r.mu.Lock()
		asked := len(r.asked)
		r.mu.Unlock()
		if asked > 0 {
			r.cancel(r.next(asked))
		}
	case 8:
		until := r.wall.now().Time().Add(time.Duration(r.next(5000)) * time.Millisecond)
		if b := (pace.Brake{Until: until, Percent: r.next(101)}); r.next(2) == 0 {
			r.p.Brake(b)
		} else {
			r.to.Brake(b)
		}
	case 9:
		r.to.ValidUntil(r.wall.now().Time().Add(time.Duration(r.next(3000)) * time.Millisecond))
	case 10:
		r.to.ValidUntil(time.Time{})
	case 11:
		if !r.plain {
			r.per = roughPers[r.next(len(roughPers))]
			r.assign(int64(r.next(20)))
		}
	case 12:
		if !r.plain {
			r.wall.set(roughSteps[r.next(len(roughSteps))] * time.Duration(1-2*r.next(2)))
		}
	default:
		sleep(time.Duration(r.next(1<<12)) * 300 * time.Microsecond)
	}
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.overtaken {
		if a.answers == 0 {
			r.t.Errorf("%d was passed over", a.id)
		}
	}
	r.overtaken = nil
}

// check compares the statistics with the callbacks, when no call is in progress.
func (r *rough) check() {
	sleep(time.Millisecond)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := 0
	for _, a := range r.asked {
		if a.answers == 0 && !a.cancelled {
			waiting++
		}
	}
	if s := r.p.Stats(); s.Waiters != waiting || s.Acquired != uint64(r.units) {
		r.t.Errorf("%d wait, and %d units were given; it says %d and %d", waiting, r.units, s.Waiters, s.Acquired)
	}
}

// calm ends all brakes and faults, and checks that all waiters are served.
func (r *rough) calm() {
	r.to.ValidUntil(time.Time{})
	r.to.Brake(pace.Brake{})
	r.mu.Lock()
	r.nested = 0
	r.mu.Unlock()
	if !r.plain {
		r.per = time.Second
		r.to.Assign(pace.Assignment{Plan: even(r.t, 50, r.per, 1, 0), Revision: time.Now().UnixNano()})
	}
	sleep(time.Hour)
	sleep(time.Duration(len(r.asked)*5) * r.per)
	synctest.Wait()
	r.mu.Lock()
	for _, a := range r.asked {
		if a.answers == 0 && !a.cancelled {
			r.t.Errorf("%d, who asked for %d at %v, still waits", a.id, a.n, a.since)
			break
		}
	}
	r.mu.Unlock()
	r.check()
}

// live runs a number of steps on a pacer.
func live(t *testing.T, steps int, next func(n int) int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rough{t: t, choose: next, plain: next(2) == 0, windows: map[int64]int64{}, nested: 30}
		r.per = roughPers[next(3)]
		r.p, r.to = scriptedPacer(t, pace.Config{
			Smoothing: pace.Smoothing(next(3)), MaxWaiters: 1 + next(40), Wall: r.wall.now,
		})
		if r.plain {
			instances := 1 + next(3)
			plan := even(t, int64(4*instances+next(30)), r.per, instances, next(instances))
			r.parts = plan.Part
			r.to.Assign(pace.Assignment{Plan: plan, Revision: 1})
		} else if next(4) > 0 {
			r.assign(int64(next(20)))
		}
		for step := range steps {
			if r.step(); t.Failed() {
				t.Logf("in step %d", step)
				return
			}
		}
		r.check()
		r.calm()
		r.p.Close()
		if err := r.p.Acquire(t.Context(), pace.Forever); !errors.Is(err, pace.ErrClosed) {
			t.Errorf("closed, it says %v", err)
		}
	})
}

// TestRough checks the invariants during random events.
func TestRough(t *testing.T) {
	lives := uint64(500)
	if race.On {
		lives = 40
	}
	for seed := range lives {
		random := rand.New(rand.NewPCG(seed, 7))
		if live(t, 200, random.IntN); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzPacer takes the events from bytes, for a pacer with a twin or for a rough one.
func FuzzPacer(f *testing.F) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 8))
		text := make([]byte, 30+random.IntN(300))
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = text[:min(len(text), 1000)]
		next := func(n int) int {
			choice := 0
			for span := 1; span < n && len(text) > 0; span *= 256 {
				choice = choice*256 + int(text[0])
				text = text[1:]
			}
			return choice % n
		}
		twin := next(2) == 0
		steps := len(text) / 2
		if twin {
			tell(t, steps, next)
		} else {
			live(t, steps, next)
		}
	})
}
