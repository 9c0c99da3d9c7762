package shared

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/store/redis"
)

// Names of Headgate's sides on Redis.
const (
	storeName    = "store/redis"
	prefetchName = "store/prefetch on store/redis"
)

// storeLimiter calls a headgate.Store with one Op at a time, as packages limiter and guard
// do.
type storeLimiter struct {
	store headgate.Store
	id    headgate.PolicyID
	close func()
}

// Caller returns a function that reuses its Op and its Decision.
func (s *storeLimiter) Caller() take {
	ops, decisions := make([]headgate.Op, 1), make([]headgate.Decision, 1)
	ops[0] = headgate.Op{Policy: s.id, Cost: 1}
	return func(ctx context.Context, key string) (bool, error) {
		ops[0].Key = key
		err := s.store.Apply(ctx, ops, decisions)
		return err == nil && decisions[0].Verdict == headgate.Allow, err
	}
}

// Close closes the store.
func (s *storeLimiter) Close() { s.close() }

// prepared returns a limiter on the store. end closes the store; prepared calls end when
// Prepare fails.
func prepared(store headgate.Store, policy headgate.Policy, end func()) (limiter, error) {
	id, err := store.Prepare(policy)
	if err != nil {
		end()
		return nil, err
	}
	return &storeLimiter{store, id, end}, nil
}

func bucket(l limiters.Limit) headgate.Policy {
	return headgate.Policy{Limit: headgate.Limit{Count: int64(l.Count), Per: l.Per, Burst: int64(l.Burst)}}
}

func openRedis(addrs []string) (*redis.Store, error) {
	return redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: addrs}})
}

// headgateRedis is store/redis, which sends concurrent decisions in one call.
func headgateRedis() maker {
	return maker{Name: storeName, Kind: contest.Ours, New: func(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
		store, err := openRedis(addrs)
		if err != nil {
			return nil, err
		}
		return prepared(store, bucket(l), store.Close)
	}}
}

// maxHold is the maximum time for which prefetched units are kept.
const maxHold = 100 * time.Millisecond

// headgatePrefetch is internal/store/prefetch, which takes units in advance according to demand.
func headgatePrefetch() maker {
	return maker{Name: prefetchName, Kind: contest.Ours, New: func(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
		store, end, err := openPrefetch(addrs)
		if err != nil {
			return nil, err
		}
		policy := bucket(l)
		policy.Hold = maxHold
		return prepared(store, policy, end)
	}}
}

func openPrefetch(addrs []string) (*prefetch.Store, func(), error) {
	source, err := openRedis(addrs)
	if err != nil {
		return nil, nil, err
	}
	store, err := prefetch.New(prefetch.Config{Source: source, MaxKeys: 4 * keyCount})
	if err != nil {
		source.Close()
		return nil, nil, err
	}
	return store, func() {
		store.Close()
		source.Close()
	}, nil
}

// headgateCluster is store/redis on a cluster, with the keys in the given number of hash
// slots.
func headgateCluster(slots int) maker {
	open := func(_ context.Context, addrs []string, l limiters.Limit) (limiter, error) {
		store, err := redis.Open(redis.Config{
			Kind: redis.Cluster, Slots: slots, Client: rueidis.ClientOption{InitAddress: addrs},
		})
		if err != nil {
			return nil, err
		}
		return prepared(store, bucket(l), store.Close)
	}
	return maker{Name: clusterName(slots), Kind: contest.Ours, New: open}
}

func clusterName(slots int) string { return fmt.Sprintf("%s, %d slots", storeName, slots) }
