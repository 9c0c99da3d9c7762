package config

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// notOfLeasesTable has the fields that a rule with a lease does not have.
var notOfLeasesTable = [...]struct{ name, problem, fix string }{
	{"limits", "the lease is the limit", "remove limits or lease"},
	{"quota", "the lease is the limit", "remove quota or lease"},
	{"overrides", "a rule with a lease has none: each resource has its own capacity", "write resources at the root of the leases"},
	{"limits_from", "the lease is the limit", "remove limits_from or lease"},
	{"sub_windows", "a lease has no windows", "remove it"},
	{"count_rejected", "a lease does not count refused attempts", "remove it"},
	{"soft", "a lease has no soft limit", "remove it"},
	{"prefetch", "a lease is in this process already", "remove it"},
	{"count", "the units of a lease stay counted", "remove it"},
	{"settle", "the units of a lease stay counted", "remove it"},
	{"ban", "a lease has no ban", "write it in another rule with the same match"},
	{"in_flight", "a lease has no bound of requests in flight", "write it in another rule with the same match"},
	{"in_flight_ttl", "a lease has no bound of requests in flight", "write it in another rule with the same match"},
}

const leaseRuleExample = "write the name of a resource, like db/orders or db/{1}"

// leaseRule reads the resource whose lease is the limit of the rule, after the key.
func (s *section) leaseRule(r *guard.Rule) {
	s.declare(leaseName, field.Taken, "Resource whose lease of this process is the limit, in place of limits. {1} to {3} stand for the "+
		"parts of the key.")
	s.outline.field(leaseName).text("", "", 1, rule.MaxResource)
	v, ok := s.textOf(leaseName, &r.Lease.Resource)
	if !ok {
		return
	}
	if r.Lease.Resource == "" {
		s.fault(v, "the resource has no name", leaseRuleExample)
		return
	}
	for i := range notOfLeasesTable {
		if other := &notOfLeasesTable[i]; s.has(other.name) {
			s.fault(s.keyOf(other.name), other.problem, other.fix)
		}
	}
	if len(r.Key) == 0 || s.blamedAny("key") {
		return
	}
	if _, err := rule.ParseResource(r.Lease.Resource, r.Key); err != nil {
		s.parseFault(v, err)
	}
}

// leaseTerms checks what a rule with a lease does with a request, and reads its burst. e is its section on_exceed.
func (s *section) leaseTerms(r *guard.Rule, a headgate.Algorithm, e *section) {
	if !s.has(leaseName) {
		return
	}
	if a != headgate.TokenBucket && !s.blamedAny("algorithm") {
		s.fault(s.keyOf("algorithm"), "a lease has a token_bucket", "remove it, or write algorithm: token_bucket")
	}
	if r.Exceed.Action == guard.Delay && !e.blamedAny("action") {
		s.fault(s.find(e.pathOf("action")), "a lease does not let requests wait", "use reject, redirect or degrade")
	}
	if e.has("hard") {
		s.fault(e.keyOf("hard"), "a lease has no hard limit", "write it in another rule with the same match")
	}
	if v, ok := s.given("burst"); ok && !s.blamedAny("burst") {
		s.wholeNumber(v, &r.Lease.Burst, 1, headgate.MaxUnits)
	}
	if r.Fallback != guard.FallbackLocal || s.blamedAny("fallback") {
		return
	}
	at := s.keyOf(leaseName)
	if v, ok := s.written("fallback"); ok {
		at = v
	}
	s.fault(at, "a lease has no fallback local", "write fallback: deny or fallback: allow in the rule")
}

// leaseRules checks the rules with a lease against the section. l is nil without the section.
func (s *section) leaseRules(c *Config, l *Lease) {
	for i := range c.Rules {
		if c.Rules[i].Lease.Resource != "" && l == nil && !s.blamed(leaseName) {
			s.fault(s.find(fmt.Sprintf("rules[%d].%s", i, leaseName)), "there is no section lease",
				`write lease: {servers: ["eu-1.example.com:8081"]} at the top level`)
		}
	}
}

// hasLeaseRules reports whether a rule has a lease. With a source that is not known yet, there may be one.
func (r *reader) hasLeaseRules(c *Config) bool {
	return r.deferred || leased(c)
}

// leased reports whether a rule that is known now has a lease.
func leased(c *Config) bool {
	return slices.ContainsFunc(c.Rules, func(one guard.Rule) bool { return one.Lease.Resource != "" })
}

// leaseOfRules finds fields of the section lease that only the gRPC listener uses.
func (s *section) leaseOfRules() {
	for _, name := range [...]string{"length", "refresh", "holders", electionName} {
		if s.has(name) && !s.blamed("server") {
			s.fault(s.keyOf(name), "has no effect without the gRPC listener of headgate server",
				"remove it: the servers of the lease say it")
		}
	}
}
