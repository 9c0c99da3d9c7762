// Package service models a service in virtual time: cores that all running jobs share, a pool of connections or a lock, and a rest
// that needs neither. It may lose speed under load, or collapse.
package service

import (
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim"
)

// Model says what a service has.
type Model struct {
	// Cores are shared by all runnable jobs in equal parts (processor sharing).
	Cores float64
	// Connections is the size of the pool; 1 is a lock, and 0 means that jobs need no connection.
	Connections int
	// Above SlowFrom runnable jobs, the service loses the part SlowBy of its speed for each more, and keeps at least LeastSpeed.
	SlowFrom   int
	SlowBy     float64
	LeastSpeed float64
}

// Job is what one request takes at the service: first CPU, then a connection for the time Pool, then Wait. Times are nanoseconds.
type Job struct {
	CPU, Pool, Wait float64

	finish float64 // of the CPU part, on the scale of Service.attained
	done   func()
}

// Service is a Model at work. One goroutine uses a Service.
type Service struct {
	Model

	time     *sim.Time
	speed    float64 // 1, less after a loss of capacity
	attained float64 // the CPU time that a job gets that runs since the beginning
	last     headgate.Instant
	running  sim.Queue[*Job]
	next     *sim.Alarm // of the first job to end its CPU part
	busy     int        // connections
	waiting  []*Job
}

// New returns a service without work, at full speed.
func New(t *sim.Time, m Model) *Service {
	s := &Service{Model: m, time: t, speed: 1, last: t.Now()}
	s.running.Before = func(a, b *Job) bool { return a.finish < b.finish }
	s.next = t.Alarm(s.cpuEnded)
	return s
}

// SetSpeed changes the speed: 1 is that of the cores.
func (s *Service) SetSpeed(speed float64) {
	s.advance()
	s.speed = speed
	s.plan()
}

// Run starts a job, which must not be in use. done is called at its end. With a nil done, the job ends with its CPU part.
func (s *Service) Run(j *Job, done func()) {
	s.advance()
	j.finish, j.done = s.attained+j.CPU, done
	s.running.Push(j)
	s.plan()
}

// rate returns the CPU time that each runnable job gets per nanosecond.
func (s *Service) rate() float64 {
	n := float64(s.running.Len())
	if n == 0 {
		return 0
	}
	r := s.speed * min(1, s.Cores/n)
	if from := float64(s.SlowFrom); n > from {
		r *= max(s.LeastSpeed, 1-s.SlowBy*(n-from))
	}
	return r
}

// advance brings all running jobs to the present time.
func (s *Service) advance() {
	now := s.time.Now()
	s.attained += s.rate() * float64(now-s.last)
	s.last = now
}

// plan sets the alarm for the next job to end its CPU part.
func (s *Service) plan() {
	if s.running.Len() == 0 {
		s.next.Stop()
		return
	}
	left := max(s.running.First().finish-s.attained, 0)
	s.next.Reset(s.last.Add(time.Duration(left/s.rate()) + 1).Sub(s.time.Now()))
}

// cpuEnded moves all jobs on that have ended their CPU part.
func (s *Service) cpuEnded() {
	for s.advance(); s.running.Len() > 0 && s.running.First().finish <= s.attained; s.advance() {
		j := s.running.Pop()
		switch {
		case j.done == nil:
		case s.Connections == 0:
			s.end(j)
		default:
			s.waiting = append(s.waiting, j)
			s.connect()
		}
	}
	s.plan()
}

// connect gives free connections to the jobs that wait for one.
func (s *Service) connect() {
	for s.busy < s.Connections && len(s.waiting) > 0 {
		j := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.busy++
		s.time.At(s.time.Now().Add(time.Duration(j.Pool)), func() {
			s.busy--
			s.connect()
			if j.Wait > 0 {
				s.end(j)
				return
			}
			j.done()
		})
	}
}

// end ends a job after its last part.
func (s *Service) end(j *Job) { s.time.At(s.time.Now().Add(time.Duration(j.Wait)), j.done) }
