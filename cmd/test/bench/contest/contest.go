// Package contest measures several sides in interleaved rounds, and judges their ratios.
//
// A disturbance of the machine slows all sides of a round. The package therefore computes
// each ratio within one round, and takes the median over the rounds.
package contest

import (
	"errors"
	"fmt"
)

// Tally counts the answers of a run.
type Tally struct {
	Allowed, Denied, Failed int
	// Err is one of the failures, or nil when the side reports no cause.
	Err error
}

// Failure returns the tally of one failed operation.
func Failure(err error) Tally { return Tally{Failed: 1, Err: err} }

// Add returns the sum of t and u. The sum keeps the first error.
func (t Tally) Add(u Tally) Tally {
	sum := Tally{t.Allowed + u.Allowed, t.Denied + u.Denied, t.Failed + u.Failed, t.Err}
	if sum.Err == nil {
		sum.Err = u.Err
	}
	return sum
}

// Outcome is the answer that all operations of a contest must have.
type Outcome int

// The outcomes of an operation.
const (
	Allow Outcome = iota
	Deny
)

// Kind separates Headgate's sides from the peers and from the limits of the machine.
type Kind string

// The kinds of side. A Floor makes no decision; its time is a lower limit for all sides.
const (
	Ours  Kind = "ours"
	Peer  Kind = "peer"
	Floor Kind = "floor"
)

// Side is one of the implementations that a contest compares.
type Side struct {
	Name string
	Kind Kind
	// Inexact means that keys with the same hash share a bucket.
	Inexact bool
	// MayFail means that the side is known to fail under contention. The report then shows
	// the rate of failures; otherwise a failure ends the run.
	MayFail bool
	// Run performs n operations as the given worker. n is a multiple of Batch. Each worker
	// calls Run sequentially; different workers call Run concurrently.
	Run func(worker, n int) Tally
	// Meters are read before and after each slice. A question compares the meters of two
	// sides that have the same name.
	Meters []Meter
}

// Batch divides each n that a contest passes to Side.Run.
const Batch = 16

// Question selects two sides to compare.
type Question struct {
	// Of is the name of the side in the numerator.
	Of string
	// Against is the name of the side in the denominator. With FastestExact, the
	// measurement selects the side.
	Against string
	// Beyond is the name of a base side. In each round, the time of the base side is
	// subtracted from both times, to compare only the added cost. "" subtracts nothing.
	Beyond string
	// Meter is the name of the meter to compare. "" compares the elapsed time.
	Meter string
	// Difference asks for Of minus Against, in nanoseconds per operation, instead of the
	// ratio.
	Difference bool
	// Bar is the largest ratio, or difference, that passes. 0 means that the result is
	// only reported.
	Bar float64
}

// FastestExact selects the peer with the smallest median time among the peers that give
// each key its own bucket.
const FastestExact = ""

// Contest is a set of sides that do the same work.
type Contest struct {
	Name  string
	About string
	// Workers is the number of goroutines that run concurrently.
	Workers int
	// Least is the smallest number of operations of a worker in a slice, a multiple of
	// Batch. 0 selects a default for operations that take nanoseconds. The default is too
	// large when hundreds of workers wait for a network.
	Least     int
	Want      Outcome
	Sides     []Side
	Questions []Question
	// Close, if not nil, releases the resources of the sides.
	Close func()
}

// errUntold is the error of a side that counts failures but reports no cause.
var errUntold = errors.New("the side reports no cause")

func (t Tally) reason() error {
	if t.Err != nil {
		return t.Err
	}
	return errUntold
}

// check returns an error when the answers of a side differ from c.Want. The measured work
// was then not the work of the contest.
func (c *Contest) check(s *Side, t Tally, n int) error {
	right, wrong := t.Allowed, t.Denied
	if c.Want == Deny {
		right, wrong = wrong, right
	}
	switch {
	case s.Kind == Floor && t.Allowed+t.Denied == n: // A floor makes no decision, so any answer is valid.
		return nil
	case wrong > 0:
		return fmt.Errorf("%s: %s gave the wrong answer to %d of %d requests: check its limit in this scene", c.Name, s.Name, wrong, n)
	case t.Failed > 0 && !s.MayFail:
		return fmt.Errorf("%s: %s failed in %d of %d operations: %w", c.Name, s.Name, t.Failed, n, t.reason())
	case right+t.Failed != n:
		return fmt.Errorf("%s: %s answered %d operations, want %d", c.Name, s.Name, right+t.Failed, n)
	}
	return nil
}
