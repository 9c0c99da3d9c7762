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
	// slackOfTests: the clock of a test stands still while the server's clock moves on.
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

	// instance and the number of a take are its nonce. Each instance draws a random number.
	instance uint64
	takes    atomic.Uint64
	policies prepared.Policies[script.Plan]
}

var _ headgate.Store = (*Store)(nil)

// Open makes a Store and connects in the background. A program starts without its servers, and its
// decisions fail until they answer. Close ends the Store.
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

// Close ends the connections. Waiting calls fail. No other method may be called after Close.
func (s *Store) Close() {
	if s.made() {
		s.link.close()
	}
}

// made reports whether Open made the Store.
func (s *Store) made() bool { return s != nil && s.policies.Made() }

// Prepare implements headgate.Store. Prepare calls no server.
func (s *Store) Prepare(policy headgate.Policy) (headgate.PolicyID, error) {
	if !s.made() {
		return 0, headgate.ErrNotMade
	}
	return s.policies.Prepare(policy)
}

// Release implements headgate.Store. Release calls no server. The policy is freed when the longest
// time has passed in which a take may still be counted.
func (s *Store) Release(id headgate.PolicyID) {
	if s.made() {
		s.policies.Release(id)
	}
}

// life gives how long a policy may have state on a server after its last user.
func life(of *prepared.Policy[script.Plan]) time.Duration {
	if !of.Used() {
		return 0
	}
	return limit.Life(of.Plan.Policy()) + prepared.InFlight + slack
}

// here gives the time by which policies are freed: the clock of a test, or the time since Open.
func (s *Store) here() headgate.Instant {
	if s.clock == nil {
		return headgate.Instant(s.since())
	}
	return s.clock()
}

// issuer gives the plan of a receipt's policy, or nil after the policy was freed.
func (s *Store) issuer(r *headgate.Receipt) *script.Plan {
	if of := s.policies.Issuer(r.Policy); of != nil {
		return &of.Plan
	}
	return nil
}

// nonce numbers a take. 0 means no take.
func (s *Store) nonce() uint64 {
	for {
		if n := s.instance ^ s.takes.Add(1); n != 0 {
			return n
		}
	}
}

// now gives the time for a script; 0 means the server's own clock.
func (s *Store) now() headgate.Instant {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

// since gives this process's monotonic time, which the breakers use.
func (s *Store) since() time.Duration { return time.Since(s.born) }

// bounded gives ctx a deadline if it has none.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.config.Timeout)
}

// tell reports a change.
func (s *Store) tell(c Change) {
	if s.config.Changed != nil {
		s.config.Changed(c)
	}
}
