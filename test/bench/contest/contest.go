// Package contest measures several sides side by side, in interleaved rounds, and
// judges their ratios.
//
// What slows the machine for a while slows all sides of a round, so a ratio is
// formed within a round, and only the ratios are compared across rounds.
package contest

import (
	"errors"
	"fmt"
)

// Tally counts the answers of a run.
type Tally struct {
	Allowed, Denied, Failed int
	// Err is one of the failures, if a side tells.
	Err error
}

// Failure is the tally of one failure.
func Failure(err error) Tally { return Tally{Failed: 1, Err: err} }

// Add gives the sum of both.
func (t Tally) Add(u Tally) Tally {
	sum := Tally{t.Allowed + u.Allowed, t.Denied + u.Denied, t.Failed + u.Failed, t.Err}
	if sum.Err == nil {
		sum.Err = u.Err
	}
	return sum
}

// Outcome is what every answer of a contest must be.
type Outcome int

// The outcomes.
const (
	Allow Outcome = iota
	Deny
)

// Kind tells ours from the peers and from the limits of the machine.
type Kind string

// The kinds of side.
const (
	Ours  Kind = "ours"
	Peer  Kind = "peer"
	Floor Kind = "floor"
)

// Side is one of those that are compared.
type Side struct {
	Name string
	Kind Kind
	// Inexact says that colliding keys share a bucket.
	Inexact bool
	// MayFail says that the side is known to give up under contention; what it
	// gives up is reported instead of ending the run.
	MayFail bool
	// Run does n operations, a multiple of Batch, as one of the workers. A worker's
	// calls follow each other; different workers run at once.
	Run func(worker, n int) Tally
	// Meters are read before and after each slice. Sides that are compared by one have
	// it under one name.
	Meters []Meter
}

// Batch divides every n that a Side is asked for.
const Batch = 16

// Question asks for the ratio of two sides.
type Question struct {
	// Of is the name of the side whose time stands above the line.
	Of string
	// Against is the name of the side below it; FastestExact is found by measuring.
	Against string
	// Beyond is the name of a side whose time is taken off both in each round, so
	// that what they add to it is compared; "" takes nothing off.
	Beyond string
	// Meter is the name of the meter that is compared; "" compares the time on the wall.
	Meter string
	// Difference asks by how many nanoseconds the one's operation takes longer than the
	// other's, instead of for the ratio.
	Difference bool
	// Bar is the greatest ratio, or difference, that is good enough; 0 only reports.
	Bar float64
}

// FastestExact stands for the peer with the least median time of those that do
// not share buckets between keys.
const FastestExact = ""

// Contest is a set of sides that do the same work.
type Contest struct {
	Name  string
	About string
	// Workers is how many run at once.
	Workers int
	// Least is the fewest operations of a worker in a slice, a multiple of Batch; 0 is
	// enough for operations of nanoseconds, and too many where hundreds of workers wait
	// for a network.
	Least     int
	Want      Outcome
	Sides     []Side
	Questions []Question
	// Close lets go of what the sides hold; it may be nil.
	Close func()
}

// errUntold stands for the failure of a side that only counts.
var errUntold = errors.New("it does not say why")

func (t Tally) reason() error {
	if t.Err != nil {
		return t.Err
	}
	return errUntold
}

// check finds a side that did not do the work that it was measured at.
func (c *Contest) check(s *Side, t Tally, n int) error {
	right, wrong := t.Allowed, t.Denied
	if c.Want == Deny {
		right, wrong = wrong, right
	}
	switch {
	case s.Kind == Floor && t.Allowed+t.Denied == n: // It decides nothing.
		return nil
	case wrong > 0:
		return fmt.Errorf("%s: %s answered %d of %d the wrong way: its limit does not fit the contest", c.Name, s.Name, wrong, n)
	case t.Failed > 0 && !s.MayFail:
		return fmt.Errorf("%s: %s failed %d of %d times: %w", c.Name, s.Name, t.Failed, n, t.reason())
	case right+t.Failed != n:
		return fmt.Errorf("%s: %s answered %d times, not %d", c.Name, s.Name, right+t.Failed, n)
	}
	return nil
}
