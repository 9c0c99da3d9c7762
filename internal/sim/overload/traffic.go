package overload

import (
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sim/service"
	"github.com/headgate/headgate/internal/throttle"
)

// Logical is one request of a user, with up to three attempts.
type Logical struct {
	Tenant, Route int
	Class         throttle.Class
	Arrived       headgate.Instant

	attempts int
	answered bool // in time
}

// Attempt is one attempt of a logical request. A Design gets it by Arrive.
type Attempt struct {
	*Logical

	Job      service.Job
	Deadline headgate.Instant
	// Request is for the Design under test.
	Request throttle.Request

	cpu     time.Duration // drawn with the logical request
	state   attemptState
	started headgate.Instant // the time from which the proxy waits for the answer
	left    bool             // the client has given up
	slow    bool             // its body takes slowBody to arrive
	whole   bool             // its body has arrived
	probe   bool             // it began in the known hang
}

type attemptState uint8

const (
	waits attemptState = iota
	runs
	over
)

// traffic draws logical requests.
type traffic struct {
	Scenario

	random  *rand.Rand
	tenants int
	rate    float64 // logical requests per nanosecond at load 1
}

func newTraffic(s Scenario, seed uint64) *traffic {
	t := &traffic{Scenario: s, random: rand.New(rand.NewPCG(seed, 14)), tenants: max(s.Tenants, 1)}
	if s.Tenants == 0 {
		t.tenants = 10
	}
	t.rate = s.capacity() / s.unit()
	return t
}

// capacity is the work that the service does in a nanosecond, at full speed.
func (s *Scenario) capacity() float64 {
	if s.Pool > 0 {
		return float64(s.Pool)
	}
	return cores
}

// unit is the mean work of a request in the measure of capacity. A poisoned tenant counts with
// the work that the others have, so that the load of the others is that of the scenario.
func (s *Scenario) unit() float64 {
	if s.Pool > 0 {
		return float64(poolTime)
	}
	return float64(s.Costs.Mean())
}

// next draws the time until the next logical request.
func (t *traffic) next(now headgate.Instant) time.Duration {
	load := t.Load
	if at := time.Duration(now); t.BurstLoad > 0 && at >= t.BurstFrom && at < t.BurstTo {
		load = t.BurstLoad
	}
	return time.Duration(t.random.ExpFloat64() / (t.rate * load))
}

// logical draws a logical request.
func (t *traffic) logical(now headgate.Instant) (*Logical, time.Duration) {
	l := &Logical{Tenant: t.random.IntN(t.tenants), Class: classOf(t.random), Arrived: now}
	if t.Abuse {
		l.Tenant = 0
		if t.random.Float64() >= 0.9 {
			l.Tenant = 1 + t.random.IntN(t.tenants-1)
		}
	}
	if t.Lie && l.Tenant == 0 {
		l.Class = throttle.CriticalPlus
	}
	route, cpu := t.Costs.Draw(t.random)
	l.Route = route
	return l, cpu
}

// job draws what an attempt takes. Attempts of one request take different times.
func (t *traffic) job(now headgate.Instant, l *Logical, cpu time.Duration) service.Job {
	j := service.Job{CPU: float64(cpu)}
	if t.Poison > 0 && l.Tenant == 0 {
		j.CPU *= t.Poison
	}
	if t.Pool > 0 {
		j.CPU /= 5
		j.Pool = t.random.ExpFloat64() * float64(poolTime)
		return j
	}
	j.Wait = t.random.ExpFloat64() * float64(t.wait(now, l.Route))
	return j
}

// slowBody draws whether the body of an attempt arrives slowly.
func (t *traffic) slowBody(now headgate.Instant) bool {
	return t.SlowBodies > 0 && t.hangs(now) && t.random.Float64() < t.SlowBodies
}

// hangs reports whether the service answers nothing.
func (s *Scenario) hangs(at headgate.Instant) bool {
	return time.Duration(at) >= s.HangFrom && time.Duration(at) < s.HangTo
}

// wait is the mean wait of a route.
func (t *traffic) wait(now headgate.Instant, route int) time.Duration {
	switch at := time.Duration(now); {
	case t.Slow && route%3 == 0 && at >= t.SlowFrom && at < t.SlowTo:
		return 400 * time.Millisecond
	case t.Slow && route%3 == 0:
		return 20 * time.Millisecond
	case t.Wait > 0:
		return t.Wait
	default:
		return 10 * time.Millisecond
	}
}

// pause draws the time before the next attempt. retryAfter is 0 after an attempt without answer.
func (t *traffic) pause(attempts int, retryAfter time.Duration, refused bool) time.Duration {
	pause := float64(backoff<<(attempts-1)) * (0.5 + t.random.Float64())
	if refused {
		least := float64(min(max(retryAfter, 100*time.Millisecond), time.Second))
		pause = max(pause, least*(1+t.random.Float64()/2))
	}
	return time.Duration(pause)
}
