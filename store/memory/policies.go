package memory

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/prepared"
)

// policy is a prepared policy. A place names its policy by the slot: the low 16 bits of the
// id. A place keeps that name as long as it holds state of the policy, void or not. sweep
// removes such names before another policy gets the slot.
//
// Every decision checks, under the lock of its shard, that the id is still in use (Names).
// So a decision for a released policy ends before the sweep reaches the shard, or fails.
type policy = prepared.Policy[limit.Plan]

// A sweep reads a place in 2 to 10 ns. It locks one shard at a time.
const (
	// sweepPart: a sweep waits for one released policy for each 64 places, or for leastSwept.
	sweepPart  = 64
	leastSwept = 64
	// mostSwept bounds the wait, so that released policies without live state cannot fill the
	// registry. A store above 64 MiB reads more places for each released policy.
	mostSwept = prepared.Most / 4
	// sweepRest bounds the cost of sweeps, while released policies fill the store, to a tenth
	// of one processor.
	sweepRest = 100 * time.Nanosecond
)

func (s *Store) openPolicies() {
	places := len(s.table.places)
	s.policies.Open(prepared.Config[limit.Plan]{
		Compile: s.compile,
		Expiry: prepared.Expiry[limit.Plan]{
			Now: s.clock.Now, Sweep: s.sweepReleased,
			Batch: min(max(places/sweepPart, leastSwept), mostSwept), Rest: time.Duration(places) * sweepRest,
		},
	})
}

// Prepare implements headgate.Store. Prepare may sweep the table for state of released
// policies.
func (s *Store) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	if !s.made() {
		return 0, headgate.ErrNotMade
	}
	return s.policies.Prepare(p)
}

// Release implements headgate.Store.
func (s *Store) Release(id headgate.PolicyID) {
	if s.made() {
		s.policies.Release(id)
	}
}

func (s *Store) compile(p headgate.Policy) (*limit.Plan, error) {
	plan, err := limit.Compile(p)
	if err != nil {
		return nil, err
	}
	if need := blockBound(plan); need > s.blocks.largest() {
		return nil, fmt.Errorf("memory: one key of %s %s takes up to %d bytes of blocks, and there are %d: "+
			"raise max_memory, lower the limit, or use another algorithm",
			p.Algorithm, p.Limit, need*8, s.blocks.largest()*8)
	}
	return plan, nil
}

// policy gives the policy in the slot of an id, or nil. The policy may have another id.
func (s *Store) policy(id headgate.PolicyID) *policy {
	if s == nil {
		return nil
	}
	return s.policies.At(uint16(id))
}

// planOf gives the plan of the state in a place. The caller holds the lock of the shard. A
// place without a policy is void under the zero plan. No policy has the zero plan's family.
func (s *Store) planOf(p *place) *limit.Plan { return &s.policies.At(p.cell.Policy).Plan }

// sweepReleased implements prepared.Expiry. It skips shards that no key has used.
func (s *Store) sweepReleased(released []*policy, now headgate.Instant) {
	var bySlot slots
	for _, e := range released {
		bySlot.add(uint16(e.ID()))
	}
	for i := range s.table.shards {
		sh := &s.table.shards[i]
		sh.lock()
		if sh.nonce != 0 {
			run := s.table.places[uint64(i)*s.table.each : uint64(i+1)*s.table.each]
			for j := range run {
				if p := &run[j]; bySlot.has(p.cell.Policy) {
					s.sweepPlace(p, now)
				}
			}
		}
		sh.unlock()
	}
}

// slots is a set of slots.
type slots [(prepared.Most + 1) / 64]uint64

func (s *slots) add(slot uint16)      { s[slot/64] |= 1 << (slot % 64) }
func (s *slots) has(slot uint16) bool { return s[slot/64]&(1<<(slot%64)) != 0 }

// sweepPlace keeps the policy of a place with live state, and removes the name of any other.
func (s *Store) sweepPlace(p *place, now headgate.Instant) {
	if free := s.freeAt(p); free > now {
		s.policies.At(p.cell.Policy).Keep(free)
		return
	}
	s.release(p)
	p.cell.Policy = 0
}
