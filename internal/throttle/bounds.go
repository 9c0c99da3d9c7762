package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// room reports whether the service may get the request now. A request with more work than
// CPUInFlight goes alone. In a hang, the service gets one request at a time.
func (t *Throttler) room(now headgate.Instant, r *Request) bool {
	if t.probing(now) {
		return false
	}
	if t.config.Concurrency > 0 {
		return t.inFlight < t.concurrency()
	}
	return t.inFlight == 0 || t.cpu+r.need.work <= t.config.CPUInFlight
}

// concurrency returns the bound of requests at the service.
func (t *Throttler) concurrency() int {
	if t.searcher.Apply {
		return int(t.searcher.limit)
	}
	return t.config.Concurrency
}

// share returns the work that each active tenant may take in the time memory. Before the drain
// rate is known, all work is within a share.
func (t *Throttler) share() time.Duration { return t.shareOf(t.tenants.active) }

func (t *Throttler) shareOf(active int) time.Duration {
	rate, known := t.drain.rate()
	if !known {
		return maxTime
	}
	return time.Duration(rate * float64(memory) / float64(max(active, 1)))
}

// full reports whether the queue exceeds one of its bounds. The work of the new request does not
// count, as its size decides nothing.
func (t *Throttler) full(r *Request) bool {
	if t.queue.length > t.config.MaxWaiters {
		return true
	}
	most, known := t.mostWork()
	return known && float64(t.queue.work-r.need.work) > most
}

// mostWork returns the work that the queue may have, and whether it is known.
func (t *Throttler) mostWork() (most float64, known bool) {
	rate, known := t.drain.rate()
	return rate * t.config.PartOfDeadline * float64(t.config.Deadline), known
}

// hopeless reports whether a request that waits for a time gets its answer after its deadline,
// or probably does and is no probe.
func (t *Throttler) hopeless(now headgate.Instant, r *Request, wait time.Duration) bool {
	if now.Add(wait) > r.Deadline {
		return true
	}
	return t.late(now, r, wait) && !r.level.probe(now, t.trust(), t.searcher.eased)
}

// trust is how long a service time is believed. A route whose requests are all refused because of a long
// service time would never show that it has become faster, so after this time one request goes to the
// service whatever the prediction is. With less than half of its bound, a service has time for more of
// them, and the service times of a busier time say less.
func (t *Throttler) trust() time.Duration {
	calm := 2*t.inFlight < t.concurrency()
	if t.config.Concurrency == 0 {
		calm = 2*t.cpu < t.config.CPUInFlight
	}
	if calm {
		return trustCalm
	}
	return trustBusy
}

const trustBusy, trustCalm = 5 * time.Second, 200 * time.Millisecond

// late reports whether the answer probably comes after the deadline: by the mean service time
// and a multiple of its mean deviation. The mean of all routes says too little about a route without
// samples: slow requests to other routes would refuse it, and it would never get samples.
func (t *Throttler) late(now headgate.Instant, r *Request, wait time.Duration) bool {
	if r.level == nil || r.level == &t.predictor.all {
		return false
	}
	doubt := sheddableDoubt
	if r.Class.critical() {
		doubt = criticalDoubt
	}
	span := r.need.time + time.Duration(doubt*float64(r.need.deviation))
	return now.Add(wait+span) > r.Deadline
}

// The number of mean deviations beyond the mean that a service time is expected to take. Critical
// requests get more benefit of the doubt. Decision record 23 has the figures of other values.
const (
	criticalDoubt  = 1.4
	sheddableDoubt = 1.8
)

// refuse marks a request as refused, and computes when to try again.
func (t *Throttler) refuse(now headgate.Instant, r *Request, why headgate.Reason) headgate.Verdict {
	r.Refusal, r.RetryAfter = why, t.retryAfter(now)
	r.release()
	return headgate.Deny
}

// report lists a refused request for Next.
func (t *Throttler) report(now headgate.Instant, r *Request, why headgate.Reason) {
	r.Refusal, r.RetryAfter, r.state = why, t.retryAfter(now), refused
	if r.before = t.lastGone; r.before != nil {
		r.before.after = r
	} else {
		t.gone = r
	}
	r.after, t.lastGone = nil, r
}

// unreport takes a request out of the list.
func (t *Throttler) unreport(r *Request) {
	if r.before != nil {
		r.before.after = r.after
	} else {
		t.gone = r.after
	}
	if r.after != nil {
		r.after.before = r.before
	} else {
		t.lastGone = r.before
	}
	r.release()
}

// release forgets what the Throttler kept in the request.
func (r *Request) release() {
	r.state, r.charged = outside, false
	r.tenant, r.route, r.pair, r.level, r.before, r.after = nil, nil, nil, nil, nil, nil
}

// retryAfter is RetryAfter, and in a hang at least Deadline: the backlog says nothing then.
func (t *Throttler) retryAfter(now headgate.Instant) time.Duration {
	if t.Hung(now) {
		return max(t.RetryAfter(), t.config.Deadline)
	}
	return t.RetryAfter()
}

// RetryAfter returns the time that the queued work takes to drain.
func (t *Throttler) RetryAfter() time.Duration { return t.drain.takes(t.queue.work) }

// Load is the load of a Throttler at one time.
type Load struct {
	InFlight   int
	CPU        time.Duration // predicted work of the requests in flight
	Queued     [ClassCount]int
	QueuedWork time.Duration // predicted
	// Rate is the drain rate: work that ends per second of time with a queue. 0 is unknown.
	Rate    float64
	Tenants int // active
	// Limit is the concurrency in use; 0 with CPUInFlight. Found is the one that Config.Search has
	// found; 0 is unknown.
	Limit, Found int
}

// Load returns the current load.
func (t *Throttler) Load() Load {
	l := Load{InFlight: t.inFlight, CPU: t.cpu, QueuedWork: t.queue.work, Tenants: t.tenants.active}
	for i := range t.queue.buckets {
		l.Queued[i%ClassCount] += t.queue.buckets[i].length
	}
	l.Rate, _ = t.drain.rate()
	l.Limit, l.Found = t.concurrency(), t.searcher.found()
	return l
}
