package limiters

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// Names of the limits of the machine. A limiter that reads the clock for each decision
// cannot be faster.
const (
	TimeSince     = "time.Since"
	TimeSinceSwap = "time.Since + compare-and-swap"
	TimeSinceLock = "time.Since + lock, unlock"
)

// clockFloor only reads the monotonic clock.
type clockFloor struct{ start time.Time }

func (f *clockFloor) Take(n int) (t contest.Tally) {
	for range n {
		if time.Since(f.start) > 0 {
			t.Allowed++
		} else {
			t.Denied++
		}
	}
	return t
}

// swapFloor replaces one word by compare-and-swap, without contention.
type swapFloor struct {
	start time.Time
	word  atomic.Int64
}

func (f *swapFloor) Take(n int) (t contest.Tally) {
	for range n {
		was := f.word.Load()
		if f.word.CompareAndSwap(was, int64(time.Since(f.start))) {
			t.Allowed++
		} else {
			t.Denied++
		}
	}
	return t
}

// lockFloor stores the time under a mutex, without contention.
type lockFloor struct {
	start time.Time
	mu    sync.Mutex
	last  time.Duration
}

func (f *lockFloor) Take(n int) (t contest.Tally) {
	for range n {
		f.mu.Lock()
		f.last = time.Since(f.start)
		f.mu.Unlock()
		t.Allowed++
	}
	return t
}

// Floors returns the limits of the machine.
func Floors() []LoneMaker {
	floor := func(name string, l Lone) LoneMaker {
		return LoneMaker{Name: name, Kind: contest.Floor, NeverDenies: true, New: func(Limit) (Lone, error) { return l, nil }}
	}
	return []LoneMaker{
		floor(TimeSince, &clockFloor{start: time.Now()}),
		floor(TimeSinceSwap, &swapFloor{start: time.Now()}),
		floor(TimeSinceLock, &lockFloor{start: time.Now()}),
	}
}
