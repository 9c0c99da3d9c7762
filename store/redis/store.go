package redis

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prepared"
	"github.com/headgate/headgate/internal/store/script"
	"github.com/headgate/headgate/limit"
)

// How long a key is kept beyond its last use.
const (
	// slack covers the rounding of times to live, and small steps of the clock.
	slack = time.Second
	// slackOfTests: a clock of a test stands still while the server's moves on.
	slackOfTests = time.Hour
)

// Store is a headgate.Store on Redis, safe for concurrent use.
type Store struct {
	config   Config
	names    *script.Names
	clock    func() headgate.Instant
	slack    time.Duration
	decide   program
	across   program // decide, for keys of many slots
	giveBack program
	forget   program

	link  link
	lanes nodeQueues
	born  time.Time

	// instance and the number of a take make its nonce: instances that share a
	// server choose their own, at random.
	instance uint64
	takes    atomic.Uint64
	policies prepared.Policies[script.Plan]
}

var _ headgate.Store = (*Store)(nil)

// Open makes a Store and begins to connect in the background: a program starts
// without its servers, and its decisions fail until they answer. Close ends it.
func Open(c Config) (*Store, error) {
	if len(c.Client.InitAddress) == 0 {
		return nil, errors.New("redis: Config.Client.InitAddress is empty: name at least one server, as in 127.0.0.1:6379")
	}
	if c.Slots != 0 && c.Kind != Cluster {
		return nil, fmt.Errorf("redis: Slots is %d without a cluster: leave it out", c.Slots)
	}
	names, err := script.NewNames(c.Slots)
	if err != nil {
		return nil, err
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("redis: no random number for the name of this instance: %w", err)
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Second
	}
	s := &Store{
		config: c, names: names, clock: c.Clock, slack: slack, born: time.Now(),
		decide: newProgram(script.Decide()), across: newProgram(script.DecideAcross()),
		giveBack: newProgram(script.GiveBack()), forget: newProgram(script.Forget()),
		instance: binary.LittleEndian.Uint64(seed[:]),
	}
	s.policies.Open(prepared.Config[script.Plan]{Compile: script.Compile, Expiry: prepared.Expiry[script.Plan]{Now: s.here, Life: life}})
	if c.Clock != nil {
		s.slack = slackOfTests
	}
	s.lanes.open(s)
	s.link.open(s)
	return s, nil
}

// Close ends the connections, and what waits on them with an error. No other method may be called after it.
func (s *Store) Close() {
	if s.made() {
		s.link.close()
	}
}

// made tells a Store of Open from a zero one.
func (s *Store) made() bool { return s != nil && s.policies.Made() }

// Prepare implements headgate.Store. It asks no server.
func (s *Store) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	if !s.made() {
		return 0, headgate.ErrNotMade
	}
	return s.policies.Prepare(policy)
}

// Release implements headgate.Store. It asks no server: the policy is freed when the
// longest time is over that a take may count there.
func (s *Store) Release(id headgate.PolicyID) {
	if s.made() {
		s.policies.Release(id)
	}
}

// life gives how long after its last user has left a policy may have state on a server.
func life(of *prepared.Policy[script.Plan]) time.Duration {
	if !of.Used() {
		return 0
	}
	return limit.Life(of.Plan.Policy()) + prepared.InFlight + slack
}

// here gives the time by which policies are freed: the clock of a test, or the time since
// the store was made.
func (s *Store) here() headgate.Instant {
	if s.clock == nil {
		return headgate.Instant(s.since())
	}
	return s.clock()
}

// issuer gives the plan of a receipt's policy, or nil when it was freed.
func (s *Store) issuer(r *headgate.Receipt) *script.Plan {
	if of := s.policies.Issuer(r.Policy); of != nil {
		return &of.Plan
	}
	return nil
}

// nonce numbers a take. 0 is no take.
func (s *Store) nonce() uint64 {
	for {
		if n := s.instance ^ s.takes.Add(1); n != 0 {
			return n
		}
	}
}

// now gives the time for a script, or 0 for the server's own.
func (s *Store) now() headgate.Instant {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

// since gives this process' monotonic time, which breakers count in.
func (s *Store) since() time.Duration { return time.Since(s.born) }

// bounded gives ctx an end if it has none.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.config.Timeout)
}

// tell passes a change on.
func (s *Store) tell(c Change) {
	if s.config.Changed != nil {
		s.config.Changed(c)
	}
}
