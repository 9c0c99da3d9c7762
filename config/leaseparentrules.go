package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/lease/state"
)

// rules finds rules with a resource that a root does not have. Only a root has resources in its file.
func (p *leasePair) rules() {
	if len(p.parent.Lease.Servers) > 0 {
		return
	}
	for i := range p.child.Rules {
		r := &p.child.Rules[i]
		name, at := r.Lease.Resource, fmt.Sprintf("rules[%d].%s", i, leaseName)
		if name == "" || r.Mode == guard.Off {
			continue
		}
		found, known := resourceOf(p.parent.Lease.Resources, name)
		switch {
		case !known:
			p.child.fault(at, "no entry of lease.resources in "+p.parent.name()+" matches "+quote(name),
				fmt.Sprintf("add one there, like {match: %s, capacity: 500/s}", quote(patternOf(name))))
		case found != nil && found.Slots:
			p.child.fault(at, quote(name)+" has slots in "+p.parent.name(), "use a resource with a rate, like 500/s")
		}
	}
}

// resourceOf finds the resource of a name. For a name with parts of a key, found is nil, and known reports whether a
// pattern may match: whether the texts before the first part and after the last part fit.
func resourceOf(all []state.Resource, name string) (found *state.Resource, known bool) {
	first, last := strings.IndexByte(name, '{'), strings.LastIndexByte(name, '{')
	if first < 0 {
		found = state.ResourceOf(all, name)
		return found, found != nil
	}
	before, after := name[:first], name[last+len("{1}"):]
	return nil, slices.ContainsFunc(all, func(r state.Resource) bool {
		star := strings.IndexByte(r.Match, '*')
		if star < 0 {
			return len(r.Match) >= len(before)+len(after) && strings.HasPrefix(r.Match, before) && strings.HasSuffix(r.Match, after)
		}
		left, right := r.Match[:star], r.Match[strings.LastIndexByte(r.Match, '*')+1:]
		return (strings.HasPrefix(left, before) || strings.HasPrefix(before, left)) &&
			(strings.HasSuffix(right, after) || strings.HasSuffix(after, right))
	})
}

// patternOf gives a pattern that matches a name: its parts are "*".
func patternOf(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '{' {
			b.WriteByte('*')
			i += len("1}")
			continue
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
