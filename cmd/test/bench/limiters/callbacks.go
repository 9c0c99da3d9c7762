package limiters

import (
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/pace"
)

// callbacksPacer keeps many callbacks waiting concurrently.
type callbacksPacer struct{ *pace.Pacer }

// Take returns after n callbacks. Each callback requests the next permit.
func (p callbacksPacer) Take(n int) contest.Tally {
	w := &waiters{pacer: p.Pacer, n: int64(n), ended: make(chan error, 1)}
	w.f = w.next
	first := min(Callbacks, n)
	w.requested.Store(int64(first))
	for range first {
		p.AcquireFunc(1, pace.Forever, w.f)
	}
	if err := <-w.ended; err != nil {
		return contest.Failure(err)
	}
	return contest.Tally{Allowed: n}
}

// Drain takes all available permits.
func (p callbacksPacer) Drain() { drain(p.Pacer) }

// waiters counts n callbacks. At most Callbacks callbacks wait at the same time.
type waiters struct {
	pacer              *pace.Pacer
	f                  func(headgate.Instant, error)
	n                  int64
	requested, granted atomic.Int64
	ended              chan error
}

// next receives one permit and requests the next permit.
func (w *waiters) next(_ headgate.Instant, err error) {
	if err != nil {
		select {
		case w.ended <- err:
		default: // Take reports only the first error.
		}
		return
	}
	if w.requested.Add(1) <= w.n {
		w.pacer.AcquireFunc(1, pace.Forever, w.f)
	}
	if w.granted.Add(1) == w.n {
		w.ended <- nil
	}
}
