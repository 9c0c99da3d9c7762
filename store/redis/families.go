package redis

import (
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limit"
)

// maxForgotten is how many states one call of Forget names.
const maxForgotten = 1000

// families gives those of the policies that are prepared and not freed, and that of bans:
// what a key may be counted under. It looks at every policy.
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
