package storetest

import "github.com/headgate/headgate"

// Apart declares that the store decides the keys of one group in parts, and makes their
// decisions one afterwards: what an Op that passes in a refused group is told
// of its ResetAfter may count what it took in between, and a group may be refused for
// units that another holds until it is refused itself. Everything else is held to.
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
