package memcached

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// The interval of the queries for a server's statistics, which contain its clock.
const (
	// statsEvery is the interval with a good estimate of the clock.
	statsEvery = 2 * time.Second
	// sweep is the number of queries in about a second, while the estimate is worse than boundEnough.
	// Four sweeps reach boundEnough.
	sweep       = 9
	boundEnough = 8 * time.Millisecond
	// statsAgain is the wait after a failed query.
	statsAgain = 500 * time.Millisecond
	// statsTimeout bounds one query.
	statsTimeout = 2 * time.Second
)

// now gives the server's time. Before the first estimate it queries the server, within ctx.
func (n *node) now(ctx context.Context) (headgate.Instant, error) {
	if now, known := n.clock.now(); known {
		return now, nil
	}
	began := time.Duration(0)
	for range 3 {
		if err := n.learnSince(ctx, began); err != nil {
			return 0, err
		}
		if now, known := n.clock.now(); known {
			return now, nil
		}
		began = n.clock.mono() // The clock has leapt, and the estimate was dropped since. Query again.
	}
	return 0, fmt.Errorf("memcached %s: its statistics do not tell its time: use Memcached 1.6", n.addr)
}

// timeOf gives the time for a decision on an item: now, or the present when now is 0. The item's latest
// decision may seem to show that the clock has stepped back. This is accepted only after a new query,
// because this machine may have slept.
func (n *node) timeOf(ctx context.Context, it *item, now headgate.Instant) (headgate.Instant, error) {
	began := n.clock.mono()
	if now == 0 {
		var err error
		if now, err = n.now(ctx); err != nil {
			return 0, err
		}
	}
	if it.last.Sub(now) <= together || n.clock.given != nil {
		return now, nil
	}
	if err := n.learnSince(ctx, began); err != nil {
		return 0, err
	}
	return n.now(ctx)
}

// learnSince queries the server's time, unless a query began after began. Of several callers, one
// queries.
func (n *node) learnSince(ctx context.Context, began time.Duration) error {
	select {
	case n.clock.asking <- struct{}{}:
		defer func() { <-n.clock.asking }()
	case <-ctx.Done():
		return couldNot("wait for the server's time", ctx.Err())
	}
	if n.clock.learned.Load() > int64(began) {
		return nil // Another caller has queried meanwhile.
	}
	return n.ask(ctx)
}

// ask queries the server's statistics, and stores them.
func (n *node) ask(ctx context.Context) error {
	var stats map[string]string
	var before, after time.Duration
	err := n.guarded(ctx, "read the server's statistics", func() error {
		var err error
		before = n.clock.mono()
		stats, err = n.client.Stats(ctx)
		after = n.clock.mono()
		return err
	})
	if err != nil {
		return err
	}
	n.reported.Store(toldBy(stats))
	second, err := strconv.ParseInt(stats["time"], 10, 64)
	if err != nil || second <= 0 || second >= maxTime/int64(time.Second) {
		return fmt.Errorf("memcached %s: its statistics say that it is %.32q: use Memcached 1.6", n.addr, stats["time"])
	}
	n.clock.learn(before, after, second)
	return nil
}

// follow queries the server's statistics until ctx ends. The first queries are at times that narrow the
// estimate of the clock most.
func (n *node) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		within, cancel := context.WithTimeout(ctx, statsTimeout)
		wait := statsAgain
		if n.ask(within) == nil {
			wait = n.clock.next()
		}
		cancel()
		timer.Reset(wait)
	}
}
