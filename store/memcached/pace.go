package memcached

import (
	"context"
	"math/rand/v2"
	"time"
)

// pace keeps the processes that write one item out of each other's way: who meets
// others waits before the next cycle, winners like losers, for a random part of a
// time that grows with each conflict and shrinks with each success. What comes
// meanwhile is decided in the same cycle, so little is lost by waiting.
//
// It belongs to the goroutine that has the item's cycle.
type pace struct{ wait time.Duration }

// Bounds of the wait. Below minPace nobody waits: timers are that coarse, and a
// conflict now and then costs less.
const (
	minPace = 500 * time.Microsecond
	maxPace = 2 * time.Millisecond
)

// met takes in how a cycle that took so long has ended.
func (p *pace) met(conflict bool, took time.Duration) {
	if conflict {
		p.wait = min(max(2*p.wait, took/4), maxPace)
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
