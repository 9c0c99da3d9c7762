package storetest

import "github.com/headgate/headgate"

// Apart declares that the store decides the keys of a group one after another, and combines
// the decisions afterwards. Two deviations are then allowed. In a refused group, the
// ResetAfter of an Op that passed may count units taken in between. A group may be refused
// for units of another group that is itself refused later.
func Apart() Option {
	return func(s *suite) { s.apart = true }
}

// forgiven reports whether decision i of a group may have another ResetAfter.
func (s *suite) forgiven(group []headgate.Decision, i int) bool {
	if !s.apart || group[i].Verdict == headgate.Deny {
		return false
	}
	for j := range group {
		if group[j].Verdict == headgate.Deny {
			return true
		}
	}
	return false
}
