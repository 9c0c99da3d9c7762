package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
)

// checkLocal notes a limit that this instance cannot count alone while the shared store is
// unreachable. all are the limits of the rule, and of each of its overrides.
func (s *section) checkLocal(r *guard.Rule, all []limits) {
	if share := s.counting.localShare; share > 0 && s.counting.shared != nil {
		for _, f := range check.Local(r, share, check.EachLimit(r, s.self.path, located(all), s.blamed)) {
			s.fault(s.limitAt(f.Path, all), f.Problem, f.Fix)
		}
		if !s.blamed(s.pathOf("in_flight")) {
			s.noteAll(check.LocalInFlight(r, s.self.path, share))
		}
	}
}

// checkFits notes limits that the shared store cannot count, at the field that the error names.
func (s *section) checkFits(r *guard.Rule, all []limits) {
	if s.counting.fit == nil {
		return
	}
	for l := range check.EachLimit(r, s.self.path, located(all), s.blamed) {
		err := s.counting.fit(l.Policy)
		// Other errors say that there are too many policies, which check.Policies reports.
		if _, found := errortype.As[*limit.PolicyError](err); found {
			s.policyFault(s.limitAt(l.Path, all), err)
		}
		if s.full {
			return
		}
	}
}

// located converts limits to the type of package check.
func located(all []limits) [][]check.Limit {
	sets := make([][]check.Limit, len(all))
	for i, l := range all {
		for j, p := range l.policies {
			sets[i] = append(sets[i], check.Limit{Policy: p, Path: l.values[j].path})
		}
	}
	return sets
}

// limitAt returns the value at a path from EachLimit. It does not use find, because the
// name of an override can look like several steps of a path.
func (s *section) limitAt(path string, all []limits) value {
	for _, l := range all {
		if i := slices.IndexFunc(l.values, func(v value) bool { return v.path == path }); i >= 0 {
			return l.values[i]
		}
	}
	return s.find(path)
}

// checkFallbacks finds fallback local without local_share or without a shared store, and
// local_share without fallback local.
func (s *section) checkFallbacks(c *Config) {
	where, used := s.fallsBackToLocal(c)
	if used && s.counting.known && c.Shared == nil {
		s.fault(where, "local has no effect with store memory, which is local already", "use allow or deny, or a shared store")
		return
	}
	share, given := s.given("local_share")
	switch {
	case s.blamed("local_share"):
	case used && !given:
		s.fault(where, "local has no local_share",
			"write local_share: 25% at the top level, for this instance's part of each limit: 100% divided by the number of instances")
	case given && !used && !slices.ContainsFunc(s.faults, func(f Fault) bool { return strings.HasSuffix(f.Path, "fallback") }):
		s.fault(share, "has no effect without fallback local", "remove it, or write fallback: local")
	}
}

// fallsBackToLocal returns the first field with fallback local.
func (s *section) fallsBackToLocal(c *Config) (where value, used bool) {
	if v, ok := s.written("fallback"); ok && c.Fallback == guard.FallbackLocal {
		return v, true
	}
	for i := range c.Rules {
		if c.Rules[i].Fallback == guard.FallbackLocal {
			return s.find(fmt.Sprintf("rules[%d].fallback", i)), true
		}
	}
	for i := range c.Domains {
		if c.Domains[i].Fallback == guard.FallbackLocal {
			return s.find(domainsName + "." + c.Domains[i].Name + ".fallback"), true
		}
	}
	return value{}, false
}
