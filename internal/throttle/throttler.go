package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// Throttler holds requests back when the service has as many as it can do at once. See the
// documentation of the package. A Throttler is not safe for concurrent use.
type Throttler struct {
	config    Config
	tenants   tenants
	predictor predictor
	drain     drain
	searcher  searcher
	hang      hang
	queue     queue
	inFlight  int
	cpu       time.Duration // the predicted work of the requests in flight
	gone      *Request      // the first refused request that Next has to report
	lastGone  *Request
}

// New returns a Throttler, or the first fault of the configuration.
func New(c Config) (*Throttler, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Throttler{config: c}
	t.searcher.configure(c.Search, c.Concurrency)
	t.tenants.known = newTable[string, tenant](c.MaxTenants)
	t.predictor.pairs = newTable[pair, mean](8 * c.MaxRoutes)
	t.predictor.routes = newTable[string, route](c.MaxRoutes)
	return t, nil
}

// Configure changes the configuration. A smaller limit lets the requests in flight end. A smaller
// queue holds from the next Arrive that queues a request: then others lose their places.
func (t *Throttler) Configure(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	t.config = c
	t.searcher.configure(c.Search, c.Concurrency)
	t.tenants.known.most = max(c.MaxTenants, len(t.tenants.known.entries))
	t.predictor.pairs.most = max(8*c.MaxRoutes, len(t.predictor.pairs.entries))
	t.predictor.routes.most = max(c.MaxRoutes, len(t.predictor.routes.entries))
	return nil
}

// Arrive takes a request. Allow: the request goes to the service now. Wait: it is queued, and
// Next reports it later. Deny: it is refused, with the reason in Refusal.
//
// Call Next after Arrive until it returns nil: the request may have taken the place of others.
func (t *Throttler) Arrive(now headgate.Instant, r *Request) headgate.Verdict {
	r.arrived, r.tenant = now, t.tenants.find(now, r.Tenant)
	t.predictor.find(r)
	if r.need = (prediction{}); r.level != nil {
		r.need = r.level.prediction()
	}
	r.Refusal, r.RetryAfter = headgate.NoRule, 0
	r.bucket = bucketOf(r.Class, r.tenant.within(r.Class, t.share()))
	if t.queue.length == 0 && t.room(now, r) {
		if t.hopeless(now, r, 0) {
			return t.refuse(now, r, headgate.ThrottleDeadline)
		}
		t.admit(now, r)
		return headgate.Allow
	}
	if t.hopeless(now, r, t.drain.takes(t.queue.ahead(r.bucket, &r.tenant.flows[r.bucket]))) {
		return t.refuse(now, r, headgate.ThrottleDeadline)
	}
	t.enqueue(now, r)
	for t.full(r) {
		victim := t.queue.victim()
		t.leaveQueue(now, victim)
		if victim == r {
			return t.refuse(now, r, headgate.ThrottleFull)
		}
		t.report(now, victim, headgate.ThrottleEvicted)
	}
	return headgate.Wait
}

// Next returns a request whose wait has ended, or nil. Allow: the request goes to the service.
// Deny: it is refused, with the reason in Refusal. Call Next until it returns nil.
func (t *Throttler) Next(now headgate.Instant) (*Request, headgate.Verdict) {
	if r := t.gone; r != nil {
		t.unreport(r)
		return r, headgate.Deny
	}
	r := t.queue.first()
	if r == nil || !t.room(now, r) {
		return nil, headgate.Deny
	}
	if t.hopeless(now, r, 0) {
		t.leaveQueue(now, r)
		return r, t.refuse(now, r, headgate.ThrottleDeadline)
	}
	t.queue.dispatch(r)
	t.left(now, r)
	t.admit(now, r)
	return r, headgate.Allow
}

// Waits reports whether Next may return a request.
func (t *Throttler) Waits() bool { return t.gone != nil || t.queue.length > 0 }

// Leave ends a request: an admitted one, whose place becomes free, or one that no longer waits.
// For other requests Leave does nothing. Call Next afterwards until it returns nil.
func (t *Throttler) Leave(now headgate.Instant, r *Request, e Ended) {
	switch r.state {
	case queued:
		t.leaveQueue(now, r)
	case refused:
		t.unreport(r)
	case admitted:
		t.end(now, r, e)
	case outside:
		return
	}
	r.release()
}

// Expire refuses a request that is still queued. Next reports it, with ThrottleDeadline. For
// other requests Expire does nothing.
func (t *Throttler) Expire(now headgate.Instant, r *Request) {
	if r.state == queued {
		t.leaveQueue(now, r)
		t.report(now, r, headgate.ThrottleDeadline)
	}
}

// admit gives the request a place at the service.
func (t *Throttler) admit(now headgate.Instant, r *Request) {
	r.state, r.dispatched = admitted, now
	if r.probe = t.late(now, r, 0); r.probe {
		r.level.at = now
	}
	t.hang.dispatch(r, t.Hung(now))
	t.tenants.retain(r.tenant)
	r.tenant.decay(now)
	r.tenant.charge(r.Class, r.need.work)
	t.inFlight++
	t.searcher.change(now, t.inFlight)
	r.area = t.searcher.area
	t.cpu += r.need.work
}

// end takes the place back, corrects the tenant's account, and teaches the predictor.
func (t *Throttler) end(now headgate.Instant, r *Request, e Ended) {
	span := max(now.Sub(r.dispatched), 0)
	work := e.Work
	if work <= 0 {
		work = span
	}
	t.inFlight--
	t.endHang(now, r, e)
	t.searcher.change(now, t.inFlight)
	t.cpu -= r.need.work
	t.tenants.release(r.tenant)
	r.tenant.decay(now)
	t.drain.ended(now, work)
	t.searcher.end(now, r, e, span, t.queue.length > 0)
	r.tenant.charge(r.Class, work-r.need.work)
	t.queue.correct(r, work-r.need.work)
	switch {
	case e.Lesson == LearnAll:
		t.predictor.learn(now, r, work, span)
		if r.probe {
			r.level.replace(span)
		}
	case e.Lesson == LearnMiss && r.level != nil:
		r.level.miss(now, min(span, max(r.Deadline.Sub(r.dispatched), 0)))
	}
}

func (t *Throttler) enqueue(now headgate.Instant, r *Request) {
	r.state = queued
	t.tenants.retain(r.tenant)
	r.tenant.line(r.Class, r.need.work)
	t.queue.push(r)
	t.drain.queue(now, true)
}

// leaveQueue takes a request out of the queue that does not go to the service.
func (t *Throttler) leaveQueue(now headgate.Instant, r *Request) {
	t.queue.remove(r)
	t.left(now, r)
}

// left settles the account of a request that has left the queue.
func (t *Throttler) left(now headgate.Instant, r *Request) {
	r.state = outside
	t.tenants.release(r.tenant)
	r.tenant.line(r.Class, -r.need.work)
	if t.queue.length == 0 {
		t.drain.queue(now, false)
	}
}
