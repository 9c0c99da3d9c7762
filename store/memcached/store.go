package memcached

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// Store is a headgate.Store on Memcached servers, safe for concurrent use.
type Store struct {
	config  Config
	nodes   []*node
	flights flights

	// instance and the number of a take make its nonce: processes choose their own
	// instance, at random.
	instance uint64
	takes    atomic.Uint64

	// plans is indexed by PolicyID; 0 is no policy. It only grows, under mu.
	plans    atomic.Pointer[[]*limit.Plan]
	mu       sync.Mutex
	prepared map[headgate.Policy]headgate.PolicyID
	policies *policies
	// periods are those of the policies that are counted in counters, under mu.
	periods map[time.Duration]bool

	close  context.CancelFunc
	closed atomic.Bool
	group  sync.WaitGroup
}

var _ headgate.Store = (*Store)(nil)

// New makes a Store. It waits for no server: a program starts without them. Close
// ends what it starts.
func New(c Config) (*Store, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("memcached: no random number for the name of this instance: %w", err)
	}
	s := &Store{
		config: c, instance: binary.LittleEndian.Uint64(seed[:]),
		prepared: map[headgate.Policy]headgate.PolicyID{}, policies: newPolicies(),
		periods: map[time.Duration]bool{},
	}
	s.plans.Store(&[]*limit.Plan{nil})
	s.flights.open(s)
	for _, addr := range c.Servers {
		n, err := newNode(addr, &s.config)
		if err != nil {
			for _, n := range s.nodes {
				_ = n.client.Close() // It has no error.
			}
			return nil, err
		}
		s.nodes = append(s.nodes, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.close = cancel
	for _, n := range s.nodes {
		s.group.Go(func() { n.follow(ctx) })
	}
	return s, nil
}

// Close ends the store's goroutines and connections, and waits until they have ended.
// Decisions in flight fail. It may be called twice; the error is nil.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.close()
	for _, n := range s.nodes {
		_ = n.client.Close() // It has no error.
	}
	s.flights.wait()
	s.group.Wait()
	return nil
}

// Fits tells whether Memcached can count a policy; the error is a *limit.PolicyError
// with what to use instead.
func Fits(policy headgate.Policy) error {
	if policy.Algorithm == headgate.SlidingLog {
		return &limit.PolicyError{
			Field: "algorithm", Problem: "sliding_log is not kept on Memcached, whose items are read and written whole",
			Fix: "use sliding_window, whose error is at most one sub-window's, or a store of Redis",
		}
	}
	_, err := limit.Compile(policy)
	return err
}

// Prepare implements headgate.Store.
func (s *Store) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.prepared[policy]; ok {
		return id, nil
	}
	if err := Fits(policy); err != nil {
		return 0, err
	}
	plan, err := limit.Compile(policy)
	if err != nil {
		return 0, err
	}
	plans := *s.plans.Load()
	if len(plans) > maxPolicies {
		return 0, headgate.ErrTooManyPolicies
	}
	s.policies.prepare(plan)
	if s.counted(plan) {
		s.periods[policy.Limit.Per] = true
	}
	// Readers see the old length until the new header is stored.
	plans = append(plans, plan)
	s.plans.Store(&plans)
	id := headgate.PolicyID(len(plans) - 1)
	s.prepared[policy] = id
	return id, nil
}

// plan gives the plan of an id, or nil.
func (s *Store) plan(id headgate.PolicyID) *limit.Plan {
	plans := *s.plans.Load()
	if int(id) >= len(plans) {
		return nil
	}
	return plans[id]
}

// nonce numbers a take. 0 is no take.
func (s *Store) nonce() uint64 {
	for {
		if n := s.instance ^ s.takes.Add(1); n != 0 {
			return n
		}
	}
}
