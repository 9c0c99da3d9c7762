package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/lease/state"
)

// rules finds rules with a resource that a root does not have. Only a root has resources in its file.
func (p *leasePair) rules() {
	if len(p.parent.Lease.Servers) > 0 {
		return
	}
	unmatchedLeases(p.child.Rules, p.parent.Lease.Resources, " in "+p.parent.name(), p.child.fault)
}

// leaseOfRulesOfRoot finds rules of a root with a resource that the root does not have: their fallback would decide all requests. The
// resources of a parent are not known here, so this checks a root only.
func (s *section) leaseOfRulesOfRoot(c *Config, l *Lease) {
	if len(l.Servers) > 0 || s.blamedAny("servers", "resources") {
		return
	}
	unmatchedLeases(c.Rules, l.Resources, "", func(path, problem, fix string) {
		if !s.blamed(path) {
			s.fault(s.find(path), problem, fix)
		}
	})
}

// unmatchedLeases calls fault for each rule whose resource is not in all, or has slots. where follows the name of the list.
func unmatchedLeases(rules []guard.Rule, all []state.Resource, where string, fault func(path, problem, fix string)) {
	for i := range rules {
		name, at := rules[i].Lease.Resource, fmt.Sprintf("rules[%d].%s", i, leaseName)
		if name == "" || rules[i].Mode == guard.Off {
			continue
		}
		found, known := resourceOf(all, name)
		switch {
		case !known && where != "":
			fault(at, "no entry of lease.resources"+where+" matches "+quote(name),
				fmt.Sprintf("add one there, like {match: %s, capacity: 500/s}", quote(patternOf(name))))
		case !known:
			fault(at, "no entry of lease.resources matches "+quote(name),
				fmt.Sprintf("add one to lease.resources, like {match: %s, capacity: 500/s}", quote(patternOf(name))))
		case found != nil && found.Slots:
			fault(at, quote(name)+" has slots"+where, "use a resource with a rate, like 500/s")
		}
	}
}

// resourceOf finds the resource of a name. For a name with parts of a key, found is nil, and known reports whether a
// pattern may match: whether the texts before the first part and after the last part fit, and all texts for an exact name.
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
			return mayBeNamed(r.Match, name)
		}
		left, right := r.Match[:star], r.Match[strings.LastIndexByte(r.Match, '*')+1:]
		return (strings.HasPrefix(left, before) || strings.HasPrefix(before, left)) &&
			(strings.HasSuffix(right, after) || strings.HasSuffix(after, right))
	})
}

// mayBeNamed reports whether a name with parts of a key can become the exact name. A part has no "/", so both have as many.
func mayBeNamed(exact, name string) bool {
	return strings.Count(exact, "/") == strings.Count(name, "/") &&
		state.ResourceOf([]state.Resource{{Match: patternOf(name)}}, exact) != nil
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
