package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// hang notices a service that answers nothing. It has the requests at the service, in the order of
// their dispatch.
type hang struct {
	oldest, newest *Request
	answered       headgate.Instant // the last answer, or the first dispatch after it
	missed         int              // requests that have ended since then without an answer, late
	last           headgate.Instant // the end of the latest of them, or of a probe
	probe          *Request         // the one request that the service gets in a hang
	known          bool             // the latest answer of hung
}

const (
	// unanswered is how many requests the service leaves without an answer before it hangs.
	unanswered = 5
	// scanned bounds the requests whose deadlines are compared with the time.
	scanned = 64
	// patienceParts is the part of its deadline that a request waits in a hang. A tenth is
	// promised, and timers are late.
	patienceParts = 16
)

// hung reports whether the service answers nothing: for half of Deadline it has answered no
// request, and five requests have passed their deadlines since then, or as many as it can have. For a
// request that the service had before its last answer, the time begins anew with this answer. After a
// time without requests, the hang is forgotten.
func (t *Throttler) hung(now headgate.Instant) bool {
	h := &t.hang
	if h.probe == nil {
		h.known = 2*now.Sub(h.answered) >= t.config.Deadline && t.manyUnanswered(now)
	}
	return h.known
}

func (t *Throttler) manyUnanswered(now headgate.Instant) bool {
	h := &t.hang
	missed := h.missed
	if h.forgotten(now) {
		missed = 0
	}
	need := min(t.mostAtOnce(missed), unanswered)
	for r, n := h.oldest, 0; r != nil && n < scanned && missed < need; r, n = r.after, n+1 {
		if h.unanswered(now, r) > r.Deadline.Sub(r.dispatched) {
			missed++
		}
	}
	return missed >= need
}

// unanswered is the time in which the service had the request and answered no other.
func (h *hang) unanswered(now headgate.Instant, r *Request) time.Duration {
	return now.Sub(max(r.dispatched, h.answered))
}

// mostAtOnce is the number of requests that the service can have. With CPUInFlight, it is known
// only while requests are queued.
func (t *Throttler) mostAtOnce(missed int) int {
	switch {
	case t.config.Concurrency > 0:
		return t.concurrency()
	case t.queue.length > 0:
		return max(missed+t.inFlight, 1)
	default:
		return unanswered
	}
}

func (h *hang) forgotten(now headgate.Instant) bool {
	return h.probe == nil && now.Sub(h.last) >= trustBusy
}

func (h *hang) forget(now headgate.Instant) {
	if h.forgotten(now) {
		h.missed = 0
	}
}

// dispatch adds a request that goes to the service.
func (h *hang) dispatch(now headgate.Instant, r *Request, hung bool) {
	h.forget(now)
	if h.oldest == nil && h.missed == 0 {
		h.answered = now
	}
	if hung {
		h.probe = r
	}
	if r.before = h.newest; r.before != nil {
		r.before.after = r
	} else {
		h.oldest = r
	}
	h.newest = r
}

// end removes a request. A request that failed or was cancelled is missed only when it took at
// least half of its time: a quick failure is no hang.
func (h *hang) end(now headgate.Instant, r *Request, lesson Lesson) {
	if r.before != nil {
		r.before.after = r.after
	} else {
		h.oldest = r.after
	}
	if r.after != nil {
		r.after.before = r.before
	} else {
		h.newest = r.before
	}
	if lesson != LearnMiss {
		h.answer(now)
		return
	}
	h.forget(now)
	if 2*h.unanswered(now, r) >= r.Deadline.Sub(r.dispatched) {
		h.missed, h.last = h.missed+1, now
	}
	if h.probe == r {
		h.probe, h.last = nil, now
	}
}

// answer ends a hang. A stream that begins is an answer too.
func (h *hang) answer(now headgate.Instant) {
	h.answered, h.last, h.missed, h.probe, h.known = now, now, 0, nil, false
}

// Begins notes that the service has begun to answer a request that keeps its place.
func (t *Throttler) Begins(now headgate.Instant, r *Request) {
	if r.state == admitted {
		t.hang.answer(now)
	}
}

// Patience returns the time after which a queued request is to be asked for again, or 0 when its
// wait is over: its deadline has passed, or the service hangs, and the request has waited for a
// part of its deadline. Call Expire then. A request that does not wait has 0.
func (t *Throttler) Patience(now headgate.Instant, r *Request) time.Duration {
	if r.state != queued {
		return 0
	}
	left, part := r.Deadline.Sub(now), r.Deadline.Sub(r.arrived)/patienceParts
	if t.hung(now) {
		part -= now.Sub(r.arrived)
	} else {
		part = max(part, time.Millisecond)
	}
	return max(min(left, part), 0)
}
