package app

import (
	"context"
	"errors"
	"time"
)

const (
	// pingInterval is the time between two pings of the store, and pingTimeout the longest wait for
	// one.
	pingInterval = time.Second
	pingTimeout  = 500 * time.Millisecond
	// pingFailures is the number of failed pings in a row that makes the server unhealthy.
	pingFailures = 2
)

// watchStore pings the store until the drain, and sets the health of the server.
func (d *decisionServer) watchStore() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.waiting.Go(func() { <-d.stop; cancel() })
	next := time.NewTicker(pingInterval)
	defer next.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		err := d.pingStore(ctx)
		if failures++; err == nil {
			failures = 0
		}
		if ctx.Err() == nil {
			d.storeAnswered(failures, err)
		}
	}
}

// pingStore pings the store, and the store for limits of one second at the same time.
func (d *decisionServer) pingStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	store := d.instance.rules.store
	second := store.PerSecond()
	if second == nil {
		return store.Redis().Ping(ctx)
	}
	answer := make(chan error, 1)
	go func() { answer <- second.Ping(ctx) }()
	return errors.Join(store.Redis().Ping(ctx), <-answer)
}

// showHealth sets the gRPC health of ratelimit. A reload and the store may change it at the same time.
func (d *decisionServer) showHealth() {
	d.showing.Lock()
	defer d.showing.Unlock()
	d.grpc.SetServing(rateLimitName, d.healthy())
}

// storeAnswered sets the health after a number of failures in a row. err is the last one.
func (d *decisionServer) storeAnswered(failures int, err error) {
	away := failures >= pingFailures
	if failures > 0 && !away || d.away.Swap(away) == away {
		return
	}
	d.showHealth()
	if away {
		d.instance.options.Log.Warn("unhealthy: the store does not answer", "error", err)
		return
	}
	d.instance.options.Log.Info("healthy again: the store answers")
}
