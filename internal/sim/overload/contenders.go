package overload

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// Other designs, to compare with.

// NewOpen returns a design without any limit.
func NewOpen() NewDesign {
	return func(e *Engine) (Design, error) { return open{e}, nil }
}

type open struct{ engine *Engine }

// Arrive implements Design.
func (o open) Arrive(_ headgate.Instant, a *Attempt) { o.engine.Start(a) }

// Ended implements Design.
func (open) Ended(headgate.Instant, *Attempt, time.Duration) {}

// Left implements Design.
func (open) Left(headgate.Instant, *Attempt) {}

// line is a design with a limit of requests in flight and one queue. The functions say which
// waiting attempt goes next, and which one is refused when the queue is full.
type line struct {
	engine   *Engine
	limit    int
	queue    int
	inFlight int
	waiting  []*Attempt
	next     func(now headgate.Instant, waiting []*Attempt) int
	worst    func(waiting []*Attempt) int
	ended    func(now headgate.Instant, a *Attempt)
}

// Arrive implements Design.
func (l *line) Arrive(now headgate.Instant, a *Attempt) {
	l.waiting = append(l.waiting, a)
	l.fill(now)
	if len(l.waiting) > l.queue {
		i := l.worst(l.waiting)
		refused := l.waiting[i]
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.engine.Refuse(refused, 0)
	}
}

// Ended implements Design.
func (l *line) Ended(now headgate.Instant, a *Attempt, _ time.Duration) {
	l.inFlight--
	if l.ended != nil {
		l.ended(now, a)
	}
	l.fill(now)
}

// Left implements Design.
func (l *line) Left(_ headgate.Instant, a *Attempt) {
	if i := slices.Index(l.waiting, a); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
}

func (l *line) fill(now headgate.Instant) {
	for l.inFlight < l.limit && len(l.waiting) > 0 {
		i := l.next(now, l.waiting)
		a := l.waiting[i]
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.inFlight++
		l.engine.Start(a)
	}
}

func oldest(headgate.Instant, []*Attempt) int { return 0 }
func newest(waiting []*Attempt) int           { return len(waiting) - 1 }

// NewQueue returns a design with a limit and a queue in the order of arrival, the usual one of
// proxies.
func NewQueue(limit, queue int) NewDesign {
	return func(e *Engine) (Design, error) {
		return &line{engine: e, limit: limit, queue: queue, next: oldest, worst: newest}, nil
	}
}

// NewLastFirst returns a design that serves the newest attempt first, after Facebook's adaptive
// LIFO under load, and refuses the oldest.
func NewLastFirst(limit, queue int) NewDesign {
	return func(e *Engine) (Design, error) {
		return &line{
			engine: e, limit: limit, queue: queue,
			next:  func(_ headgate.Instant, w []*Attempt) int { return newest(w) },
			worst: func([]*Attempt) int { return 0 },
		}, nil
	}
}

// NewByClass returns a design that serves the highest class first and refuses the lowest. It
// knows no tenants: article 5's design, with four classes.
func NewByClass(limit, queue int) NewDesign {
	return func(e *Engine) (Design, error) {
		return &line{engine: e, limit: limit, queue: queue, next: highest, worst: lowest}, nil
	}
}

func highest(_ headgate.Instant, waiting []*Attempt) int {
	best := 0
	for i, a := range waiting {
		if a.Class < waiting[best].Class {
			best = i
		}
	}
	return best
}

func lowest(waiting []*Attempt) int {
	worst := len(waiting) - 1
	for i, a := range slices.Backward(waiting) {
		if a.Class > waiting[worst].Class {
			worst = i
		}
	}
	return worst
}

// NewFair returns a design that serves the tenant with the least service time so far first, and
// refuses the newest attempt of the tenant with most waiting ones. It knows no classes.
func NewFair(limit, queue int) NewDesign {
	return func(e *Engine) (Design, error) {
		used := make([]time.Duration, len(e.tenants))
		return &line{
			engine: e, limit: limit, queue: queue,
			ended: func(now headgate.Instant, a *Attempt) { used[a.Tenant] += now.Sub(a.started) },
			next: func(_ headgate.Instant, waiting []*Attempt) int {
				best := 0
				for i, a := range waiting {
					if used[a.Tenant] < used[waiting[best].Tenant] {
						best = i
					}
				}
				return best
			},
			worst: mostWaiting,
		}, nil
	}
}

// mostWaiting is the newest attempt of the tenant with most waiting ones.
func mostWaiting(waiting []*Attempt) int {
	count, worst := map[int]int{}, 0
	for _, a := range waiting {
		count[a.Tenant]++
	}
	for i, a := range waiting {
		if count[a.Tenant] >= count[waiting[worst].Tenant] {
			worst = i
		}
	}
	return worst
}
