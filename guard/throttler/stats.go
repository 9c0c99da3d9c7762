package throttler

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/throttle"
)

// Load returns the current load and the counts so far.
func (s *Stage) Load() (Load, Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Hung = s.throttler.Hung(s.now())
	return s.throttler.Load(), stats
}

// Stats are counts since the start.
type Stats struct {
	// Hung says that the service answers nothing now.
	Hung bool
	// Refused counts refusals by reason and class: full, evicted, deadline.
	Refused [3][throttle.ClassCount]uint64
	// Waited counts the requests that waited and then went to the service, and WaitTime is the
	// sum of their waits.
	Waited   uint64
	WaitTime time.Duration
	// Predicted is the sum of the predicted work of the requests that the service answered, and
	// Measured the sum of the work that they took.
	Predicted, Measured time.Duration
}

func (s *Stats) refused(r *throttle.Request) {
	s.Refused[r.Refusal-headgate.ThrottleFull][r.Class]++
}

// answered counts the work of a request that the service answered. elapsed is its time at the service.
func (s *Stats) answered(r *throttle.Request, e throttle.Ended, elapsed time.Duration) {
	s.Predicted += r.Work()
	if e.Work > 0 {
		elapsed = e.Work
	}
	s.Measured += elapsed
}

func (s *Stats) waited(d time.Duration) {
	s.Waited++
	s.WaitTime += d
}
