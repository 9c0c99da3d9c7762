package memcached

import (
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// maxForeign bounds the plans that are kept of policies that other processes have
// counted under, at 200 bytes or so each.
const maxForeign = 1 << 12

// policies gives the plan of every policy that an item may name: prepared ones,
// and, for changed limits, those of other processes and earlier configurations.
type policies struct {
	mu       sync.RWMutex
	prepared map[headgate.Policy]*limit.Plan
	foreign  map[headgate.Policy]*limit.Plan
}

func newPolicies() *policies {
	return &policies{prepared: map[headgate.Policy]*limit.Plan{}, foreign: map[headgate.Policy]*limit.Plan{}}
}

// prepare keeps the plan of p for good.
func (ps *policies) prepare(p *limit.Plan) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.prepared[p.Policy] = p
	delete(ps.foreign, p.Policy)
}

// plan gives the plan of p, which an item names. The error is limit's.
func (ps *policies) plan(p headgate.Policy) (*limit.Plan, error) {
	ps.mu.RLock()
	plan := ps.prepared[p]
	if plan == nil {
		plan = ps.foreign[p]
	}
	ps.mu.RUnlock()
	if plan != nil {
		return plan, nil
	}
	plan, err := limit.Compile(p)
	if err != nil {
		return nil, err
	}
	ps.keep(plan)
	return plan, nil
}

// keep puts a foreign plan into the cache; any other makes room for it.
func (ps *policies) keep(plan *limit.Plan) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.foreign) >= maxForeign {
		for other := range ps.foreign {
			delete(ps.foreign, other)
			break
		}
	}
	ps.foreign[plan.Policy] = plan
}
