package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// The predictor learns, for each pair of route and tenant, for each route, and for all requests,
// the mean work, the mean service time, and the mean deviation of the service time.

const (
	// enough is the number of samples before a level is used.
	enough = 5
	// workWeight and timeWeight are the weights of a new sample. The service time changes with
	// the load of the service, so it follows faster than the work.
	workWeight, timeWeight = 1.0 / 32, 1.0 / 8
	// contributors is the number of samples whose tenants a route remembers.
	contributors = 8
)

// prediction is what a request probably needs.
type prediction struct {
	work      time.Duration
	time      time.Duration // service time
	deviation time.Duration // mean absolute deviation of the service time
}

// mean is one level of the predictor.
type mean struct {
	samples               int
	work, time, deviation float64          // nanoseconds
	inTime                float64          // the part of recent requests that were answered
	at                    headgate.Instant // of the last sample, or of the last probe
}

// probe reports whether the level is due for a request that its prediction would refuse: when it has
// learned nothing for the time trust, and once after the time from which the service has had less to do.
func (m *mean) probe(now headgate.Instant, trust time.Duration, eased headgate.Instant) bool {
	return now.Sub(m.at) >= trust || m.at < eased && eased <= now
}

// replace takes the time of an answered probe for the service time: older samples are out of date.
func (m *mean) replace(span time.Duration) {
	m.time = float64(span)
	m.deviation = min(m.deviation, m.time/4)
}

// learn adds a sample with a weight of 0 to 1 beside other samples. The first samples count
// equally, so that the mean does not depend on the very first.
func (m *mean) learn(now headgate.Instant, work, span time.Duration, weight float64) {
	m.samples++
	m.at = max(m.at, now)
	first := 1 / float64(m.samples)
	m.work += max(first, workWeight*weight) * (float64(work) - m.work)
	m.inTime += max(first, timeWeight*weight) * (1 - m.inTime)
	m.learnSpan(span, max(first, timeWeight*weight))
}

// fewInTime is the part of answered requests below which cancelled ones teach their time.
const fewInTime = 0.25

// miss notes a request that failed or was cancelled. Its time is not a service time, and teaches
// only when few requests are answered at all: otherwise a route that has become so slow that all
// requests are cancelled would keep its old prediction.
func (m *mean) miss(now headgate.Instant, span time.Duration) {
	m.at = max(m.at, now)
	m.inTime -= timeWeight * m.inTime
	if m.inTime < fewInTime {
		m.learnSpan(span, timeWeight)
	}
}

func (m *mean) learnSpan(span time.Duration, weight float64) {
	off := float64(span) - m.time
	m.time += weight * off
	m.deviation += weight * (max(off, -off) - m.deviation)
}

func (m *mean) prediction() prediction {
	return prediction{time.Duration(m.work), time.Duration(m.time), time.Duration(m.deviation)}
}

// route is a level with the tenants of its last samples.
type route struct {
	mean

	id     uint32
	recent [contributors]uint32
	next   uint8
}

// influence returns the weight of a sample of the tenant. The more of the last samples are from
// this tenant, the less a further one counts: a tenant that sends nearly all requests has about
// as much influence as all others together.
func (r *route) influence(tenant uint32) float64 {
	same := 1
	for _, other := range r.recent {
		if other == tenant {
			same++
		}
	}
	r.recent[r.next] = tenant
	r.next = (r.next + 1) % contributors
	return 1 / float64(same)
}

// pair names a route and a tenant by their numbers. Numbers are not used again.
type pair struct{ route, tenant uint32 }

type predictor struct {
	pairs  table[pair, mean]
	routes table[string, route]
	all    mean
}

// find finds the levels of a request, and the one that predicts it: none before the first
// samples of all levels. learn looks up none of them again.
func (p *predictor) find(r *Request) {
	found := p.routes.find(r.Route)
	if found == nil {
		added, id := p.routes.add(r.Route)
		added.value.id, found = id, added
	}
	r.route, r.pair = found, p.pairs.find(pair{found.value.id, r.tenant.id})
	switch {
	case r.pair != nil && r.pair.value.samples >= enough:
		r.level = &r.pair.value
	case found.value.samples >= enough:
		r.level = &found.value.mean
	case p.all.samples >= enough:
		r.level = &p.all
	default:
		r.level = nil
	}
}

// learn teaches all three levels. A route that gave way since find learns nothing.
func (p *predictor) learn(now headgate.Instant, r *Request, work, span time.Duration) {
	if p.routes.use(r.route) {
		route := &r.route.value
		route.learn(now, work, span, route.influence(r.tenant.id))
		if !p.pairs.use(r.pair) {
			key := pair{route.id, r.tenant.id}
			if r.pair = p.pairs.find(key); r.pair == nil {
				r.pair, _ = p.pairs.add(key)
			}
		}
		r.pair.value.learn(now, work, span, 1)
	} else {
		p.routes.find(r.Route) // The name is in use.
	}
	p.all.learn(now, work, span, 1)
}
