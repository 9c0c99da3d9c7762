package pace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
)

// Pacer paces the calls of one instance to one provider. Its methods are safe for
// concurrent use.
type Pacer struct {
	state // Guarded by mu.

	gate gate // gate has the open units for callers, while no request waits.

	config  Config
	clock   clock
	stop    context.CancelFunc
	ended   chan struct{} // Closed when source and run have ended.
	ready   chan struct{} // Closed when the first plan has come, or none ever will.
	ahead   atomic.Int64  // how far the wall clock is ahead, for those who take from the gate
	waiters sync.Pool     // of *waiter
	parked  sync.Pool     // of *parked

	mu sync.Mutex // Held for less than a microsecond, and never while calling out.
}

// state is guarded by the lock of its Pacer.
type state struct {
	timeline schedule.Timeline
	window   window
	rate     rate
	fresh    bool // The first window begins with the part that is left of it.
	queue    queue
	refused  decided // Waiters that were refused and are not notified yet.
	telling  decided // Waiters that are being notified. They belong to the serving goroutine, without the lock.
	pid      schedule.PID
	spread   float64 // the part of a window over which its permits open, with PID
	brakes   brakes
	valid    int64 // until when what was assigned may be used
	closed   error // the reason why no permit is granted any more
	notified bool  // ready is closed

	timer *time.Timer
	armed int64 // when it wakes, or never
	woken int64 // when it last did

	counts      counts
	clockOffset time.Duration
	fault       string // the last one
	faultAt     int64
}

// New makes a pacer and starts to follow its source. Stop it with [Pacer.Close].
//
// Callers may acquire permits at once: they wait until the first plan arrives.
// [Pacer.Ready] waits for that plan.
func New(c Config) (*Pacer, error) {
	switch {
	case c.Source == nil:
		return nil, errors.New("pace: Config.Source is missing: Static(plan) is the simplest")
	case c.MaxWaiters < 0 || c.MaxWaiters > mostWaiters:
		return nil, fmt.Errorf("pace: Config.MaxWaiters is %d: it is up to %d, and 0 means %d",
			c.MaxWaiters, mostWaiters, defaultMaxWaiters)
	case int(c.Smoothing) >= len(smoothingNames):
		return nil, errors.New("pace: Config.Smoothing is none of Off, EvenSpread and PID")
	}
	if c.MaxWaiters == 0 {
		c.MaxWaiters = defaultMaxWaiters
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	p := &Pacer{config: c, clock: newClock(c.Wall), ended: make(chan struct{}), ready: make(chan struct{})}
	p.spread, p.valid, p.armed = 1, never, never
	p.window.end = never
	p.timer = time.NewTimer(time.Hour)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	var both sync.WaitGroup
	both.Go(func() { p.follow(ctx) })
	both.Add(1)
	go p.run(ctx, both.Done)
	go func() {
		both.Wait()
		close(p.ended)
	}()
	return p, nil
}

// follow runs the source until it ends.
func (p *Pacer) follow(ctx context.Context) {
	err := p.config.Source.Follow(ctx, receiver{p})
	now := p.enter()
	notified := p.notified
	p.leave(now)
	if ctx.Err() == nil && (err != nil || !notified) {
		p.config.Logger.Error("pace: the source has failed for good", "provider", p.config.Provider, "error", err)
		p.end(errors.Join(ErrClosed, err))
	}
}

// Close stops the pacer and its source. Waiters and later callers get [ErrClosed]. Close
// returns when all waiters have been notified, so a callback must not call it.
func (p *Pacer) Close() {
	if !p.made() {
		return
	}
	p.stop()
	<-p.ended
}

// end refuses all waiters and all later callers.
func (p *Pacer) end(why error) {
	now := p.enter()
	if p.closed == nil {
		p.closed = why
	}
	p.valid = 0 // The gate opens no more.
	p.begun()
	for p.queue.first != nil {
		p.refuse(p.queue.first, p.closed, &p.refused)
	}
	p.leave(now)
}

// Ready waits for the first plan, until ctx is done or the pacer has ended. An error that
// wraps the error of ctx means that there is no plan yet.
func (p *Pacer) Ready(ctx context.Context) error {
	if !p.made() {
		return errNotMade
	}
	select {
	case <-p.ready:
	case <-ctx.Done():
		return fmt.Errorf("pace: provider %q: no plan yet: the source has not answered: %w", p.config.Provider, ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// begun wakes the callers of Ready. The caller holds the lock.
func (p *Pacer) begun() {
	if !p.notified {
		p.notified = true
		close(p.ready)
	}
}
