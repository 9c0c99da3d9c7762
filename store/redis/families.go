package redis

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// maxForgotten bounds the states in one call of Forget.
const maxForgotten = 1000

// families gives the families of the prepared policies and of bans: the families that a key may
// be counted under. It reads every policy.
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
