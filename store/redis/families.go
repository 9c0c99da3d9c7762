package redis

import (
	"slices"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/store/redis/script"
)

// maxForgotten is how many states one call of Forget names.
const maxForgotten = 1000

// families are those of the policies that the store has prepared, and that of bans: what
// a key may be counted under. They only grow.
type families struct {
	list atomic.Pointer[[]limit.Family]
}

// all gives the families.
func (f *families) all() []limit.Family {
	if known := f.list.Load(); known != nil {
		return *known
	}
	return []limit.Family{limit.FamilyOf(headgate.Policy{Algorithm: headgate.Ban})}
}

// add adds a family; calls of add do not overlap.
func (f *families) add(family limit.Family) {
	known := f.all()
	if !slices.Contains(known, family) {
		known = append(slices.Clip(known), family)
		f.list.Store(&known)
	}
}

// compile makes the plan of a policy that is prepared. Prepare calls it under its lock.
func (s *Store) compile(policy headgate.Policy) (*script.Plan, error) {
	p, err := script.Compile(policy)
	if err == nil {
		s.families.add(p.Family())
	}
	return p, err
}
