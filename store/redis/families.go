package redis

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
)

// maxForgotten bounds the states that one call of Forget deletes.
const maxForgotten = 1000

// families gives the families of the prepared policies and of bans. A key has at most one state for
// each family. The cost is one visit of each prepared policy.
func (s *Store) families() []limit.Family {
	all := []limit.Family{limit.FamilyOf(headgate.Policy{Algorithm: headgate.Ban})}
	seen := map[limit.Family]bool{all[0]: true}
	s.policies.Each(func(p headgate.Policy) {
		if f := limit.FamilyOf(p); !seen[f] {
			seen[f] = true
			all = append(all, f)
		}
	})
	return all
}
