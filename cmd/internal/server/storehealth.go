package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/store/redis"
)

const (
	// healthInterval is the time between two looks at the store.
	healthInterval = time.Second
	// probeTimeout is the longest wait for a probe while the server is healthy. An unhealthy server must decide within
	// store_timeout, as requests do.
	probeTimeout = 500 * time.Millisecond
	// healthFailures is the number of failed looks in a row that makes the server unhealthy.
	healthFailures = 2
)

// decisionsSeen are the counters of a store in Redis at the last look.
type decisionsSeen struct {
	store              *redis.Store
	decided, undecided uint64
}

// look reports whether the store makes decisions: nil when requests since the last look got decisions, and none failed.
// When all requests failed, it gives an error. Otherwise a probe that writes says so.
func (s *decisionsSeen) look(ctx context.Context, within time.Duration) error {
	decided, undecided := s.decided, s.undecided
	s.count()
	decided, undecided = s.decided-min(decided, s.decided), s.undecided-min(undecided, s.undecided)
	if decided > 0 && undecided == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := s.store.Probe(ctx)
	s.count() // The probe is no request.
	if err == nil && decided == 0 && undecided > 0 {
		return fmt.Errorf("the store made none of the last %d decisions in time, although it answers a probe: "+
			"raise store_timeout, or look for the errors of single nodes", undecided)
	}
	return err
}

// count reads the counters. Those of nodes that have left a cluster are gone.
func (s *decisionsSeen) count() {
	s.decided, s.undecided = 0, 0
	for _, n := range s.store.Stats().Nodes {
		s.decided += n.Decided
		s.undecided += n.Undecided
	}
}

// watchStore looks at the store until the drain, and sets the health of the server, which is unhealthy until the first
// decision.
func (d *Server) watchStore() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.waiting.Go(func() { <-d.stop; cancel() })
	store := d.o.Rules.Store()
	seen := []*decisionsSeen{{store: store.Redis()}}
	if second := store.PerSecond(); second != nil {
		seen = append(seen, &decisionsSeen{store: second})
	}
	pause, failures := reachedInterval, 0 // Until the first decision, it looks more often.
	for {
		err := d.lookAtStores(ctx, seen)
		if failures++; err == nil {
			failures, pause = 0, healthInterval
		}
		if ctx.Err() == nil {
			d.storeDecided(failures, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// lookAtStores looks at all stores at the same time.
func (d *Server) lookAtStores(ctx context.Context, seen []*decisionsSeen) error {
	within := probeTimeout
	if d.away.Load() {
		within = d.o.InEffect().StoreTimeout
	}
	answers := make(chan error, len(seen))
	for _, s := range seen {
		go func() { answers <- s.look(ctx, within) }()
	}
	var all []error
	for range seen {
		all = append(all, <-answers)
	}
	return errors.Join(all...)
}

// showHealth sets the gRPC health of ratelimit. A reload and the store may change it at the same time.
func (d *Server) showHealth() {
	d.showing.Lock()
	defer d.showing.Unlock()
	d.grpc.SetServing(rateLimitName, d.healthy())
}

// storeHealth is what is known of the store.
type storeHealth uint8

const (
	storeUnknown storeHealth = iota // Until the first decision, or healthFailures.
	storeHealthy
	storeUnhealthy
)

// storeDecided sets the health after a number of failures in a row. err is the last one. Only watchStore calls it.
func (d *Server) storeDecided(failures int, err error) {
	before, now := d.store, storeHealthy
	switch {
	case failures >= healthFailures:
		now = storeUnhealthy
	case failures > 0:
		return
	}
	if now == before {
		return
	}
	d.store = now
	d.away.Store(now == storeUnhealthy)
	d.showHealth()
	switch {
	case now == storeUnhealthy:
		d.o.Host.Log.Warn("unhealthy: the store makes no decisions", "error", err)
	case before == storeUnhealthy:
		d.o.Host.Log.Info("healthy again: the store makes decisions")
	}
}
