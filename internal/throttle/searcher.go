package throttle

import (
	"time"

	"github.com/headgate/headgate"
)

// searcher is the state of a Search.
//
// The time of a request at the service is a + b x: x is its CPU time, a are its waits for others, and b is
// the slowdown of its work. The regression over the requests of a window gives a and b, without a base
// latency and without an idle service. Beyond one request for each core, b is the number of requests that can
// run, for each core. So the limit follows b towards slowdownTarget. When requests differ too little for a
// regression, or the CPU is free, trials compare the work that is done in time.
type searcher struct {
	Search

	limit   float64
	advice  float64          // the result of a search that is not applied; 0 is unknown
	cores   float64          // CPU time per second of a busy service; 0 is unknown
	eased   headgate.Instant // from when the service has less to do, by a cut of the limit
	last    headgate.Instant // of the last end
	settled headgate.Instant // requests that end before do not count
	window  window
	trial   trial

	inFlight int
	counted  headgate.Instant
	area     float64 // the integral of inFlight over the time, in request nanoseconds
}

// window is what a searcher has seen since its last step. Work is in seconds.
type window struct {
	elapsed, queued time.Duration // queued is the part with a queue
	ended           int
	work, missed    float64 // missed is the part of work whose clients have left
	useful          float64 // work in time, while requests are queued
	reported        float64
	inFlight        float64 // the mean during a request, times its CPU time, summed
	times           regression
}

// configure takes another Search. One that is applied before and after keeps its limit, within the bounds.
func (s *searcher) configure(c Search, concurrency int) {
	if c == (Search{}) {
		*s = searcher{limit: float64(concurrency)}
		return
	}
	if !s.Apply || !c.Apply {
		s.limit = float64(concurrency)
	}
	s.Search = c
	s.limit = s.within(s.limit)
}

func (s *searcher) within(limit float64) float64 {
	return min(max(limit, float64(s.Min)), float64(s.Max))
}

// found returns the result so far, or 0.
func (s *searcher) found() int {
	switch {
	case s.Max == 0:
		return 0
	case s.Apply:
		return int(s.limit)
	default:
		return int(s.advice)
	}
}

// change notes the number of requests in flight.
func (s *searcher) change(now headgate.Instant, n int) {
	if s.Max == 0 {
		return
	}
	s.area += float64(s.inFlight) * float64(max(now.Sub(s.counted), 0))
	s.inFlight, s.counted = n, now
}

// end learns from a request that ended after span at the service.
func (s *searcher) end(now headgate.Instant, r *Request, e Ended, span time.Duration, queued bool) {
	if s.Max == 0 || e.Lesson == LearnNothing {
		return
	}
	passed := min(max(now.Sub(s.last), 0), settleTime)
	s.last = now
	if now < s.settled {
		return
	}
	w := &s.window
	w.add(e, span, passed, queued)
	if e.Work > 0 && span > 0 {
		w.inFlight += e.Work.Seconds() * (s.area - r.area) / float64(span)
	}
	need := searchWindow
	if s.trial.on {
		need = trialWindow
	}
	if w.elapsed >= need && w.ended >= searchSamples {
		s.step(now, w.read(s.cores))
		s.window = window{}
	}
}

// add counts a request, and the time since the one before.
func (w *window) add(e Ended, span, passed time.Duration, queued bool) {
	work := e.Work
	if work > 0 {
		w.reported += work.Seconds()
		w.times.add(work.Seconds(), span.Seconds())
	} else {
		work = span
	}
	w.elapsed += passed
	w.work += work.Seconds()
	w.ended++
	if e.Lesson == LearnMiss {
		w.missed += work.Seconds()
	}
	if queued {
		w.queued += passed
		if e.Lesson != LearnMiss {
			w.useful += work.Seconds()
		}
	}
}

// step ends a window: it moves the limit, or only gives advice. Of a service that does not report
// its work, it learns nothing: trials alone did worse than the limit where the search begins.
func (s *searcher) step(now headgate.Instant, r reading) {
	s.learnCores(r)
	switch {
	case !r.reports:
		s.trial.on = false
	case !s.Apply:
		s.advise(r)
	case r.known && r.slope-2*r.err > slowdownHigh:
		s.cut(now, min(s.limit, r.inFlight*max(slowdownTarget/r.slope, lowestCut)))
	case r.known && !r.full && r.slope-r.err > slowdownVisible:
		s.move(now, min(s.limit, r.inFlight*max(slowdownTarget/r.slope, roomAbove)))
	case !r.known && r.missed > mostMissed:
		s.cut(now, s.limit*missedCut)
	case !r.full:
		s.trial.on = false // The limit has no effect.
	case s.trial.on:
		s.judge(now, r)
	case r.sure && r.slope > slowdownLow:
		s.trial.rest = 0 // The limit is right.
	case r.sure && s.limit < 0.9*s.enough(r):
		s.move(now, s.enough(r))
	case now >= s.trial.next:
		s.try(now, r)
	}
}

// move sets the limit within its bounds.
func (s *searcher) move(now headgate.Instant, limit float64) {
	s.limit = s.within(limit)
	s.settled = now.Add(settleTime)
}

// cut lowers the limit. The service times that the predictor has learned are then too long, so each of its
// means may be probed once.
func (s *searcher) cut(now headgate.Instant, limit float64) {
	s.trial.on = false
	s.move(now, limit)
	s.eased = s.settled
}
