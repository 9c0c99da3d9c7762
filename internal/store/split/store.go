package split

import (
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/store/prepared"
)

// slack is longer than the time for which a store keeps a state that has expired.
const slack = time.Second

// Config names the two stores.
type Config struct {
	// Main counts all limits with a period other than one second, and all bans. Required.
	Main prefetch.Source
	// PerSecond counts the limits with a period of one second. Required.
	PerSecond prefetch.Source
	// Clock replaces the machine's clock in tests. It decides when released limits are freed.
	Clock func() headgate.Instant
}

// Store is a prefetch.Source on two stores, safe for concurrent use.
type Store struct {
	stores [2]prefetch.Source // by side
	// byTake grants units to groups with Ops in both stores.
	byTake prefetch.Source
	clock  func() headgate.Instant
	born   time.Time
	calls  sync.Pool

	// mu makes the number of users and the policies of both stores change together.
	mu       sync.Mutex
	policies prepared.Policies[policy]
}

var (
	_ prefetch.Source       = (*Store)(nil)
	_ headgate.LastReturner = (*Store)(nil)
)

// side is the index of a store.
type side uint8

const (
	main side = iota
	perSecond
)

// sideOf gives the store that counts a policy. All bans of a key share one state, so they count in one
// store.
func sideOf(p headgate.Policy) side {
	if p.Limit.Per == time.Second && p.Algorithm != headgate.Ban {
		return perSecond
	}
	return main
}

// New makes a Store. The caller closes both stores after the last use of the Store.
func New(c Config) (*Store, error) {
	if c.Main == nil || c.PerSecond == nil {
		return nil, errors.New("split: Main or PerSecond is missing: name both stores, or use one store without package split")
	}
	s := &Store{stores: [2]prefetch.Source{main: c.Main, perSecond: c.PerSecond}, clock: c.Clock, born: time.Now()}
	s.byTake = prefetch.ByTake(s)
	s.policies.Open(prepared.Config[policy]{Compile: compile, Expiry: prepared.Expiry[policy]{Now: s.now, Life: life}})
	return s, nil
}

// made reports whether New made the Store.
func (s *Store) made() bool { return s != nil && s.policies.Made() }

// Unwrap gives the main store, for headgate.SlotsOf.
func (s *Store) Unwrap() headgate.Store {
	if !s.made() {
		return nil
	}
	return s.stores[main]
}

// now gives the time that decides when policies are freed.
func (s *Store) now() headgate.Instant {
	if s.clock == nil {
		return headgate.Instant(time.Since(s.born))
	}
	return s.clock()
}

// life gives the longest time for which a store may keep a policy's state after the last use.
func life(policy *prepared.Policy[policy]) time.Duration {
	if !policy.Used() {
		return 0
	}
	return limit.Life(policy.Plan.is) + prepared.InFlight + slack
}
