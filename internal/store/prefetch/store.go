package prefetch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prepared"
)

// Source is a shared store that can grant units ahead of need.
type Source interface {
	headgate.Store

	// Grant is Apply, except that each group takes as many units n as pass all of its ops, with
	// least <= n <= Cost. Receipt.Cost gives n. least[i] belongs to ops[i].
	//
	// The ops of one group have one Key, one Cost, one least of at least 1, and the Kind Take.
	// No Cost is above the number of units that a policy of the group admits at once. If least
	// does not pass, the group is decided as Take of least. Groups do not affect each other.
	// Units taken before an error may stay taken.
	Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error
}

// Config sets the Source of a Store and its bounds.
type Config struct {
	// Source is the shared store. Required.
	Source Source
	// Clock gives the monotonic time since any origin; nil is the machine's clock. Clock must
	// not run slower than the store's clock by more than a part in a thousand.
	Clock func() time.Duration
	// MaxKeys bounds the keys with remembered stashes and refusals, at about 450 bytes each; 0 is
	// 16,384.
	MaxKeys int
	// DenyFor bounds how long a refusal is repeated without a call of the source. 0 is 1s. A
	// negative value repeats no refusal.
	DenyFor time.Duration
	// Timeout bounds one flight: a flight may outlive the caller that began it. 0 is 1s.
	Timeout time.Duration
	// MaxFlights bounds the flights in progress. Each is a goroutine. 0 is 256.
	MaxFlights int
}

// The defaults and bounds of Config.
const (
	defaultMaxKeys    = 1 << 14
	greatestMaxKeys   = 1 << 24
	defaultDenyFor    = time.Second
	defaultTimeout    = time.Second
	defaultMaxFlights = 256
)

// Store is a headgate.Store in front of a Source, safe for concurrent use.
type Store struct {
	source  Source
	clock   func() time.Duration
	start   time.Time
	seed    maphash.Seed
	id      uint64
	denyFor time.Duration
	timeout time.Duration

	table   table
	trail   trail
	ledger  ledger
	flights flights
	calls   sync.Pool
	lones   sync.Pool

	policies prepared.Policies[policy]

	// trip is the smoothed duration of a Grant, in nanoseconds.
	trip atomic.Int64
	// offset is a lower estimate of the source's clock less this process's; 0 is unknown.
	offset atomic.Int64
	grants atomic.Uint64
	counts counts
}

var _ headgate.Store = (*Store)(nil)

// New makes a Store. The error names the setting that is invalid.
func New(c Config) (*Store, error) {
	if c.Source == nil {
		return nil, errors.New("prefetch: Source is missing: name the shared store that units are taken from")
	}
	if c.MaxKeys < 0 || c.MaxKeys > greatestMaxKeys {
		return nil, fmt.Errorf("prefetch: MaxKeys of %d is out of range: use 1 to %d, or 0 for %d",
			c.MaxKeys, greatestMaxKeys, defaultMaxKeys)
	}
	if c.Timeout < 0 || c.MaxFlights < 0 {
		return nil, errors.New("prefetch: Timeout or MaxFlights is negative: leave it out, or give a positive one")
	}
	s := &Store{
		source: c.Source, clock: c.Clock, start: time.Now(), seed: maphash.MakeSeed(), id: rand.Uint64(),
		denyFor: or(c.DenyFor, defaultDenyFor), timeout: or(c.Timeout, defaultTimeout),
		table: newTable(or(c.MaxKeys, defaultMaxKeys)),
		trail: newTrail(or(c.MaxKeys, defaultMaxKeys)),
	}
	s.flights.open(or(c.MaxFlights, defaultMaxFlights))
	s.policies.Open(prepared.Config[policy]{Compile: s.compile, Drop: func(p *policy) { s.source.Release(p.source) }})
	return s, nil
}

// or gives v, or the default for 0.
func or[T int | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Close cancels the flights in progress and waits for them. Granted and unspent units stay
// counted until they expire. A closed Store sends every request to the source. The caller
// closes the source.
func (s *Store) Close() {
	if s.made() {
		s.flights.close()
	}
}

// Unwrap gives the Source, for headgate.SlotsOf, or nil for a Store that New did not make.
func (s *Store) Unwrap() headgate.Store {
	if !s.made() {
		return nil
	}
	return s.source
}

// made reports whether New made the Store.
func (s *Store) made() bool { return s != nil && s.source != nil }

// now reads the monotonic clock.
func (s *Store) now() time.Duration {
	if s.clock != nil {
		return s.clock()
	}
	return time.Since(s.start)
}

// hash is keyed, so that a client cannot find two keys that collide.
func (s *Store) hash(key string) uint64 {
	return max(maphash.String(s.seed, key), 1) // A tag of 0 marks an unused place.
}
