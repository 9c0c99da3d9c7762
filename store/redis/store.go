package redis

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
)

// Config says where a Store keeps its counters. Client is required.
type Config struct {
	// Client talks to the server. The Store does not close it.
	Client rueidis.Client
	// Clock replaces the server's clock, in tests. Times are from 1970 to 2112, and
	// count in whole microseconds.
	Clock func() headgate.Instant
}

// maxPolicies bounds what Prepare keeps, at 300 bytes or so each.
const maxPolicies = 1 << 17

// How long a key is kept beyond its last use, in milliseconds.
const (
	// slack covers the rounding of times to live, and small steps of the clock.
	slack = "1000"
	// slackOfTests: a clock of a test stands still while the server's moves on.
	slackOfTests = "3600000"
)

// Store is a headgate.Store on one Redis server, safe for concurrent use.
type Store struct {
	client   rueidis.Client
	clock    func() headgate.Instant
	slack    string
	decide   script
	giveBack script
	forget   script

	// instance and the number of a take make its nonce: instances that share a
	// server choose their own, at random.
	instance uint64
	takes    atomic.Uint64

	// plans is indexed by PolicyID; 0 is no policy. It only grows, under mu.
	plans    atomic.Pointer[[]*plan]
	mu       sync.Mutex
	prepared map[headgate.Policy]headgate.PolicyID
}

var _ headgate.Store = (*Store)(nil)

// New makes a Store. It does not talk to the server: a program starts without it.
func New(c Config) (*Store, error) {
	if c.Client == nil {
		return nil, errors.New("redis: Config.Client is nil: make one with rueidis.NewClient")
	}
	if c.Client.Mode() == rueidis.ClientModeCluster {
		return nil, errors.New("redis: cluster is not supported yet: use one server, with rueidis.ClientOption.ForceSingleClient")
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("redis: no random number for the name of this instance: %w", err)
	}
	s := &Store{
		client:   c.Client,
		clock:    c.Clock,
		slack:    slack,
		decide:   newScript(luaSpan, luaBucket, luaLog, luaDecide),
		giveBack: newScript(luaSpan, luaBucket, luaLog, luaGiveBack),
		forget:   newScript(luaSpan, luaBucket, luaLog, luaForget),
		instance: binary.LittleEndian.Uint64(seed[:]),
		prepared: make(map[headgate.Policy]headgate.PolicyID),
	}
	if c.Clock != nil {
		s.slack = slackOfTests
	}
	s.plans.Store(&[]*plan{nil})
	return s, nil
}

// Prepare implements headgate.Store.
func (s *Store) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.prepared[policy]; ok {
		return id, nil
	}
	p, err := compile(policy)
	if err != nil {
		return 0, err
	}
	plans := *s.plans.Load()
	if len(plans) > maxPolicies {
		return 0, headgate.ErrTooManyPolicies
	}
	// Readers see the old length until the new header is stored.
	plans = append(plans, p)
	s.plans.Store(&plans)
	id := headgate.PolicyID(len(plans) - 1)
	s.prepared[policy] = id
	return id, nil
}

// plan gives the plan of an id, or nil.
func (s *Store) plan(id headgate.PolicyID) *plan {
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

// now renders the time for a script: nothing asks for the server's.
func (s *Store) now() string {
	if s.clock == nil {
		return ""
	}
	return fmt.Sprint(int64(s.clock()) / 1000)
}
