package overload

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/throttle"
)

// Throttled is the Design under test: a throttle.Throttler.
type Throttled struct {
	engine    *Engine
	throttler *throttle.Throttler
}

// NewThrottled returns a function that makes a Throttled for Run.
func NewThrottled(c throttle.Config) NewDesign {
	c.Deadline = deadline
	return func(e *Engine) (Design, error) {
		t, err := throttle.New(c)
		if err != nil {
			return nil, err
		}
		return &Throttled{engine: e, throttler: t}, nil
	}
}

// Arrive implements Design.
func (t *Throttled) Arrive(now headgate.Instant, a *Attempt) {
	a.Request.Owner = a
	t.move(&a.Request, t.throttler.Arrive(now, &a.Request))
	t.next(now)
}

// Ended implements Design.
func (t *Throttled) Ended(now headgate.Instant, a *Attempt, cpu time.Duration) {
	e := throttle.Ended{}
	if a.left {
		e.Lesson = throttle.LearnMiss
	}
	if t.engine.reports {
		e.Work = cpu
	}
	t.throttler.Leave(now, &a.Request, e)
	t.next(now)
}

// Left implements Design.
func (t *Throttled) Left(now headgate.Instant, a *Attempt) {
	t.throttler.Leave(now, &a.Request, throttle.Ended{})
	t.next(now)
}

// Woken ends the wait of an attempt whose time is over, and a probe of a hang.
func (t *Throttled) Woken(now headgate.Instant, a *Attempt) {
	if a.state == runs {
		t.watch(now, a)
		return
	}
	if left := t.throttler.Patience(now, &a.Request); left > 0 {
		t.engine.Wake(a, left)
		return
	}
	t.throttler.Expire(now, &a.Request)
	t.next(now)
}

// watch ends an attempt that is the probe of a hang, now or later.
func (t *Throttled) watch(now headgate.Instant, a *Attempt) {
	switch left, probe := t.throttler.Probe(now, &a.Request, a.whole); {
	case !probe:
	case left > 0:
		t.engine.Wake(a, left)
	default:
		t.engine.End(a)
	}
}

func (t *Throttled) next(now headgate.Instant) {
	for r, v := t.throttler.Next(now); r != nil; r, v = t.throttler.Next(now) {
		t.move(r, v)
	}
}

// move tells the engine of a decision.
func (t *Throttled) move(r *throttle.Request, v headgate.Verdict) {
	a, ok := r.Owner.(*Attempt)
	if !ok {
		return
	}
	switch v {
	case headgate.Allow:
		t.engine.Start(a)
		t.watch(t.engine.time.Now(), a)
	case headgate.Deny:
		t.engine.Refuse(a, r.RetryAfter)
	case headgate.Wait:
		t.engine.Wake(a, t.throttler.Patience(t.engine.time.Now(), r))
	}
}
