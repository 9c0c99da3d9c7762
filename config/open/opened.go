package open

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	settings "github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/store/split"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/redis"
)

// Options are a program's additions to the store of a configuration. The zero value is ready to
// use.
type Options struct {
	// Log gets a line when a server of a shared store stops answering, and a line when it answers
	// again. nil logs nothing.
	Log *slog.Logger
	// Dial makes connections to the servers of a shared store; nil uses net.Dialer. The
	// configuration decides about TLS on these connections.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// LookupSRV finds the servers of memcached+srv://; nil uses net.DefaultResolver.
	LookupSRV func(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// Opened is the store of a configuration with everything that it needs. Opened is a
// headgate.Store, safe for concurrent use.
type Opened struct {
	headgate.Store

	shared    *settings.SharedStore // nil for a store in memory
	redis     *redis.Store
	perSecond *redis.Store // the store for limits of one second, or nil
	memcached *memcached.Store
	ahead     *prefetch.Store

	fallbacks atomic.Pointer[string] // the names of the fallbacks that decide without the store

	throttle atomic.Pointer[throttler.Stage] // of the latest GuardConfig

	mu     sync.Mutex
	memory *memory.Store // the store itself, or the local store that rules fall back to; guarded by mu
}

// flightBudgets is the duration of a flight in store_timeouts. Several callers may wait for
// one flight, each within its own store_timeout.
const flightBudgets = 2

// Store makes the store that a configuration describes. Store does not wait for a server: a
// program starts while its servers are down, and its rules use their fallbacks. Store reads
// the files of store_password_file, store_sentinel_password_file and store_tls; an
// unreadable file gives a *config.FileError.
//
// Call Close after the last use of every guard that counts in the store.
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

// openSource opens the shared store behind package prefetch.
func (s *Opened) openSource(o Options, budget time.Duration) (prefetch.Source, error) {
	if s.shared.Kind != settings.KindMemcached {
		described, err := redisConfig(s.shared, o, s.fallbackNames)
		if err != nil {
			return nil, err
		}
		described.Timeout = max(time.Second, budget)
		if s.redis, err = redis.Open(described); err != nil || s.shared.PerSecond == nil {
			return s.redis, err
		}
		return s.openPerSecond(o, described.Timeout)
	}
	dial, err := memcachedDial(s.shared, o)
	if err != nil {
		return nil, err
	}
	settings := memcached.Config{
		Servers: s.shared.Addresses, Breaker: breakerOf(s.shared.Breaker), Dial: dial, Log: o.Log,
		Counters: s.shared.Counters, Fallbacks: s.fallbackNames,
	}
	if name := s.shared.SRV(); name != "" {
		settings.Servers, settings.Lookup, settings.LookupEvery = nil, lookupServers(name, o.LookupSRV), s.shared.Refresh
	}
	s.memcached, err = memcached.New(settings)
	return prefetch.ByTake(s.memcached), err
}

// openPerSecond opens the store for limits of one second, and gives both stores as one.
func (s *Opened) openPerSecond(o Options, timeout time.Duration) (prefetch.Source, error) {
	described, err := redisConfig(s.shared.PerSecond, o, s.fallbackNames)
	if err == nil {
		described.Timeout = timeout
		s.perSecond, err = redis.Open(described)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return split.New(split.Config{Main: s.redis, PerSecond: s.perSecond})
}

func breakerOf(b settings.Breaker) breaker.Config {
	return breaker.Config{Failures: b.Failures, Probe: b.Probe, MaxProbe: b.MaxProbe}
}

// Close ends the connections and goroutines of a shared store. Decisions in progress fail.
func (s *Opened) Close() error {
	if s.ahead != nil {
		s.ahead.Close()
	}
	if s.redis != nil {
		s.redis.Close()
	}
	if s.perSecond != nil {
		s.perSecond.Close()
	}
	if s.memcached != nil {
		return s.memcached.Close()
	}
	return nil
}

// Shared reports whether other instances count in the same store.
func (s *Opened) Shared() bool { return s.shared != nil }

// Memory is the store in memory. Beside a shared store, it is the store that rules with
// fallback local count in. nil means that there is none.
func (s *Opened) Memory() *memory.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory
}

// Redis is the store in Redis, for its Stats; nil for other stores.
func (s *Opened) Redis() *redis.Store { return s.redis }

// PerSecond is the store in Redis for limits of one second, for its Stats; nil if there is none.
func (s *Opened) PerSecond() *redis.Store { return s.perSecond }

// Memcached is the store in Memcached, for its Stats; nil for other stores.
func (s *Opened) Memcached() *memcached.Store { return s.memcached }

// Prefetch is the prefetching store in front of a shared store, for its Stats; nil for a store
// in memory.
func (s *Opened) Prefetch() *Prefetch { return s.ahead }

// check gives an error when a configuration has another store.
func (s *Opened) check(c *config.Config) error {
	if s.shared.SamePlace(c.Shared) {
		return nil
	}
	return fmt.Errorf("config: store %s in place of %s: %w", placeOf(c.Shared), placeOf(s.shared), config.ErrStoreChanged)
}

// placeOf gives the addresses of a store, for a message.
func placeOf(s *settings.SharedStore) string {
	switch {
	case s == nil:
		return "memory"
	case s.PerSecond == nil:
		return s.String()
	default:
		return s.String() + " with store_per_second " + s.PerSecond.String()
	}
}

// Unwrap gives the store behind, for headgate.SlotsOf.
func (s *Opened) Unwrap() headgate.Store { return s.Store }

// ReturnLast implements headgate.LastReturner.
func (s *Opened) ReturnLast(ctx context.Context, r *headgate.Receipt) (returned bool, err error) {
	if store, ok := s.Store.(headgate.LastReturner); ok {
		return store.ReturnLast(ctx, r)
	}
	return false, nil
}

// direct gives the store that a guard calls. A store in memory is called without a wrapper,
// because it is called for every request.
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

// addThrottle gives a guard.Config the throttle of the configuration, with the requests of the
// throttle before it.
func (s *Opened) addThrottle(c *config.Config, described *guard.Config) error {
	if err := c.AddThrottle(described, s.throttle.Load()); err != nil {
		return err
	}
	for _, stage := range described.Stages {
		if t, ok := stage.(*throttler.Stage); ok {
			s.throttle.Store(t)
		}
	}
	return nil
}

// Throttle gives the throttle of the latest configuration that has one, or nil. All guards of one
// Opened stand before one service, and share its throttle.
func (s *Opened) Throttle() *throttler.Stage { return s.throttle.Load() }

// local gives the store that rules fall back to. The first rule with that fallback makes it.
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

// fallsBackToLocal reports whether a rule or a domain has fallback local.
func fallsBackToLocal(c *config.Config) bool {
	return slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Fallback == guard.FallbackLocal }) ||
		slices.ContainsFunc(c.Domains, func(d guard.Domain) bool { return d.Fallback == guard.FallbackLocal })
}
