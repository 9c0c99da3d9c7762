package prepared

import (
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// Policies keeps a plan of type P for each policy. The zero value is not ready: use
// New. It is safe for concurrent use.
type Policies[P any] struct {
	most int
	// plans is indexed by PolicyID; 0 is no policy. It only grows, under mu.
	plans atomic.Pointer[[]*P]
	mu    sync.Mutex
	ids   map[headgate.Policy]headgate.PolicyID // under mu
}

// New makes Policies that keep most of them and refuse what comes after.
func New[P any](most int) *Policies[P] {
	p := &Policies[P]{most: most, ids: make(map[headgate.Policy]headgate.PolicyID)}
	p.plans.Store(&[]*P{nil})
	return p
}

// Prepare gives the name of a policy. compile makes the plan of one that is new, under a
// lock, so that it may change what belongs to the plans; its error is passed on. The error is
// headgate.ErrTooManyPolicies when there is no room.
func (p *Policies[P]) Prepare(policy headgate.Policy, compile func(headgate.Policy) (*P, error)) (headgate.PolicyID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id, ok := p.ids[policy]; ok {
		return id, nil
	}
	plans := *p.plans.Load()
	if len(plans) > p.most {
		return 0, headgate.ErrTooManyPolicies
	}
	plan, err := compile(policy)
	if err != nil {
		return 0, err
	}
	// Readers see the old length until the new header is stored.
	plans = append(plans, plan)
	p.plans.Store(&plans)
	id := headgate.PolicyID(len(plans) - 1)
	p.ids[policy] = id
	return id, nil
}

// Get gives the plan of a name, or nil.
func (p *Policies[P]) Get(id headgate.PolicyID) *P {
	plans := *p.plans.Load()
	if int(id) >= len(plans) {
		return nil
	}
	return plans[id]
}
