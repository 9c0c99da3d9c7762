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
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/prepared"
)

// Store is a headgate.Store on Memcached servers, safe for concurrent use.
type Store struct {
	config  Config
	nodes   atomic.Pointer[[]*node] // nil until the servers are known
	looking sync.WaitGroup
	flights flights

	// instance and the number of a take are its nonce. Each process draws a random instance.
	instance uint64
	takes    atomic.Uint64

	policies prepared.Policies[limit.Plan]
	foreign  *foreign

	born   time.Time
	close  context.CancelFunc
	closed atomic.Bool
	group  sync.WaitGroup
}

var _ headgate.Store = (*Store)(nil)

// New makes a Store. New does not wait for a server: a program starts without them. Call Close to
// end its goroutines.
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
		config: c, instance: binary.LittleEndian.Uint64(seed[:]), born: time.Now(),
		foreign: newForeign(),
	}
	s.policies.Open(prepared.Config[limit.Plan]{Compile: compile, Expiry: prepared.Expiry[limit.Plan]{Now: s.here, Life: life}})
	s.flights.open(s)
	ctx, cancel := context.WithCancel(context.Background())
	s.close = cancel
	if len(c.Servers) == 0 {
		s.looking.Go(func() { s.look(ctx) })
		return s, nil
	}
	if err := s.use(ctx, c.Servers); err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

// Close ends the store's goroutines and connections, and waits for them. Decisions in flight fail.
// Close may be called twice. Its error is always nil.
func (s *Store) Close() error {
	if s == nil || s.close == nil {
		return headgate.ErrNotMade
	}
	s.closed.Store(true)
	s.close()
	s.looking.Wait()
	for _, n := range s.servers() {
		_ = n.client.Close() // Its error is always nil.
	}
	s.flights.wait()
	s.group.Wait()
	return nil
}

// usable gives an error for a zero Store, for a closed one, and for one without servers yet.
func (s *Store) usable() error {
	switch {
	case s == nil || s.close == nil:
		return headgate.ErrNotMade
	case s.closed.Load():
		return ErrClosed
	case s.nodes.Load() == nil:
		return errNotFound
	default:
		return nil
	}
}

// servers gives the servers; none before they are known.
func (s *Store) servers() []*node {
	if all := s.nodes.Load(); all != nil {
		return *all
	}
	return nil
}

// Prepare implements headgate.Store.
func (s *Store) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	if s == nil || s.close == nil {
		return 0, headgate.ErrNotMade
	}
	return s.policies.Prepare(policy)
}

// Release implements headgate.Store. Release calls no server: the policy is freed when the longest
// time has passed in which a take may still be counted.
func (s *Store) Release(id headgate.PolicyID) {
	if s != nil && s.close != nil {
		s.policies.Release(id)
	}
}

// nonce numbers a take. 0 means no take.
func (s *Store) nonce() uint64 {
	for {
		if n := s.instance ^ s.takes.Add(1); n != 0 {
			return n
		}
	}
}
