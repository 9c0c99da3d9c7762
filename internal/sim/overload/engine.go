package overload

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
	"github.com/headgate/headgate/internal/sim/service"
)

// Design decides which attempts the service gets, and when. The engine calls it in virtual time,
// from one goroutine.
type Design interface {
	// Arrive takes an attempt: it calls Engine.Start or Engine.Refuse now or later.
	Arrive(now headgate.Instant, a *Attempt)
	// Ended says that a started attempt has ended, with the CPU time that it took.
	Ended(now headgate.Instant, a *Attempt, cpu time.Duration)
	// Left says that the client of a waiting attempt has given up.
	Left(now headgate.Instant, a *Attempt)
}

// waker is a Design that wants to hear of an attempt again that has not ended: Engine.Wake.
type waker interface {
	Woken(now headgate.Instant, a *Attempt)
}

// Wake calls the design again after d if the attempt has not ended then.
func (e *Engine) Wake(a *Attempt, d time.Duration) {
	e.after(d, func() {
		if w, ok := e.design.(waker); ok && a.state != over {
			w.Woken(e.time.Now(), a)
		}
	})
}

// NewDesign makes a Design for one run.
type NewDesign func(*Engine) (Design, error)

// Engine is a discrete-event simulation of clients, a Design and a service.
type Engine struct {
	design  Design
	traffic *traffic
	service *service.Service
	time    *sim.Time
	measure *measure
	reports bool // the service reports its CPU time
	routes  []string
	tenants []string
	end     headgate.Instant
}

// Run simulates a scenario with a design, and returns its figures. Equal arguments give equal
// figures. reports says that the service reports its CPU time.
func Run(s Scenario, seed uint64, reports bool, design NewDesign) (Figures, error) {
	if s.To == 0 {
		s.From, s.To = 20*time.Second, 60*time.Second
	}
	e := &Engine{traffic: newTraffic(s, seed), measure: newMeasure(s), reports: reports, time: sim.NewTime(0)}
	e.service = service.New(e.time, service.Model{
		Cores: cores, Connections: s.Pool, SlowFrom: slowFrom, SlowBy: slowBy, LeastSpeed: leastSpeed,
	})
	if s.SpeedFrom > 0 {
		e.service.SetSpeed(s.SpeedFrom)
	}
	e.routes, e.tenants = names("/route/", s.Costs.Routes()), names("tenant ", e.traffic.tenants)
	e.end = headgate.Instant(s.To)
	var err error
	if e.design, err = design(e); err != nil {
		return Figures{}, err
	}
	if s.SpeedTo > 0 {
		e.time.At(headgate.Instant(s.SpeedAt), func() { e.service.SetSpeed(s.SpeedTo) })
	}
	e.time.At(0, e.arrive)
	e.time.RunTo(e.end.Add(2 * time.Second))
	return e.measure.figures(), nil
}

// after plans an event.
func (e *Engine) after(d time.Duration, f func()) { e.time.At(e.time.Now().Add(d), f) }

// arrive draws a logical request and its first attempt.
func (e *Engine) arrive() {
	l, cpu := e.traffic.logical(e.time.Now())
	if e.time.Now() < e.end {
		e.after(e.traffic.next(e.time.Now()), e.arrive)
	}
	a := &Attempt{Logical: l, cpu: cpu, Job: e.traffic.job(e.time.Now(), l, cpu)}
	e.measure.arrived(l, a.Job)
	e.attempt(a)
}

// attempt makes an attempt of a client.
func (e *Engine) attempt(a *Attempt) {
	a.attempts++
	a.Deadline = e.time.Now().Add(deadline)
	a.Request.Class, a.Request.Deadline = a.Class, a.Deadline
	a.Request.Tenant, a.Request.Route = e.tenants[a.Tenant], e.routes[a.Route]
	if a.slow = e.traffic.slowBody(e.time.Now()); !a.slow {
		e.time.At(a.Deadline, func() { e.giveUp(a) })
	}
	e.design.Arrive(e.time.Now(), a)
}

// Start sends an attempt to the service.
func (e *Engine) Start(a *Attempt) {
	a.state, a.started = runs, e.time.Now()
	a.whole = !a.slow
	e.measure.began(e.time.Now(), a)
	if a.slow {
		e.after(slowBody, func() {
			if a.whole = true; a.state == runs {
				a.started = e.time.Now()
				e.work(a)
			}
		})
		return
	}
	e.work(a)
}

// work starts the work of an attempt whose body the service has.
func (e *Engine) work(a *Attempt) {
	e.service.Run(&a.Job, func() { e.answered(a) })
}

// End takes an attempt away from the service, which may go on with its work.
func (e *Engine) End(a *Attempt) {
	waits := !a.left && !a.slow
	a.state, a.left = over, true
	e.measure.ended(e.time.Now(), a)
	e.design.Ended(e.time.Now(), a, 0)
	if waits {
		e.retry(a, 0, true)
	}
}

// Refuse answers an attempt with a refusal.
func (e *Engine) Refuse(a *Attempt, retryAfter time.Duration) {
	a.state = over
	e.measure.refused(e.time.Now(), a)
	if cost := e.traffic.RefusalCPU; cost > 0 {
		e.service.Run(&service.Job{CPU: float64(cost)}, nil)
	}
	e.retry(a, retryAfter, true)
}

// retry plans the next attempt, if there is one.
func (e *Engine) retry(a *Attempt, retryAfter time.Duration, refused bool) {
	if a.attempts >= maxAttempts {
		return
	}
	at := e.time.Now().Add(e.traffic.pause(a.attempts, retryAfter, refused))
	next := &Attempt{Logical: a.Logical, cpu: a.cpu, Job: e.traffic.job(at, a.Logical, a.cpu)}
	e.time.At(at, func() { e.attempt(next) })
}

// answered ends an attempt at the service, or later while the service hangs.
func (e *Engine) answered(a *Attempt) {
	if a.state == over {
		return
	}
	if until := min(headgate.Instant(e.traffic.HangTo), a.started.Add(hangTimeout)); e.traffic.hangs(e.time.Now()) && e.time.Now() < until {
		e.time.At(until, func() { e.answered(a) })
		return
	}
	a.state, a.left = over, a.left || e.traffic.hangs(e.time.Now()) // The proxy has given up.
	e.measure.ended(e.time.Now(), a)
	e.design.Ended(e.time.Now(), a, time.Duration(a.Job.CPU))
}

// giveUp is the client's deadline. The service does not stop.
func (e *Engine) giveUp(a *Attempt) {
	if a.state == over {
		return
	}
	a.left = true
	if a.state == waits {
		a.state = over
		e.design.Left(e.time.Now(), a)
	}
	e.retry(a, 0, false)
}
