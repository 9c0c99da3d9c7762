package throttle

import (
	"errors"
	"fmt"
	"time"
)

// Search looks for the concurrency with which the service does as much work as it can, and no request waits
// at the service longer than needed. It needs a service that reports its work. The zero Search is off.
// Decision record 24 has what it reaches and what was tried.
type Search struct {
	// Min and Max bound the concurrency. Config.Concurrency is the start, between them.
	Min, Max int
	// Apply makes the throttler use the result. Otherwise Load.Found only reports it. Test Apply with the
	// load of the service first: in one of five drawn simulations the search reached 0.84 of the work of a
	// Concurrency set by hand. Therefore the configuration file has no setting for Apply.
	Apply bool
}

// check finds the first fault of a search that begins at a concurrency.
func (s Search) check(concurrency int) error {
	switch {
	case s == Search{}:
		return nil
	case concurrency == 0:
		return errors.New("throttle: Search needs Concurrency, where it begins: set it, or remove Search")
	case s.Min < 1 || s.Max > maxConcurrency || s.Min > concurrency || s.Max < concurrency:
		return fmt.Errorf("throttle: Search is from %d to %d: write bounds of 1 to %d around the Concurrency of %d",
			s.Min, s.Max, maxConcurrency, concurrency)
	default:
		return nil
	}
}

// The search aims at a slowdown of the CPU work: with three requests for each core that can run, no core is
// idle while some requests wait for others, and the service keeps no queue of its own.
const (
	slowdownTarget  = 3
	slowdownLow     = 2.25 // below, the service can take more
	slowdownHigh    = 3.25 // above, by two standard errors, it has too many
	slowdownVisible = 1.5  // above, requests wait for a core
	// sureError is the standard error above which a slowdown says only that it is far above slowdownHigh.
	sureError = 0.75
	// idleBelow is the part of the cores below which some are idle.
	idleBelow = 0.7
	// coresWeight is the weight of a window in the number of cores.
	coresWeight = 0.3
	// lowestCut bounds one cut of the limit.
	lowestCut = 0.3
	// roomAbove is the least room above the requests in flight that a cut without a queue leaves.
	roomAbove = 1.2
)

// Where the slowdown is not known, trials decide.
const (
	// mostMissed is the part of the work whose clients have left, above which the limit falls.
	mostMissed, missedCut = 0.1, 0.7
	// A trial multiplies the limit by one of these.
	trialUp, trialDown, trialIdle = 1.25, 0.6, 2
	// A trial up has to do this part of the work before, and a trial down this.
	gainUp, gainDown = 1.08, 0.96
	// fullPart is the part of a window with a queue from which the limit counts as reached.
	fullPart = 0.8
)

// The times of the search.
const (
	searchWindow  = time.Second
	trialWindow   = 1500 * time.Millisecond
	settleTime    = 500 * time.Millisecond // after a change of the limit
	searchSamples = 50
	shortestRest  = 4 * time.Second // after a failed trial; doubled up to longestRest
	longestRest   = time.Minute
)
