package guard

import "slices"

// CountsAs reports whether decisions are reported under a name: that of a rule, also if it is off, of a stage, of a limit in the tree
// of a domain, of a domain, under whose name limits that clients send are reported, or SentName.
func (g *Guard) CountsAs(name string) bool {
	s := g.now()
	if s == nil {
		return false
	}
	c := &s.config
	switch {
	case name == FairShareName && c.FairShare != nil, name == SentName && s.sent != nil,
		slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Name == name }),
		slices.ContainsFunc(c.Stages, func(st Stage) bool { return st.Rule().Name == name }):
		return true
	}
	return slices.ContainsFunc(c.Domains, func(d Domain) bool {
		return d.Name == name || slices.Contains(leafNames(nil, d.Name, d.Descriptors), name)
	})
}
