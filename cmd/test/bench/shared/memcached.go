package shared

import (
	"context"
	"errors"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/cmd/test/bench/servers"
	"github.com/headgate/headgate/store/memcached"
)

// Names of the sides on Memcached.
const (
	memcachedBucket  = "store/memcached, token_bucket"
	memcachedWindow  = "store/memcached, fixed_window"
	memcachedCounter = "store/memcached, fixed_window, counters"
	gomemcacheName   = "gomemcache, a counter"
)

// oneMemcached starts one server.
func oneMemcached(ctx context.Context, p *place) ([]*servers.Server, error) {
	s, err := servers.Memcached(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	return []*servers.Server{s}, nil
}

// memcachedKeys compares store/memcached with a hand-written limiter, because we know of
// no published Go limiter on Memcached.
func memcachedKeys(ctx context.Context, p *place, e contest.Effort) ([]contest.Result, error) {
	var entrants []*entrant
	for _, m := range memcachedMakers() {
		one, err := p.enter(ctx, m, oneMemcached, perKey())
		if err != nil {
			return nil, err
		}
		entrants = append(entrants, one)
	}
	return each(ctx, "memcached", callersOf(), e, entrants, func(int) []contest.Question {
		var all []contest.Question
		for _, of := range []string{memcachedBucket, memcachedWindow, memcachedCounter} {
			for _, meter := range []string{"", serverCPU, clientCPU} {
				all = append(all, contest.Question{Of: of, Against: gomemcacheName, Meter: meter})
			}
		}
		return all
	})
}

func memcachedMakers() []maker {
	window := func(l limiters.Limit) headgate.Policy {
		return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: int64(l.Count), Per: l.Per}}
	}
	return []maker{
		headgateMemcached(memcachedBucket, false, bucket),
		headgateMemcached(memcachedWindow, false, window),
		headgateMemcached(memcachedCounter, true, window),
		{Name: gomemcacheName, Kind: contest.Peer, New: newGomemcache},
	}
}

func headgateMemcached(name string, counters bool, policy func(limiters.Limit) headgate.Policy) maker {
	return maker{Name: name, Kind: contest.Ours, New: func(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
		store, err := memcached.New(memcached.Config{Servers: addrs, Counters: counters})
		if err != nil {
			return nil, err
		}
		return prepared(store, policy(l), func() { _ = store.Close() })
	}}
}

// gomemcacheLimiter counts in a fixed window that begins with the first request. It uses
// Increment and Add, the only atomic way that gomemcache offers.
type gomemcacheLimiter struct {
	client *memcache.Client
	most   uint64
	window int32 // seconds
}

func newGomemcache(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
	client := memcache.New(addrs...)
	// By default, the client keeps two idle connections and opens a new connection for each
	// further caller. Its Timeout stays at the default of half a second.
	client.MaxIdleConns = 512
	return &gomemcacheLimiter{client, uint64(l.Count), int32(l.Per / time.Second)}, nil
}

// Caller returns the same function for all callers. gomemcache does not accept a context.
func (g *gomemcacheLimiter) Caller() take {
	return func(_ context.Context, key string) (bool, error) {
		for {
			n, err := g.client.Increment(key, 1)
			if errors.Is(err, memcache.ErrCacheMiss) {
				n, err = 1, g.client.Add(&memcache.Item{Key: key, Value: []byte("1"), Expiration: g.window})
			}
			if !errors.Is(err, memcache.ErrNotStored) { // ErrNotStored means that another caller added the key first.
				return err == nil && n <= g.most, err
			}
		}
	}
}

// Close closes the connections.
func (g *gomemcacheLimiter) Close() { _ = g.client.Close() }
