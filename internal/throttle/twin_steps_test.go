package throttle

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// This file has the changes of a twin's lists, and the bounds.

func (w *twin) admit(now headgate.Instant, r *twinRequest) {
	r.inHang = w.hung(now)
	r.state, r.dispatched = admitted, now
	w.hang.dispatched = append(w.hang.dispatched, r)
	if r.probe = w.late(now, r, 0); r.probe {
		r.level.note(twinLesson{kind: twinProbe, at: now})
	}
	r.account.note(now, r.Class, r.need.work)
}

// end corrects what the request was charged with, and teaches.
func (w *twin) end(now headgate.Instant, r *twinRequest, e Ended) {
	span := max(now.Sub(r.dispatched), 0)
	work := e.Work
	if work <= 0 {
		work = span
	}
	w.endSilence(now, r, e)
	w.live = without(w.live, r)
	w.tenants.ended(r.account)
	w.drain.note(twinEvent{at: now, queued: len(w.queued()) > 0, work: work, ended: true})
	r.account.note(now, r.Class, work-r.need.work)
	if r.charged {
		r.account.tag(r.bucket, twinTag{more: w.charged(r, work-r.need.work)})
	}
	switch {
	case e.Lesson == LearnAll:
		w.predictor.learn(now, r, work, span)
		if r.probe {
			r.level.note(twinLesson{kind: twinProbeAnswer, span: span})
		}
	case e.Lesson == LearnMiss && r.level != nil:
		r.level.note(twinLesson{kind: twinMiss, at: now, span: min(span, max(r.Deadline.Sub(r.dispatched), 0))})
	}
}

// charged is how far the end of a request moves its tenant back: by the work beyond the prediction, at most
// to two seconds behind the others.
func (w *twin) charged(r *twinRequest, more time.Duration) time.Duration {
	most := w.virtualTime(r.bucket) + 2*time.Second - r.account.start(r.bucket)
	return min(more, max(most, 0))
}

func (w *twin) enqueue(now headgate.Instant, r *twinRequest) {
	if len(w.flow(r.bucket, r.account)) == 0 {
		r.account.tag(r.bucket, twinTag{first: true, virtual: w.virtualTime(r.bucket)})
	}
	r.state = queued
	w.live = append(w.live, r)
	w.drain.note(twinEvent{at: now, queued: true})
}

func (w *twin) leaveQueue(now headgate.Instant, r *twinRequest) {
	r.state = outside
	w.live = without(w.live, r)
	w.tenants.ended(r.account)
	w.drain.note(twinEvent{at: now, queued: len(w.queued()) > 0})
}

// charge notes that a request goes from its bucket to the service.
func (w *twin) charge(r *twinRequest) {
	r.charged = true
	w.virtual[r.bucket] = append(w.virtual[r.bucket], r.account.start(r.bucket))
	r.account.tag(r.bucket, twinTag{more: r.need.work})
}

func (w *twin) refusal(now headgate.Instant, why headgate.Reason) answer {
	retry := w.takes(w.Load().QueuedWork)
	if w.hung(now) {
		retry = max(retry, w.config.Deadline)
	}
	return answer{headgate.Deny, why, retry}
}

// report lists a refused request for Next.
func (w *twin) report(now headgate.Instant, r *twinRequest, why headgate.Reason) {
	r.state, r.reported = refused, w.refusal(now, why)
	w.live, w.gone = append(w.live, r), append(w.gone, r)
}

func (w *twin) forget(r *twinRequest) { w.live, w.gone = without(w.live, r), without(w.gone, r) }

// pick returns the request that the code has chosen, if the rules allow it.
func (w *twin) pick(rule string, allowed []*twinRequest, chosen *Request) *twinRequest {
	for _, r := range allowed {
		if r.Request == chosen {
			return r
		}
	}
	w.faults = append(w.faults, fmt.Sprintf("%s: of bucket %d, %d requests may be chosen, and the code has chosen none of them", rule, allowed[0].bucket, len(allowed)))
	return allowed[0]
}

// room reports whether the service may get the request now.
func (w *twin) room(now headgate.Instant, r *twinRequest) bool {
	l := w.Load()
	if w.probing(now) {
		return false
	}
	if w.config.Concurrency > 0 {
		return l.InFlight < w.config.Concurrency
	}
	return l.InFlight == 0 || l.CPU+r.need.work <= w.config.CPUInFlight
}

// full reports whether the queue with the new request r exceeds a bound.
func (w *twin) full(r *twinRequest) bool {
	if len(w.queued()) > w.config.MaxWaiters {
		return true
	}
	rate, known := w.drain.rate()
	return known && float64(w.Load().QueuedWork-r.need.work) > rate*w.config.PartOfDeadline*float64(w.config.Deadline)
}

// hopeless is the rule of the deadline, with the exception for a level that learned nothing for 5 s, or for
// 200 ms while the service has less than half of its bound.
func (w *twin) hopeless(now headgate.Instant, r *twinRequest, wait time.Duration) bool {
	trust, l := 5*time.Second, w.Load()
	if w.config.Concurrency > 0 && 2*l.InFlight < w.config.Concurrency || w.config.Concurrency == 0 && 2*l.CPU < w.config.CPUInFlight {
		trust = 200 * time.Millisecond
	}
	return now.Add(wait) > r.Deadline || w.late(now, r, wait) && now.Sub(r.level.state().at) < trust
}

func (w *twin) late(now headgate.Instant, r *twinRequest, wait time.Duration) bool {
	doubt := 1.4
	if r.Class > Critical {
		doubt = 1.8
	}
	return r.level != nil && r.level != w.predictor.all && now.Add(wait+r.need.time+time.Duration(doubt*float64(r.need.deviation))) > r.Deadline
}

// takes returns the time that the work takes to drain: 0 while the rate is unknown, at most 1 h.
func (w *twin) takes(work time.Duration) time.Duration {
	rate, known := w.drain.rate()
	if !known {
		return 0
	}
	return time.Duration(min(float64(work)/rate, float64(time.Hour)))
}
