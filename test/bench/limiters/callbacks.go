package limiters

import (
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/test/bench/contest"
)

// callbacksPacer has many callbacks that wait at once.
type callbacksPacer struct{ *pace.Pacer }

// Take returns when n have been told. Who has been told asks for the next.
func (p callbacksPacer) Take(n int) contest.Tally {
	w := &waiters{pacer: p.Pacer, n: int64(n), ended: make(chan error, 1)}
	w.f = w.next
	first := min(Callbacks, n)
	w.asked.Store(int64(first))
	for range first {
		p.AcquireFunc(1, pace.Forever, w.f)
	}
	if err := <-w.ended; err != nil {
		return contest.Failure(err)
	}
	return contest.Tally{Allowed: n}
}

// Drain takes what has opened.
func (p callbacksPacer) Drain() { drain(p.Pacer) }

// waiters are n callbacks, of which some wait at once.
type waiters struct {
	pacer       *pace.Pacer
	f           func(headgate.Instant, error)
	n           int64
	asked, told atomic.Int64
	ended       chan error
}

// next is told one, and asks for the next.
func (w *waiters) next(_ headgate.Instant, err error) {
	if err != nil {
		select {
		case w.ended <- err:
		default: // One error is enough.
		}
		return
	}
	if w.asked.Add(1) <= w.n {
		w.pacer.AcquireFunc(1, pace.Forever, w.f)
	}
	if w.told.Add(1) == w.n {
		w.ended <- nil
	}
}
