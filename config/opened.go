package config

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
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/breaker"
	"github.com/headgate/headgate/store/memcached"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/prefetch"
	"github.com/headgate/headgate/store/redis"
)

// StoreOptions are what a program adds to the store of a configuration. The zero
// value is ready to use.
type StoreOptions struct {
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

	shared    *SharedStore // nil for one in memory
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

// ErrStoreChanged says that a configuration has another store than the one that a
// reload is to count in. Config.GuardConfig wraps it.
var ErrStoreChanged = errors.New("another store takes effect at the next start alone, since counters would begin anew: restart")

// OpenStore makes the store that the configuration describes. It waits for no server: a
// program starts while they are down, and its rules answer by their fallbacks. It does
// read the files of store_password_file, store_sentinel_password_file and store_tls; then
// the error is a *FileError.
//
// Close ends it, after the guards that count in it are not asked any more.
func (c *Config) OpenStore(o StoreOptions) (*Opened, error) {
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
		Source: source, MaxKeys: c.stashKeys(), DenyFor: denyFor, Timeout: flightBudgets * c.StoreTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	opened.Store = opened.ahead
	return opened, nil
}

// openSource opens what units are taken from.
func (s *Opened) openSource(o StoreOptions, budget time.Duration) (prefetch.Source, error) {
	if s.shared.Kind != KindMemcached {
		described, err := s.shared.redisConfig(o, s.fallbackNames)
		if err != nil {
			return nil, err
		}
		described.Timeout = max(time.Second, budget)
		s.redis, err = redis.Open(described)
		return s.redis, err
	}
	var err error
	s.memcached, err = memcached.New(memcached.Config{
		Servers: s.shared.Addresses, Breaker: s.shared.Breaker.settings(), Dial: o.Dial, Log: o.Log,
		Counters: s.shared.Counters, Fallbacks: s.fallbackNames,
	})
	return prefetch.ByTake(s.memcached), err
}

func (b Breaker) settings() breaker.Config {
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

// StoreNeedsRestart lists the settings of the store that are others in next, and take
// effect at the next start alone. It is for what a reload logs; a next that GuardConfig
// refuses with ErrStoreChanged is none to reload.
func (c *Config) StoreNeedsRestart(next *Config) []string {
	if c.Shared == nil || next.Shared == nil {
		return nil
	}
	a, b := c.Shared, next.Shared
	var settings []string
	for _, setting := range [...]struct {
		name    string
		differs bool
	}{
		{"store", a.User != b.User || a.Password != b.Password || a.TLS != b.TLS},
		{"store_password_file", a.PasswordFile != b.PasswordFile},
		{"store_sentinel_password_file", a.SentinelPasswordFile != b.SentinelPasswordFile},
		{"store_tls", a.Files != b.Files},
		{"deny_cache", a.DenyCache != b.DenyCache},
		{"breaker", a.Breaker != b.Breaker},
	} {
		if setting.differs {
			settings = append(settings, setting.name)
		}
	}
	return settings
}

// describe adds the store to what is known of a guard.
func (s *Opened) describe(c *Config, described *guard.Config) error {
	if !s.shared.samePlace(c.Shared) {
		return fmt.Errorf("config: store %s in place of %s: %w", c.Store, s.name(), ErrStoreChanged)
	}
	if s.shared == nil {
		described.Store = s.Store // Without a way round: it is asked for every request.
		return nil
	}
	described.Store, described.StoreTimeout = s, c.StoreTimeout
	s.nameFallbacks(c)
	if !c.fallsBackToLocal() {
		return nil
	}
	local, err := s.local(c)
	described.Local, described.LocalShare = local, c.LocalShare
	return err
}

func (s *Opened) name() string {
	if s.shared == nil {
		return memoryWord
	}
	return s.shared.String()
}

// local gives what rules fall back to, and makes it when the first of them does.
func (s *Opened) local(c *Config) (*memory.Store, error) {
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
func (c *Config) fallsBackToLocal() bool {
	for i := range c.Rules {
		if c.Rules[i].Fallback == guard.FallbackLocal {
			return true
		}
	}
	return false
}
