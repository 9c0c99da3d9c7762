package throttle

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// twinLesson is a sample of a level.
type twinLesson struct {
	kind       twinKind
	at         headgate.Instant
	work, span time.Duration
	account    *twinAccount
}

type twinKind int

const (
	twinAnswer twinKind = iota
	twinMiss
	twinProbe       // a request that the prediction would refuse has gone to the service
	twinProbeAnswer // it was answered
)

// twinLevel is the history of a level of the predictor.
type twinLevel struct {
	shared  bool // A route: a sample counts less for a tenant with several of the last eight.
	lessons []twinLesson
}

func (l *twinLevel) note(s twinLesson) { l.lessons = append(l.lessons, s) }

// twinMean is what a level knows after its lessons.
type twinMean struct {
	samples               int
	work, time, deviation float64
	inTime                float64
	at                    headgate.Instant
}

// state replays the history.
func (l *twinLevel) state() twinMean {
	var m twinMean
	var tenants []*twinAccount
	for _, s := range l.lessons {
		switch s.kind {
		case twinAnswer:
			weight := 1.0
			if l.shared {
				weight = influenceOf(s.account, tenants)
				tenants = append(tenants, s.account)
			}
			m.answered(s, weight)
		case twinMiss:
			m.missed(s)
		case twinProbe:
			m.at = s.at
		case twinProbeAnswer:
			m.time, m.deviation = float64(s.span), min(m.deviation, float64(s.span)/4)
		}
	}
	return m
}

// influenceOf is 1 / (1 + samples of the same tenant among the last eight).
func influenceOf(a *twinAccount, tenants []*twinAccount) float64 {
	same := 1
	for i, other := range slices.Backward(tenants) {
		if i >= len(tenants)-8 && other == a {
			same++
		}
	}
	return 1 / float64(same)
}

// answered adds an answer. The weights are 1/32 for the work and 1/8 for the rest; the first
// samples count equally.
func (m *twinMean) answered(s twinLesson, weight float64) {
	n := float64(m.samples + 1)
	m.samples, m.at = m.samples+1, max(m.at, s.at)
	m.work += max(1/n, weight/32) * (float64(s.work) - m.work)
	m.inTime += max(1/n, weight/8) * (1 - m.inTime)
	m.observe(s.span, max(1/n, weight/8))
}

// missed adds a request without an answer. Its time counts when less than a quarter of the
// requests is answered.
func (m *twinMean) missed(s twinLesson) {
	m.at = max(m.at, s.at)
	m.inTime -= 1.0 / 8 * m.inTime
	if m.inTime < 0.25 {
		m.observe(s.span, 1.0/8)
	}
}

func (m *twinMean) observe(span time.Duration, weight float64) {
	off := float64(span) - m.time
	m.time += weight * off
	m.deviation += weight * (max(off, -off) - m.deviation)
}

func (l *twinLevel) prediction() prediction {
	m := l.state()
	return prediction{time.Duration(m.work), time.Duration(m.time), time.Duration(m.deviation)}
}

type twinRoute struct {
	twinLevel

	name string
}

type twinPair struct {
	twinLevel

	route   *twinRoute
	account *twinAccount
}

// twinPredictor has the routes and the pairs by their last use. The first gives way.
type twinPredictor struct {
	mostRoutes, mostPairs int
	routes                []*twinRoute
	pairs                 []*twinPair
	all                   *twinLevel
}

// lookup returns the route of a request, and the first level with 5 samples, or nil.
func (p *twinPredictor) lookup(name string, a *twinAccount) (*twinRoute, *twinLevel) {
	r := p.route(name)
	if r == nil {
		r = &twinRoute{name: name, twinLevel: twinLevel{shared: true}}
		p.routes = bounded(append(p.routes, r), p.mostRoutes)
	}
	levels := []*twinLevel{&r.twinLevel, p.all}
	if known := p.pair(r, a); known != nil {
		levels = slices.Insert(levels, 0, &known.twinLevel)
	}
	for _, l := range levels {
		if l.state().samples >= 5 {
			return r, l
		}
	}
	return r, nil
}

// learn teaches all three levels. A route that gave way meanwhile learns nothing.
func (p *twinPredictor) learn(now headgate.Instant, r *twinRequest, work, span time.Duration) {
	s := twinLesson{at: now, work: work, span: span, account: r.account}
	if p.route(r.Route) == r.route {
		r.route.note(s)
		known := p.pair(r.route, r.account)
		if known == nil {
			known = &twinPair{route: r.route, account: r.account}
			p.pairs = bounded(append(p.pairs, known), p.mostPairs)
		}
		known.note(s)
	}
	p.all.note(s)
}

// route returns the route with a name, and marks it as used.
func (p *twinPredictor) route(name string) *twinRoute {
	for _, r := range p.routes {
		if r.name == name {
			p.routes = append(without(p.routes, r), r)
			return r
		}
	}
	return nil
}

// pair returns a pair, and marks it as used.
func (p *twinPredictor) pair(r *twinRoute, a *twinAccount) *twinPair {
	for _, known := range p.pairs {
		if known.route == r && known.account == a {
			p.pairs = append(without(p.pairs, known), known)
			return known
		}
	}
	return nil
}

// bounded drops the first entry of a list that is longer than its bound.
func bounded[T any](all []T, most int) []T {
	return all[max(len(all)-most, 0):]
}
