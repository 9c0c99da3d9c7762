// Package limiters puts Headgate and its peers behind one face, so that they can
// be made to do the same work.
//
// Each side loops over the keys itself: what a call through the face costs is
// paid once for thousands of decisions.
package limiters

import (
	"time"

	"github.com/headgate/headgate/test/bench/contest"
)

// Limit is what all sides are held to. The buckets refill by Count per Per and hold
// Burst. The window limiters have no burst of their own: they get Burst a Window.
type Limit struct {
	Count int
	Per   time.Duration
	Burst int
}

// Window is longer than any run, so that no window turns while it is measured.
const Window = 24 * time.Hour

// interval is the time in which one unit comes back.
func (l Limit) interval() time.Duration { return l.Per / time.Duration(l.Count) }

// Ample is a limit under which everything is allowed: its bucket is neither full
// nor empty while it is measured.
func Ample() Limit { return Limit{Count: 1000, Per: time.Second, Burst: 1e9} }

// Spent is a limit under which all but the first request are denied.
func Spent() Limit { return Limit{Count: 1, Per: Window, Burst: 1} }

// Lone is a limiter of one thing, without keys.
type Lone interface {
	// Take asks n times for one unit.
	Take(n int) contest.Tally
}

// Keyed is a limiter of many keys.
type Keyed interface {
	// Take asks n times for one unit, under keys[from], keys[from+1] and so on, and
	// from the start again behind the last. The number of keys is a power of two.
	Take(keys []string, from, n int) contest.Tally
	// Close stops its goroutines and lets go of its memory.
	Close()
}

// KeyedMaker makes one of the sides.
type KeyedMaker struct {
	Name string
	Kind contest.Kind
	// Inexact and MayFail are those of contest.Side.
	Inexact, MayFail bool
	New              func(Limit, Room) (Keyed, error)
}

// Room says how many keys a limiter is to hold. Those with a bound of their own
// use it to size themselves.
type Room struct{ Keys int }

// LoneMaker makes one of the sides without keys.
type LoneMaker struct {
	Name string
	Kind contest.Kind
	// NeverDenies says that the limiter waits instead, so that it has no place
	// where requests are denied.
	NeverDenies bool
	New         func(Limit) (Lone, error)
}

// noGoroutines is embedded by those who have nothing to close.
type noGoroutines struct{}

// Close does nothing.
func (noGoroutines) Close() {}
