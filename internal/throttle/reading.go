package throttle

// reading is what a window says.
type reading struct {
	line

	reports     bool    // the service reports the work of most requests
	known, sure bool    // the line is known, and its error is small
	full        bool    // requests were queued most of the time
	idle        bool    // some cores were idle
	busy        float64 // cores
	missed      float64 // the part of the work whose clients have left
	rate        float64 // work in time per second with a queue
	inFlight    float64 // the mean during a unit of work
	weighty     float64 // seconds of CPU time of the request that a unit of work belongs to
}

// read returns what the window says of a service with that many cores.
func (w *window) read(cores float64) reading {
	r := reading{full: float64(w.queued) > fullPart*float64(w.elapsed), busy: w.reported / w.elapsed.Seconds()}
	if r.line, r.known = w.times.line(); r.known {
		r.sure = r.err < sureError
		r.inFlight = w.inFlight / w.times.x
		r.weighty = w.times.weighty()
	}
	r.reports = 2*w.times.n > float64(w.ended)
	r.idle = r.busy < idleBelow*cores
	if w.work > 0 {
		r.missed = w.missed / w.work
	}
	if r.full {
		r.rate = w.useful / w.queued.Seconds()
	}
	return r
}

// learnCores takes the CPU time of a busy service for its cores.
func (s *searcher) learnCores(r reading) {
	switch {
	case !r.sure:
	case r.slope > slowdownLow && s.cores > 0:
		s.cores += coresWeight * (r.busy - s.cores)
	case r.slope > slowdownVisible:
		s.cores = max(s.cores, r.busy)
	}
}

// enough returns a limit that suffices for slowdownTarget: the requests that run, and those that wait for
// others meanwhile (Little's law). It counts requests like those with the most work, as more small ones may
// be replaced by large ones at any time.
func (s *searcher) enough(r reading) float64 {
	return s.cores * (slowdownTarget + max(r.intercept, 0)/r.weighty)
}

// advise gives the limit that the slowdown asks for, without a trial: the limit in use stays.
func (s *searcher) advise(r reading) {
	if !r.known || r.slope-r.err < slowdownVisible {
		return
	}
	advice := s.within(r.inFlight * slowdownTarget / r.slope)
	if s.advice == 0 {
		s.advice = advice
	}
	s.advice += coresWeight * (advice - s.advice)
}
