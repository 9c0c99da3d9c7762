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
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/prepared"
	"github.com/headgate/headgate/internal/store/script"
)

// The time for which a key outlives its state.
const (
	// slack covers the rounding of times to live, and small steps of the clock.
	slack = time.Second
	// slackOfTests is longer, because a test's clock stands still while the server's clock runs.
	slackOfTests = time.Hour
)

// Store is a headgate.Store on Redis, safe for concurrent use.
type Store struct {
	config   Config
	names    *script.Names
	clock    func() headgate.Instant
	slack    time.Duration
	decide   program
	across   program // decides keys of many slots in one call
	giveBack program
	forget   program

	link   link
	queues nodeQueues
	slots  slotHolder
	born   time.Time

	// instance is a random number. A take's nonce combines it with the number of the take.
	instance uint64
	takes    atomic.Uint64
	policies prepared.Policies[script.Plan]
}

var _ headgate.Store = (*Store)(nil)

// Open makes a Store and connects in the background. A program can start without its servers, and
// its decisions fail until the servers answer. Close ends the Store.
func Open(c Config) (*Store, error) {
	if len(c.Client.InitAddress) == 0 {
		return nil, errors.New("redis: Config.Client.InitAddress is empty: name at least one server, as in 127.0.0.1:6379")
	}
	if c.Slots != 0 && c.Kind != Cluster {
		return nil, fmt.Errorf("redis: Config.Slots is %d without a cluster: set Slots to 0, or Kind to Cluster", c.Slots)
	}
	names, err := script.NewNames(c.Slots)
	if err != nil {
		return nil, err
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, fmt.Errorf("redis: could not read random bytes for the instance number: %w", err)
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
	s.queues.open(s)
	s.slots.open(s)
	s.link.open(s)
	return s, nil
}

// Close frees the slots of ended requests, and ends the connections, so that waiting calls fail. No
// method may be called after Close.
func (s *Store) Close() {
	if s.made() {
		s.slots.close()
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

// Release implements headgate.Store. Release calls no server. The store frees the policy when all
// takes of the policy must have expired, including takes that are in flight.
func (s *Store) Release(id headgate.PolicyID) {
	if s.made() {
		s.policies.Release(id)
	}
}

// life gives the longest time for which a server may keep a policy's state after the last use.
func life(policy *prepared.Policy[script.Plan]) time.Duration {
	if !policy.Used() {
		return 0
	}
	return limit.Life(policy.Plan.Policy()) + prepared.InFlight + slack
}

// here gives the time that decides when policies are freed: Config.Clock, or the time since Open.
func (s *Store) here() headgate.Instant {
	if s.clock == nil {
		return headgate.Instant(s.since())
	}
	return s.clock()
}

// issuer gives the plan of a receipt's policy, or nil after the policy was freed.
func (s *Store) issuer(r *headgate.Receipt) *script.Plan {
	if policy := s.policies.Issuer(r.Policy); policy != nil {
		return &policy.Plan
	}
	return nil
}

// nonce gives a number that identifies a take. 0 means no take.
func (s *Store) nonce() uint64 {
	for {
		if n := s.instance ^ s.takes.Add(1); n != 0 {
			return n
		}
	}
}

// now gives the time for a script; 0 means that the script reads the server's clock.
func (s *Store) now() headgate.Instant {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

// since gives the time since Open, from the monotonic clock. The breakers use it.
func (s *Store) since() time.Duration { return time.Since(s.born) }

// bounded gives ctx a deadline if it has none.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.config.Timeout)
}

// tell reports a change to Config.Changed. Close cancels calls and dials, and their errors are no fault of a server.
func (s *Store) tell(c Change) {
	if s.config.Changed == nil || c.State == breaker.Open && s.link.life.Err() != nil {
		return
	}
	s.config.Changed(c)
}
