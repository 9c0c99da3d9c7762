package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// This file has a twin's rule of a service that hangs. It replays all that happened since the last answer.

// twinEnd is the end of a request without an answer.
type twinEnd struct {
	at                   headgate.Instant
	late, probe, probing bool // probing: it, or another request, was the probe
}

type twinHang struct {
	dispatched []*twinRequest   // all so far, in this order
	ends       []twinEnd        // since the last answer
	answered   headgate.Instant // the last answer, or the first dispatch after it
}

// beginSilence is called before a dispatch: a service that had nothing to answer was not silent.
func (w *twin) beginSilence(now headgate.Instant) {
	if w.missed(now) == 0 {
		w.hang.ends = nil
		if w.Load().InFlight == 0 {
			w.hang.answered = now
		}
	}
}

func (w *twin) probing() bool {
	for _, r := range w.hang.dispatched {
		if r.state == admitted && r.inHang {
			return true
		}
	}
	return false
}

// missed replays the ends. A pause of 5 s since the last late end, or the last end of a probe, forgets all late ends
// before it. While a probe is at the service, nothing is forgotten.
func (w *twin) missed(now headgate.Instant) int {
	n, last := 0, w.hang.answered
	for _, e := range w.hang.ends {
		if !e.probing && e.at.Sub(last) >= 5*time.Second {
			n = 0
		}
		if e.late {
			n++
		}
		if e.late || e.probe {
			last = e.at
		}
	}
	if !w.probing() && now.Sub(last) >= 5*time.Second {
		return 0
	}
	return n
}

func (w *twin) hung(now headgate.Instant) bool {
	if w.probing() {
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
		if seen++; seen <= 64 && w.silence(now, r) > r.Deadline.Sub(r.dispatched) {
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
	probe, probing := r.inHang, w.probing()
	if e.Lesson != LearnMiss {
		for _, other := range w.hang.dispatched {
			other.inHang = false
		}
		w.hang.ends, w.hang.answered = nil, now
	} else {
		late := w.silence(now, r) >= (r.Deadline.Sub(r.dispatched)+1)/2
		w.hang.ends = append(w.hang.ends, twinEnd{now, late, probe, probing})
	}
	r.state = outside
}

// Patience is a sixteenth of the deadline in a hang, and the rest of the deadline otherwise, asked for
// again after each sixteenth.
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
		return min(max(part, time.Millisecond), left)
	}
}
