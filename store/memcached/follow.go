package memcached

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// How often a server is asked for its statistics, its clock among them.
const (
	// statsEvery is how often when all is known.
	statsEvery = 2 * time.Second
	// sweep is how many times it is asked within about a second while its clock is known
	// worse than boundEnough. Four sweeps bring that about.
	sweep       = 9
	boundEnough = 8 * time.Millisecond
	// statsAgain is after how long when it did not answer.
	statsAgain = 500 * time.Millisecond
	// statsTimeout bounds one asking.
	statsTimeout = 2 * time.Second
)

// now gives the server's time. Before the first estimate it asks for one, within ctx.
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
		began = n.clock.mono() // What was learned has been given up since: its clock has leapt. It is asked anew.
	}
	return 0, fmt.Errorf("memcached %s: its statistics do not tell its time: use Memcached 1.6", n.addr)
}

// timeOf gives the time to decide at on an item, at now or, when that is 0, at present.
// That the clock has stepped back, which the item's latest decision seems to say, is
// believed when the server has been asked since: this machine may have slept.
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

// learnSince asks the server for its time, unless it was asked after began. Of many
// callers one asks.
func (n *node) learnSince(ctx context.Context, began time.Duration) error {
	select {
	case n.clock.asking <- struct{}{}:
		defer func() { <-n.clock.asking }()
	case <-ctx.Done():
		return couldNot("wait for the server's time", ctx.Err())
	}
	if n.clock.learned.Load() > int64(began) {
		return nil // Another caller has asked meanwhile.
	}
	return n.ask(ctx)
}

// ask asks the server for its statistics, and takes in what they tell.
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
	n.told.Store(toldBy(stats))
	second, err := strconv.ParseInt(stats["time"], 10, 64)
	if err != nil || second <= 0 || second >= maxTime/int64(time.Second) {
		return fmt.Errorf("memcached %s: its statistics say that it is %.32q: use Memcached 1.6", n.addr, stats["time"])
	}
	n.clock.learn(before, after, second)
	return nil
}

// follow asks the server for its statistics until ctx ends: first at those moments
// at which its answer tells most of its clock.
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
