package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// This file has a twin's rule of a service that hangs. It replays all that happened since the last answer.

// twinEnd is the end of a request without an answer.
type twinEnd struct {
	at            headgate.Instant
	late, probing bool // probing: a probe was at the service until then
}

type twinHang struct {
	dispatched []*twinRequest // all so far, in this order
	ends       []twinEnd      // since the last answer
	answered   headgate.Instant
	forgotten  headgate.Instant // the last late end
}

// probe returns the request that went to the service in a hang as the last one, or nil.
func (w *twin) probe() *twinRequest {
	var last *twinRequest
	for _, r := range w.hang.dispatched {
		if r.inHang {
			last = r
		}
	}
	if last == nil || last.state != admitted {
		return nil
	}
	return last
}

func (w *twin) probing(now headgate.Instant) bool {
	r := w.probe()
	return r != nil && now.Sub(r.dispatched) <= 4*w.config.Deadline
}

// Probe is the time until a probe is cancelled: three deadlines, or a sixteenth of one while its body arrives.
func (w *twin) Probe(now headgate.Instant, request *Request, whole bool) (time.Duration, bool) {
	r := w.probe()
	switch {
	case r == nil || r.Request != request:
		return 0, false
	case whole:
		return max(r.dispatched.Add(3*w.config.Deadline).Sub(now), 0), true
	default:
		return max(r.dispatched.Add(w.config.Deadline/16).Sub(now), 0), true
	}
}

// missed replays the ends. Late ends are forgotten 5 s after the last one, but not while a probe is at the service.
func (w *twin) missed(now headgate.Instant) int {
	n, last := 0, w.hang.forgotten
	for _, e := range w.hang.ends {
		if !e.late {
			continue
		}
		if !e.probing && e.at.Sub(last) >= 5*time.Second {
			n = 0
		}
		n, last = n+1, e.at
	}
	if w.probe() == nil && now.Sub(last) >= 5*time.Second {
		return 0
	}
	return n
}

func (w *twin) hung(now headgate.Instant) bool {
	if w.probing(now) {
		return true
	}
	missed, seen, most := w.missed(now), 0, w.config.Concurrency
	if most == 0 {
		most = 5
		if len(w.queued()) > 0 {
			most = max(missed+w.Load().InFlight, 1)
		}
	}
	for _, r := range w.hang.dispatched {
		if r.state != admitted {
			continue
		}
		silent := w.silence(now, r)
		if seen++; seen <= 64 && !r.begun && silent > r.Deadline.Sub(r.dispatched) && silent >= (w.config.Deadline+1)/2 {
			missed++
		}
	}
	return now.Sub(w.hang.answered) >= (w.config.Deadline+1)/2 && missed >= min(most, 5)
}

// silence is the time of a request at the service since the last answer.
func (w *twin) silence(now headgate.Instant, r *twinRequest) time.Duration {
	return min(now.Sub(r.dispatched), now.Sub(w.hang.answered))
}

func (w *twin) endSilence(now headgate.Instant, r *twinRequest, e Ended) {
	silent, probing := w.silence(now, r), w.probe() != nil
	switch {
	case r.begun:
	case e.Lesson == LearnAll || e.Answered:
		w.answered(now)
	case e.Lesson == LearnMiss:
		// A probe is cancelled before the end of a long time that its caller gives it.
		late := (silent >= (r.Deadline.Sub(r.dispatched)+1)/2 || w.probe() == r) && silent >= (w.config.Deadline+1)/2
		w.hang.ends = append(w.hang.ends, twinEnd{now, late, probing})
	}
	r.state = outside
}

func (w *twin) answered(now headgate.Instant) {
	for _, other := range w.hang.dispatched {
		other.inHang = false
	}
	w.hang.forgotten = w.lastLate()
	w.hang.ends, w.hang.answered = nil, now
}

func (w *twin) lastLate() headgate.Instant {
	last := w.hang.forgotten
	for _, e := range w.hang.ends {
		if e.late {
			last = e.at
		}
	}
	return last
}

// Begins notes that the answer of a request has begun, or that the request is a stream.
func (w *twin) Begins(now headgate.Instant, request *Request, answered bool) {
	r := w.find(request)
	if r == nil || r.state != admitted {
		return
	}
	if r.begun = true; answered {
		w.answered(now)
	} else if w.probe() == r {
		for _, other := range w.hang.dispatched {
			other.inHang = false
		}
	}
}

// Patience is a sixteenth of the deadline in a hang, and the rest of the deadline otherwise, asked for
// again after each sixteenth, or when a hang can show.
func (w *twin) Patience(now headgate.Instant, request *Request) time.Duration {
	r := w.find(request)
	if r == nil || r.state != queued {
		return 0
	}
	left, part := r.Deadline.Sub(now), r.Deadline.Sub(r.since)/16
	switch {
	case left <= 0:
		return 0
	case w.hung(now):
		return min(max(part-now.Sub(r.since), 0), left)
	default:
		return min(max(part, w.config.Deadline/2-now.Sub(w.hang.answered), time.Millisecond), left)
	}
}
