package open

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/prefetch"
	"github.com/headgate/headgate/store/redis"
)

// Options are what a program adds to the store of a configuration. The zero
// value is ready to use.
type Options struct {
	// Log gets a line when a server of a shared store is given up, and one when it
	// answers again; nil is none.
	Log *slog.Logger
	// Dial makes connections to the servers of a shared store; nil is net.Dialer's. TLS is
	// spoken on them when the configuration says so.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Opened is the store of a configuration with all that belongs to it. It is a
// headgate.Store, safe for concurrent use.
type Opened struct {
	headgate.Store

	shared    *config.SharedStore // nil for one in memory
	redis     *redis.Store
	memcached *memcached.Store
	ahead     *prefetch.Store

	fallbacks atomic.Pointer[string] // the names of what decides without the store

	mu     sync.Mutex
	memory *memory.Store // the store itself, or what rules fall back to; under mu
}

// flightBudgets is for how many store_timeouts a call may go on that several wait for,
// each within his own.
const flightBudgets = 2

// Store makes the store that a configuration describes. It waits for no server: a
// program starts while they are down, and its rules answer by their fallbacks. It does
// read the files of store_password_file, store_sentinel_password_file and store_tls; then
// the error is a *config.FileError.
//
// Close ends it, after the guards that count in it are not asked any more.
func Store(c *config.Config, o Options) (*Opened, error) {
	if c.Shared == nil {
		own, err := memory.New(c.StoreConfig())
		if err != nil {
			return nil, err
		}
		return &Opened{Store: own, memory: own}, nil
	}
	shared := *c.Shared
	opened := &Opened{shared: &shared}
	opened.nameFallbacks(c)
	source, err := opened.openSource(o, c.StoreTimeout)
	if err != nil {
		return nil, err
	}
	denyFor := shared.DenyCache
	if denyFor == 0 {
		denyFor = -1 // Package prefetch takes 0 for its default.
	}
	opened.ahead, err = prefetch.New(prefetch.Config{
		Source: source, MaxKeys: c.PrefetchKeys(), DenyFor: denyFor, Timeout: flightBudgets * c.StoreTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	opened.Store = opened.ahead
	return opened, nil
}

// openSource opens what units are taken from.
func (s *Opened) openSource(o Options, budget time.Duration) (prefetch.Source, error) {
	if s.shared.Kind != config.KindMemcached {
		described, err := redisConfig(s.shared, o, s.fallbackNames)
		if err != nil {
			return nil, err
		}
		described.Timeout = max(time.Second, budget)
		s.redis, err = redis.Open(described)
		return s.redis, err
	}
	var err error
	s.memcached, err = memcached.New(memcached.Config{
		Servers: s.shared.Addresses, Breaker: breakerOf(s.shared.Breaker), Dial: o.Dial, Log: o.Log,
		Counters: s.shared.Counters, Fallbacks: s.fallbackNames,
	})
	return prefetch.ByTake(s.memcached), err
}

func breakerOf(b config.Breaker) breaker.Config {
	return breaker.Config{Failures: b.Failures, Probe: b.Probe, MaxProbe: b.MaxProbe}
}

// Close ends the connections and goroutines of a shared store. Decisions under way fail.
func (s *Opened) Close() error {
	if s.ahead != nil {
		s.ahead.Close()
	}
	if s.redis != nil {
		s.redis.Close()
	}
	if s.memcached != nil {
		return s.memcached.Close()
	}
	return nil
}

// Shared tells whether the counters live where other instances count too.
func (s *Opened) Shared() bool { return s.shared != nil }

// Memory is the store in memory, or, beside a shared one, what rules with fallback
// local count in; nil when there is none.
func (s *Opened) Memory() *memory.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}

// Redis is the store in Redis, for its Stats; nil when it is another one.
func (s *Opened) Redis() *redis.Store { return s.redis }

// Memcached is the store in Memcached, for its Stats; nil when it is another one.
func (s *Opened) Memcached() *memcached.Store { return s.memcached }

// Prefetch is what stands before a shared store, for its Stats; nil for one in memory.
func (s *Opened) Prefetch() *prefetch.Store { return s.ahead }

// check finds a configuration that has another store.
func (s *Opened) check(c *config.Config) error {
	if s.shared.SamePlace(c.Shared) {
		return nil
	}
	was := "memory"
	if s.shared != nil {
		was = s.shared.String()
	}
	return fmt.Errorf("config: store %s in place of %s: %w", c.Store, was, config.ErrStoreChanged)
}

// direct gives what a guard asks: the store in memory without a step between, since it
// is asked for every request.
func (s *Opened) direct() headgate.Store {
	if s.shared == nil {
		return s.Store
	}
	return s
}

// describe adds the store in memory that rules fall back to.
func (s *Opened) describe(c *config.Config, described *guard.Config) error {
	if s.shared == nil {
		return nil
	}
	s.nameFallbacks(c)
	if !fallsBackToLocal(c) {
		described.LocalShare = 0
		return nil
	}
	local, err := s.local(c)
	described.Local = local
	return err
}

// local gives what rules fall back to, and makes it when the first of them does.
func (s *Opened) local(c *config.Config) (*memory.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory == nil {
		own, err := memory.New(c.StoreConfig())
		if err != nil {
			return nil, err
		}
		s.memory = own
	}
	return s.memory, nil
}

// fallsBackToLocal reports whether a rule does.
func fallsBackToLocal(c *config.Config) bool {
	for i := range c.Rules {
		if c.Rules[i].Fallback == guard.FallbackLocal {
			return true
		}
	}
	return false
}
