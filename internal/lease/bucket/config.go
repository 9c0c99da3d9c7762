package bucket

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// DefaultMax is the default of Config.Max: what one client may claim.
const DefaultMax = state.MaxClaims

// Config describes a Table.
type Config struct {
	// Source gives the leases.
	Source Source
	// Max bounds the resources with a lease at a time: 1 to 1,000. 0 means 1,000.
	Max int
	// Log gets a line when Max is reached, at most every 10 s. nil logs nothing.
	Log *slog.Logger
	// Clock is the time of decisions, for tests; nil is the machine's clock.
	Clock func() headgate.Instant
}

const (
	// keepIdle is how long a resource without requests keeps its lease, and longest how long it keeps it while its bucket
	// owes units: without the lease, they would be forgotten.
	keepIdle, longest = 30 * time.Second, 5 * time.Minute
	// turn is the time between two looks at all leases. Refused requests count as waiting for one to two turns.
	turn = 250 * time.Millisecond
	// retry is what a request is told that a lease of 0 refuses.
	retry    = time.Second
	logEvery = 10 * time.Second
)

// Errors of Take, beside those of the Source and of the context.
var (
	// ErrNoLease means that no server has given a lease of the resource yet.
	ErrNoLease = errors.New("lease: no lease of the resource yet: is a server reachable, and does its lease.resources match the name?")
	// ErrFull means that Config.Max resources have leases.
	ErrFull = errors.New("lease: the process holds max_leases leases: idle ones are released after 30 s; " +
		"use fewer resources a process, or a key with fewer values")
	// ErrLost means that the lease has ended without renewal, and on_loss gives nothing.
	ErrLost = errors.New("lease: the lease has ended without renewal, and on_loss allows nothing: is a server reachable?")
	// ErrSlots means that the resource has slots.
	ErrSlots = errors.New("lease: the resource has slots: a rule needs a resource with a rate, like 500/s")
	// ErrClosed means that the Table, or its Source, is closed.
	ErrClosed = errors.New("lease: the table of leases is closed")
)

// FaultError means that the server refuses the claim, and that there has been no lease.
type FaultError struct {
	// Resource is the name. Text is what the server said.
	Resource, Text string
}

// Error gives both.
func (e *FaultError) Error() string {
	return fmt.Sprintf("lease: resource %.300q: %s", e.Resource, e.Text)
}

// machineClock is the wall time at the start, continued by the monotonic clock.
func machineClock() func() headgate.Instant {
	start := time.Now()
	return func() headgate.Instant { return headgate.Instant(start.UnixNano()).Add(time.Since(start)) }
}

// New makes a Table without leases. Close ends it.
func New(c Config) (*Table, error) {
	switch {
	case c.Source == nil:
		return nil, errors.New("lease: Source is nil: use Source of a client of package client/lease")
	case c.Max < 0 || c.Max > DefaultMax:
		return nil, fmt.Errorf("lease: Max is %d: use 1 to %d, or 0 for %d", c.Max, DefaultMax, DefaultMax)
	case c.Max == 0:
		c.Max = DefaultMax
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = machineClock()
	}
	return &Table{config: c, entries: map[string]*entry{}, stop: make(chan struct{})}, nil
}
