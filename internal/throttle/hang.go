package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// hang notices a service that answers nothing. It has the requests at the service, in the order of
// their dispatch.
type hang struct {
	oldest, newest *Request
	answered       headgate.Instant // the last answer
	missed         int              // requests that have ended since then without an answer, late
	last           headgate.Instant // the end of the latest of them
	probe          *Request         // the one request that the service gets in a hang
}

const (
	// unanswered is how many requests the service leaves without an answer before it hangs.
	unanswered = 5
	// scanned bounds the requests whose deadlines are compared with the time.
	scanned = 64
	// probeLife is the time, in Deadlines, after which a probe without an answer is to be cancelled. A late
	// answer still ends the hang. probeLost is when the next probe goes although the former one has not ended: its handler
	// ignores that it was cancelled.
	probeLife, probeLost = 3, 4
	// patienceParts is the part of its deadline that a request waits in a hang. Timers are late, and a tenth is the aim.
	patienceParts = 16
)

// Hung reports whether the service answers nothing: since its last answer, five requests have
// passed their deadlines, or as many as the service can have. Each of them was at the service for half of
// Deadline at least, so that neither short deadlines nor idle time make a hang. For a request that
// the service had before its last answer, the time begins anew with this answer. After a time without such
// requests, the hang is forgotten.
func (t *Throttler) Hung(now headgate.Instant) bool {
	h := &t.hang
	if t.probing(now) {
		return true
	}
	if 2*now.Sub(h.answered) < t.config.Deadline {
		return false // No request can be late.
	}
	missed := h.missed
	if h.forgotten(now) {
		missed = 0
	}
	need := min(t.mostAtOnce(missed), unanswered)
	for r, n := h.oldest, 0; r != nil && n < scanned && missed < need; r, n = r.after, n+1 {
		if silent := h.unanswered(now, r); !r.begun && silent > r.Deadline.Sub(r.dispatched) && 2*silent >= t.config.Deadline {
			missed++
		}
	}
	return missed >= need
}

// probing reports whether the service has a probe that may still be answered.
func (t *Throttler) probing(now headgate.Instant) bool {
	probe := t.hang.probe
	return probe != nil && now.Sub(probe.dispatched) <= probeLost*t.config.Deadline
}

// Probe reports whether a request is the probe of a hang, and the time after which Probe is to be called
// again. Cancel the request at 0, and call Leave when it has ended: the next probe goes then. whole says that the request does not
// wait for the body of its client now. Call Probe earlier if it may wait later: a client that sends slowly must not keep others out.
func (t *Throttler) Probe(now headgate.Instant, r *Request, whole bool) (left time.Duration, probe bool) {
	if t.hang.probe != r {
		return 0, false
	}
	most := t.config.Deadline / patienceParts
	if whole {
		most = probeLife * t.config.Deadline
	}
	return max(most-now.Sub(r.dispatched), 0), true
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

// dispatch adds a request that goes to the service.
func (h *hang) dispatch(r *Request, hung bool) {
	if r.begun = false; hung {
		h.probe = r
	}
	if r.before = h.newest; r.before != nil {
		r.before.after = r
	} else {
		h.oldest = r
	}
	h.newest = r
}

// endHang removes a request that has ended. A request that failed or was cancelled is missed only
// when it took at least half of its time, and half of Deadline: a quick failure is no hang. A probe is cancelled
// before the end of a longer time that its caller gives it, so half of Deadline is enough for it.
func (t *Throttler) endHang(now headgate.Instant, r *Request, e Ended) {
	h := &t.hang
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
	given := r.Deadline.Sub(r.dispatched)
	if h.probe == r {
		given = min(given, t.config.Deadline)
	}
	switch silent := 2 * h.unanswered(now, r); {
	case r.begun: // Begins has said it.
	case e.Lesson == LearnAll || e.Answered:
		h.answer(now)
	case e.Lesson == LearnMiss && silent >= given && silent >= t.config.Deadline:
		if h.forgotten(now) {
			h.missed = 0
		}
		h.missed, h.last = h.missed+1, now
	}
	if h.probe == r {
		h.probe = nil
	}
}

// answer ends a hang.
func (h *hang) answer(now headgate.Instant) { h.answered, h.missed, h.probe = now, 0, nil }

// Begins notes that the answer of a request has begun: the rest of its time says nothing about a hang. answered is
// false for a stream that keeps its place, and of which the service has sent nothing. After true, call Next until it returns nil.
func (t *Throttler) Begins(now headgate.Instant, r *Request, answered bool) {
	if r.state != admitted {
		return
	}
	switch r.begun = true; {
	case answered:
		t.hang.answer(now)
	case t.hang.probe == r:
		t.hang.probe = nil
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
	if t.Hung(now) {
		part -= now.Sub(r.arrived)
	} else { // A hang needs half of Deadline without an answer.
		part = max(part, t.config.Deadline/2-now.Sub(t.hang.answered), time.Millisecond)
	}
	return max(min(left, part), 0)
}
