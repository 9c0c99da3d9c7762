package overload

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
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
	e.events.plan(event{at: e.now.Add(d), kind: wakes, attempt: a})
}

// NewDesign makes a Design for one run.
type NewDesign func(*Engine) (Design, error)

// Engine is a discrete-event simulation of clients, a Design and a service.
type Engine struct {
	design  Design
	traffic *traffic
	service Service
	events  events
	measure *measure
	reports bool // the service reports its CPU time
	now     headgate.Instant
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
	e := &Engine{traffic: newTraffic(s, seed), measure: newMeasure(s), reports: reports}
	e.events.Before = earlier
	e.service = Service{Cores: cores, Connections: s.Pool, speed: 1, running: sim.Queue[*Attempt]{Before: shorter}}
	if s.SpeedFrom > 0 {
		e.service.speed = s.SpeedFrom
	}
	e.routes, e.tenants = names("/route/", s.Costs.Routes()), names("tenant ", e.traffic.tenants)
	e.end = headgate.Instant(s.To)
	var err error
	if e.design, err = design(e); err != nil {
		return Figures{}, err
	}
	if s.SpeedTo > 0 {
		e.events.plan(event{at: headgate.Instant(s.SpeedAt), kind: speedChange})
	}
	e.events.plan(event{kind: arrives})
	for e.events.Len() > 0 {
		ev := e.events.Pop()
		if ev.at > e.end+headgate.Instant(2*time.Second) {
			break
		}
		e.now = ev.at
		e.happen(ev)
	}
	return e.measure.figures(), nil
}

// happen does one event.
func (e *Engine) happen(ev event) {
	a := ev.attempt
	switch ev.kind {
	case arrives:
		e.arrive()
	case starts:
		e.attempt(a)
	case arrived:
		if a.whole = true; a.state == runs {
			a.started = e.now
			e.work(a)
		}
	case cpuEnds:
		e.cpuEnded(ev.version)
	case poolEnds:
		e.poolEnded(a)
	case answers:
		e.answered(a)
	case gives:
		e.giveUp(a)
	case wakes:
		if d, ok := e.design.(waker); ok && a.state != over {
			d.Woken(e.now, a)
		}
	case speedChange:
		e.service.advance(e.now)
		e.service.speed = e.traffic.SpeedTo
		e.plan()
	}
}

// arrive draws a logical request and its first attempt.
func (e *Engine) arrive() {
	l, cpu := e.traffic.logical(e.now)
	if e.now < e.end {
		e.events.plan(event{at: e.now.Add(e.traffic.next(e.now)), kind: arrives})
	}
	a := &Attempt{Logical: l, cpu: cpu, Job: e.traffic.job(e.now, l, cpu)}
	e.measure.arrived(l, a.Job)
	e.attempt(a)
}

// attempt makes an attempt of a client.
func (e *Engine) attempt(a *Attempt) {
	a.attempts++
	a.Deadline = e.now.Add(deadline)
	a.Request.Class, a.Request.Deadline = a.Class, a.Deadline
	a.Request.Tenant, a.Request.Route = e.tenants[a.Tenant], e.routes[a.Route]
	if a.slow = e.traffic.slowBody(e.now); !a.slow {
		e.events.plan(event{at: a.Deadline, kind: gives, attempt: a})
	}
	e.design.Arrive(e.now, a)
}

// Start sends an attempt to the service.
func (e *Engine) Start(a *Attempt) {
	a.state, a.started = runs, e.now
	a.whole = !a.slow
	e.measure.began(e.now, a)
	if a.slow {
		e.events.plan(event{at: e.now.Add(slowBody), kind: arrived, attempt: a})
		return
	}
	e.work(a)
}

// work starts the work of an attempt whose body the service has.
func (e *Engine) work(a *Attempt) {
	e.service.run(e.now, a)
	e.plan()
}

// End takes an attempt away from the service, which may go on with its work.
func (e *Engine) End(a *Attempt) {
	waits := !a.left && !a.slow
	a.state, a.left = over, true
	e.measure.ended(e.now, a)
	e.design.Ended(e.now, a, 0)
	if waits {
		e.retry(a, 0, true)
	}
}

// Refuse answers an attempt with a refusal.
func (e *Engine) Refuse(a *Attempt, retryAfter time.Duration) {
	a.state = over
	e.measure.refused(e.now, a)
	if cost := e.traffic.RefusalCPU; cost > 0 {
		e.service.run(e.now, &Attempt{Job: Job{CPU: float64(cost)}})
		e.plan()
	}
	e.retry(a, retryAfter, true)
}

// retry plans the next attempt, if there is one.
func (e *Engine) retry(a *Attempt, retryAfter time.Duration, refused bool) {
	if a.attempts >= maxAttempts {
		return
	}
	at := e.now.Add(e.traffic.pause(a.attempts, retryAfter, refused))
	next := &Attempt{Logical: a.Logical, cpu: a.cpu, Job: e.traffic.job(at, a.Logical, a.cpu)}
	e.events.plan(event{at: at, kind: starts, attempt: next})
}

// plan schedules the event of the next job to end its CPU part.
func (e *Engine) plan() {
	e.service.version++
	if at, ok := e.service.next(); ok {
		e.events.plan(event{at: at, kind: cpuEnds, version: e.service.version})
	}
}

// cpuEnded moves all attempts on that have ended their CPU part.
func (e *Engine) cpuEnded(version int) {
	if version != e.service.version {
		return
	}
	for a := e.service.ended(e.now); a != nil; a = e.service.ended(e.now) {
		switch {
		case a.Logical == nil: // A refusal.
		case e.service.Connections == 0:
			e.events.plan(event{at: e.now.Add(time.Duration(a.Job.Wait)), kind: answers, attempt: a})
		default:
			e.service.waiting = append(e.service.waiting, a)
			e.connect()
		}
	}
	e.plan()
}

// connect gives free connections to the attempts that wait for one.
func (e *Engine) connect() {
	s := &e.service
	for s.busy < s.Connections && len(s.waiting) > 0 {
		a := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.busy++
		e.events.plan(event{at: e.now.Add(time.Duration(a.Job.Pool)), kind: poolEnds, attempt: a})
	}
}

func (e *Engine) poolEnded(a *Attempt) {
	e.service.busy--
	e.connect()
	e.answered(a)
}

// answered ends an attempt at the service, or later while the service hangs.
func (e *Engine) answered(a *Attempt) {
	if a.state == over {
		return
	}
	if until := min(headgate.Instant(e.traffic.HangTo), a.started.Add(hangTimeout)); e.traffic.hangs(e.now) && e.now < until {
		e.events.plan(event{at: until, kind: answers, attempt: a})
		return
	}
	a.state, a.left = over, a.left || e.traffic.hangs(e.now) // The proxy has given up.
	e.measure.ended(e.now, a)
	e.design.Ended(e.now, a, time.Duration(a.Job.CPU))
}

// giveUp is the client's deadline. The service does not stop.
func (e *Engine) giveUp(a *Attempt) {
	if a.state == over {
		return
	}
	a.left = true
	if a.state == waits {
		a.state = over
		e.design.Left(e.now, a)
	}
	e.retry(a, 0, false)
}
