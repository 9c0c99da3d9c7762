package split

import (
	"sync/atomic"

	"github.com/headgate/headgate"
)

// policy is a prepared policy, and the store that counts it.
type policy struct {
	*users

	is headgate.Policy
	at side
}

// users are the users of a policy. The store behind has one user while users is above 0.
type users struct {
	n int // guarded by Store.mu
	// behind is the id in the store behind. A policy that is prepared again may get another id there.
	behind atomic.Uint32
}

// id gives the id in the store behind.
func (p *policy) id() headgate.PolicyID { return headgate.PolicyID(p.behind.Load()) }

func compile(p headgate.Policy) (*policy, error) {
	p.Named = false
	return &policy{is: p, at: sideOf(p), users: new(users)}, nil
}

// Prepare implements headgate.Store. Prepare calls no server.
func (s *Store) Prepare(p headgate.Policy) (headgate.PolicyID, error) {
	if !s.made() {
		return 0, headgate.ErrNotMade
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := s.policies.Prepare(p)
	if err != nil {
		return 0, err
	}
	plan := &s.policies.Issuer(id).Plan
	if plan.n == 0 {
		behind, err := s.stores[plan.at].Prepare(p)
		if err != nil {
			s.policies.Release(id)
			return 0, err
		}
		plan.behind.Store(uint32(behind))
	}
	plan.n++
	return id, nil
}

// Release implements headgate.Store. The last Release also releases the policy in the store behind.
// The Store knows the policy for as long as that store can have its state, so that receipts stay
// valid.
func (s *Store) Release(id headgate.PolicyID) {
	if !s.made() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	policy := s.policies.Get(id)
	if policy == nil {
		return
	}
	if policy.Plan.n--; policy.Plan.n == 0 {
		s.stores[policy.Plan.at].Release(policy.Plan.id())
	}
	s.policies.Release(id)
}
