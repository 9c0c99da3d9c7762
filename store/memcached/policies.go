package memcached

import (
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/store/fits"
	"github.com/headgate/headgate/internal/store/prepared"
)

// compile makes the plan of a prepared policy.
func compile(policy headgate.Policy) (*limit.Plan, error) {
	if err := fits.Memcached(policy); err != nil {
		return nil, err
	}
	return limit.Compile(policy)
}

// life gives how long a policy may have state on a server after its last user.
func life(policy *prepared.Policy[limit.Plan]) time.Duration {
	if !policy.Used() {
		return 0
	}
	return limit.Life(policy.Plan.Policy) + prepared.InFlight + slack
}

// here gives the time by which policies are freed: the clock of a test, or the time since New.
func (s *Store) here() headgate.Instant {
	if s.config.Clock == nil {
		return headgate.Instant(time.Since(s.born))
	}
	return s.config.Clock()
}

// issuer gives the plan of a receipt's policy, or nil after the policy was freed.
func (s *Store) issuer(r *headgate.Receipt) *limit.Plan {
	if policy := s.policies.Issuer(r.Policy); policy != nil {
		return &policy.Plan
	}
	return nil
}

// plan gives the plan of a policy in an item. The policy may come from another process or an
// earlier configuration. The error is that of package limit.
func (s *Store) plan(p headgate.Policy) (*limit.Plan, error) {
	if plan := s.policies.Find(p); plan != nil {
		return plan, nil
	}
	return s.foreign.plan(p)
}

// maxForeign bounds the cached plans of unknown policies, at about 200 bytes each.
const maxForeign = 1 << 12

// foreign caches plans of policies that items have and this store has not prepared.
type foreign struct {
	mu    sync.RWMutex
	plans map[headgate.Policy]*limit.Plan // guarded by mu
}

func newForeign() *foreign { return &foreign{plans: map[headgate.Policy]*limit.Plan{}} }

func (f *foreign) plan(p headgate.Policy) (*limit.Plan, error) {
	f.mu.RLock()
	plan := f.plans[p]
	f.mu.RUnlock()
	if plan != nil {
		return plan, nil
	}
	plan, err := limit.Compile(p)
	if err != nil {
		return nil, err
	}
	f.keep(plan)
	return plan, nil
}

// keep caches a plan, and evicts any other one from a full cache.
func (f *foreign) keep(plan *limit.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.plans) >= maxForeign {
		for other := range f.plans {
			delete(f.plans, other)
			break
		}
	}
	f.plans[plan.Policy] = plan
}
