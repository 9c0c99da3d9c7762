package adaptive

import (
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/throttle"
)

// Config sets the rule. The zero Config has the values of the package comment.
type Config struct {
	// K is the number of requests for each accepted one, below which nothing is dropped; 0 is 2.
	K float64
	// Window is the time that is counted, in 24 parts; 0 is two minutes.
	Window time.Duration
	// Most bounds the probability of a drop; 0 is 0.9.
	Most float64
	// Retries bounds retries as a part of the requests; 0 is 0.1. A negative value allows none.
	Retries float64
}

// parts is the number of parts of a window. A count ends with its part, up to 5 s early.
const parts = 24

// Service counts the requests to one service. It is safe for concurrent use, and takes about 2 KiB.
type Service struct {
	name   string
	config Config

	mu    sync.Mutex
	at    int64 // the number of the current part
	parts [parts]counts
	all   counts // the sum of parts
}

// counts are the counts of one part of the window. A cancelled request can make them negative.
type counts struct {
	requests, accepts [throttle.ClassCount]int64
	first, retries    int64
}

// NewService makes a Service with a name for errors.
func NewService(name string, c Config) (*Service, error) {
	c.K, c.Most, c.Retries = or(c.K, 2), or(c.Most, 0.9), or(c.Retries, 0.1)
	if c.Window == 0 {
		c.Window = 2 * time.Minute
	}
	if c.K < 1 || c.Most <= 0 || c.Most > 1 || c.Window < parts*time.Millisecond || c.Retries > 1 {
		return nil, fmt.Errorf("adaptive: K is at least 1, Most above 0 and at most 1, Window at least %v, and Retries at most 1",
			parts*time.Millisecond)
	}
	return &Service{name: name, config: c}, nil
}

func or(v, standard float64) float64 {
	if v == 0 {
		return standard
	}
	return v
}

// DropError says that a request was not sent, because the service refuses too many of its class.
type DropError struct {
	// Service is the name of the service.
	Service string
	Class   throttle.Class
}

// Error gives the problem and the fix in one sentence.
func (e *DropError) Error() string {
	return fmt.Sprintf("adaptive: a request to %s was not sent, because the service refuses many requests of class %s: "+
		"try again later, or send fewer", e.Service, e.Class)
}

// Begin counts a request, and gives a *DropError if it must not be sent. draw is a random number from
// 0 to 1. After nil, the caller calls Accepted or Canceled, or nothing if the service refused.
func (s *Service) Begin(now headgate.Instant, class throttle.Class, draw float64, retry bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.part(now)
	requests, accepts := float64(max(s.all.requests[class], 0)), float64(max(s.all.accepts[class], 0))
	p.requests[class]++
	s.all.requests[class]++
	if !retry {
		p.first++
		s.all.first++
	}
	if draw < min((requests-s.config.K*accepts)/(requests+1), s.config.Most) {
		return &DropError{s.name, class}
	}
	return nil
}

// Accepted counts a request that the service did not refuse.
func (s *Service) Accepted(now headgate.Instant, class throttle.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part(now).accepts[class]++
	s.all.accepts[class]++
}

// Canceled takes back the count of a request whose caller left before the answer.
func (s *Service) Canceled(now headgate.Instant, class throttle.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part(now).requests[class]--
	s.all.requests[class]--
}

// Retry reports whether a refused request may be sent again, and counts the retry.
func (s *Service) Retry(now headgate.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.part(now)
	if float64(s.all.retries+1) > s.config.Retries*float64(s.all.first) {
		return false
	}
	p.retries++
	s.all.retries++
	return true
}

// part gives the counts of the part of the window that contains now, and drops those that are over. A time
// before the current part belongs to the current part. The caller holds mu.
func (s *Service) part(now headgate.Instant) *counts {
	at := int64(now) / (int64(s.config.Window) / parts)
	for ; s.at < at; s.at++ {
		if at-s.at > parts {
			s.at = at - parts // Everything has expired.
		}
		next := &s.parts[(s.at+1)%parts]
		s.all.subtract(next)
		*next = counts{}
	}
	return &s.parts[s.at%parts]
}

func (c *counts) subtract(d *counts) {
	for i := range c.requests {
		c.requests[i] -= d.requests[i]
		c.accepts[i] -= d.accepts[i]
	}
	c.first -= d.first
	c.retries -= d.retries
}
