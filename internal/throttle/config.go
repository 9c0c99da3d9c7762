package throttle

import (
	"errors"
	"fmt"
	"time"
)

// Config is the configuration of a Throttler. Exactly one of Concurrency and CPUInFlight is set.
// For the other fields, 0 means the default.
type Config struct {
	// Concurrency is the number of requests that the service gets at once.
	Concurrency int
	// CPUInFlight is the predicted CPU time of all requests that the service has at once. It is
	// for services that report their work and wait for others.
	CPUInFlight time.Duration
	// Search looks for a better Concurrency.
	Search Search
	// Deadline is the usual time from the arrival of a request to its answer. It bounds the
	// queue. Default: 1 s.
	Deadline time.Duration
	// PartOfDeadline is the part of Deadline that the queue may take to drain. Default: 0.4.
	PartOfDeadline float64
	// MaxWaiters is the maximum number of queued requests. Default: 10,000.
	MaxWaiters int
	// MaxTenants is the maximum number of tenants that have a share of their own. The rest have
	// one share together. Default: 1,000.
	MaxTenants int
	// MaxRoutes is the maximum number of routes with a prediction of their own. Pairs of route
	// and tenant have eight times this bound. Default: 1,000.
	MaxRoutes int
}

// The bounds of the configuration. They keep sums of work within 64 bits.
const (
	maxConcurrency = 1_000_000
	maxTime        = time.Hour
	maxEntries     = 10_000_000
)

// Check returns the first fault, or nil.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}

// withDefaults returns the configuration with its defaults in place, or the first fault.
func (c Config) withDefaults() (Config, error) {
	if (c.Concurrency == 0) == (c.CPUInFlight == 0) {
		return c, errors.New("throttle: set either Concurrency or CPUInFlight")
	}
	setDefault(&c.Deadline, time.Second)
	setDefault(&c.PartOfDeadline, 0.4)
	setDefault(&c.MaxWaiters, 10_000)
	setDefault(&c.MaxTenants, 1_000)
	setDefault(&c.MaxRoutes, 1_000)
	switch {
	case c.Concurrency < 0 || c.Concurrency > maxConcurrency:
		return c, fmt.Errorf("throttle: Concurrency is %d: write 1 to %d", c.Concurrency, maxConcurrency)
	case c.CPUInFlight < 0 || c.CPUInFlight > maxTime:
		return c, fmt.Errorf("throttle: CPUInFlight is %v: write a time up to %v", c.CPUInFlight, maxTime)
	case c.Deadline < time.Millisecond || c.Deadline > maxTime:
		return c, fmt.Errorf("throttle: Deadline is %v: write 1 ms to %v", c.Deadline, maxTime)
	case !(c.PartOfDeadline > 0 && c.PartOfDeadline <= 1):
		return c, fmt.Errorf("throttle: PartOfDeadline is %v: write a number above 0, at most 1", c.PartOfDeadline)
	}
	if err := c.Search.check(c.Concurrency); err != nil {
		return c, err
	}
	for _, bound := range []struct {
		name  string
		value int
	}{{"MaxWaiters", c.MaxWaiters}, {"MaxTenants", c.MaxTenants}, {"MaxRoutes", c.MaxRoutes}} {
		if bound.value < 1 || bound.value > maxEntries {
			return c, fmt.Errorf("throttle: %s is %d: write 1 to %d", bound.name, bound.value, maxEntries)
		}
	}
	return c, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
