package memcached

import (
	"context"
	"math/rand/v2"
	"time"
)

// pace spaces the cycles of processes that write one item. After a conflict, each process waits
// before its next cycle, for a random part of a time that grows with each conflict and shrinks with
// each success. Requests that arrive during the wait join the cycle, so the wait costs little.
//
// A pace belongs to the goroutine with the item's cycle.
type pace struct{ wait time.Duration }

// Bounds of the wait. Below minPace there is no wait: timers are that coarse, and rare conflicts
// cost less.
const (
	minPace = 500 * time.Microsecond
	maxPace = 2 * time.Millisecond
)

// met records the duration of a cycle, and whether it ended in a conflict.
func (p *pace) met(conflict bool, elapsed time.Duration) {
	if conflict {
		p.wait = min(max(2*p.wait, elapsed/4), maxPace)
		return
	}
	p.wait /= 2
}

// yield waits for a random part of the pace. The error is that of ctx.
func (p *pace) yield(ctx context.Context) error {
	if p.wait < minPace {
		return nil
	}
	timer := time.NewTimer(rand.N(p.wait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
