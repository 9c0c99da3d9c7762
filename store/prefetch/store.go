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

// Source is a shared store that units can be taken from ahead of need.
type Source interface {
	headgate.Store

	// Grant is Apply in which each group takes the most units n, least <= n <= Cost,
	// that pass all of its ops; Receipt.Cost tells n. The ops of one group have one
	// Key, one Cost and one least, at least 1, Mode Take, and least[i] is of ops[i]; no
	// Cost is above what a policy of the group admits at once. If least does not pass, the
	// group is decided as Take of least. Groups do not affect each other. What was
	// taken before an error may stay taken.
	Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error
}

// Config says what a Store is in front of and how much it may hold.
type Config struct {
	// Source is the shared store. It is required.
	Source Source
	// Clock gives the monotonic time since any origin; nil is the machine's. It must
	// not run slower than the store's clock by more than a part in a thousand.
	Clock func() time.Duration
	// MaxKeys bounds the keys whose stashes and refusals are remembered, at 450
	// bytes or so each; 0 is 16,384.
	MaxKeys int
	// DenyFor is for how long a refusal is repeated without asking the source, at
	// most; 0 is 1s, negative repeats none.
	DenyFor time.Duration
	// Timeout bounds one call for units ahead, which lives longer than the caller
	// that began it; 0 is 1s.
	Timeout time.Duration
	// MaxFlights bounds such calls under way at once, each a goroutine; 0 is 256.
	MaxFlights int
}

// What the zero Config means, and what it may say.
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

	// trip is how long the source takes to answer Grant, in nanoseconds, smoothed.
	trip atomic.Int64
	// offset is the source's clock less ours, a lower estimate; 0 is not known.
	offset atomic.Int64
	grants atomic.Uint64
	counts counts
}

var _ headgate.Store = (*Store)(nil)

// New makes a Store. The error says which setting does not fit.
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

// or gives v, or what stands for 0.
func or[T int | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Close ends the calls for units ahead that are under way and waits for them. What
// was granted and is not spent stays counted until it expires. A closed Store asks
// the source directly; the source is the caller's to close.
func (s *Store) Close() {
	if s.made() {
		s.flights.close()
	}
}

// made tells a Store of New from a zero one.
func (s *Store) made() bool { return s != nil && s.source != nil }

// now reads the monotonic clock.
func (s *Store) now() time.Duration {
	if s.clock != nil {
		return s.clock()
	}
	return time.Since(s.start)
}

// hash is keyed: who does not know the seed cannot find two keys that meet.
func (s *Store) hash(key string) uint64 {
	return max(maphash.String(s.seed, key), 1) // A tag of 0 is an unused place.
}
