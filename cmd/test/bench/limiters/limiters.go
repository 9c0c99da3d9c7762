// Package limiters puts Headgate and its peers behind one interface, to let all
// sides do the same work.
//
// Each side loops over the keys itself. A call through the interface then covers thousands
// of decisions, and its cost is negligible.
package limiters

import (
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// Limit is the limit of all sides. Token buckets refill by Count per Per and hold Burst.
// Window limiters have no burst: they allow Burst units per Window.
type Limit struct {
	Count int
	Per   time.Duration
	Burst int
}

// Window is longer than any run, so that no window ends during a measurement.
const Window = 24 * time.Hour

// interval returns the time in which one unit is refilled.
func (l Limit) interval() time.Duration { return l.Per / time.Duration(l.Count) }

// Ample returns a limit that allows every request. The bucket is neither full nor empty
// during a measurement.
func Ample() Limit { return Limit{Count: 1000, Per: time.Second, Burst: 1e9} }

// Spent returns a limit that denies every request but the first.
func Spent() Limit { return Limit{Count: 1, Per: Window, Burst: 1} }

// Lone is a limiter without keys.
type Lone interface {
	// Take decides n requests of one unit.
	Take(n int) contest.Tally
}

// Keyed is a limiter of many keys.
type Keyed interface {
	// Take decides n requests of one unit, under keys[from], keys[from+1] and so on. After
	// the last key it continues with the first. The number of keys is a power of two.
	Take(keys []string, from, n int) contest.Tally
	// Close stops the goroutines and releases the memory of the limiter.
	Close()
}

// KeyedMaker creates a side with keys.
type KeyedMaker struct {
	Name string
	Kind contest.Kind
	// Inexact and MayFail have the meaning of the fields of contest.Side.
	Inexact, MayFail bool
	New              func(Limit, Room) (Keyed, error)
}

// Room is the number of keys that a limiter must hold. Limiters with bounded memory
// derive their size from Keys.
type Room struct{ Keys int }

// LoneMaker creates a side without keys.
type LoneMaker struct {
	Name string
	Kind contest.Kind
	// NeverDenies means that the limiter waits instead of denying. The limiter then cannot
	// take part in scenes that deny requests.
	NeverDenies bool
	New         func(Limit) (Lone, error)
}

// noGoroutines provides an empty Close for limiters without goroutines.
type noGoroutines struct{}

// Close does nothing.
func (noGoroutines) Close() {}
