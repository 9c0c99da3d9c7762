package overload

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
)

// Job is what one attempt takes at the service: first CPU, then a connection of the pool for a
// time, then a wait. Times are nanoseconds.
type Job struct{ CPU, Pool, Wait float64 }

// Service is a model of a service. Its cores are shared by all runnable jobs in equal parts
// (processor sharing). Above 64 runnable jobs, it is 0.1 % slower for each more. A job holds one
// of Connections, if there are any, for its time Pool, and waits for Wait at the end.
type Service struct {
	Cores       float64
	Connections int

	speed    float64 // 1, less after a loss of capacity
	attained float64 // the CPU time that a job gets that runs since the beginning
	last     headgate.Instant
	running  sim.Queue[*Attempt]
	version  int // of the event of the next job to end
	busy     int // connections
	waiting  []*Attempt
}

// slowFrom and slowBy describe the loss by many runnable jobs.
const slowFrom, slowBy = 64, 0.001

// rate returns the CPU time that each runnable job gets per nanosecond.
func (s *Service) rate() float64 {
	n := float64(s.running.Len())
	if n == 0 {
		return 0
	}
	r := s.speed * min(1, s.Cores/n)
	if n > slowFrom {
		r *= max(0.05, 1-slowBy*(n-slowFrom))
	}
	return r
}

// advance brings all running jobs to the time now.
func (s *Service) advance(now headgate.Instant) {
	s.attained += s.rate() * float64(now-s.last)
	s.last = now
}

// run starts the CPU part of an attempt.
func (s *Service) run(now headgate.Instant, a *Attempt) {
	s.advance(now)
	a.finish = s.attained + a.Job.CPU
	s.running.Push(a)
}

// next returns the time at which the first running job ends its CPU part.
func (s *Service) next() (headgate.Instant, bool) {
	if s.running.Len() == 0 {
		return 0, false
	}
	left := max(s.running.First().finish-s.attained, 0)
	return s.last + headgate.Instant(left/s.rate()) + 1, true
}

// ended removes the first running job if it has ended its CPU part.
func (s *Service) ended(now headgate.Instant) *Attempt {
	s.advance(now)
	if s.running.Len() == 0 || s.running.First().finish > s.attained {
		return nil
	}
	return s.running.Pop()
}

// shorter is the order in which attempts end their CPU part.
func shorter(a, b *Attempt) bool { return a.finish < b.finish }
