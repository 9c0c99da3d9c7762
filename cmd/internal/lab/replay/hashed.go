package replay

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// hashing replaces the values that a configuration names by their hashes, for parts that a log has as hashes.
type hashing struct {
	parts  map[string]bool // whose values are hashes in the log
	hasher *logs.Hasher    // nil without a secret
	// lost are the values that cannot be found in the log.
	lost []string
}

// hash returns the hash of a value, or the value itself if the log has it in clear.
func (h *hashing) hash(owner string, p rule.Part, value string) string {
	if !h.parts[p.String()] {
		return value
	}
	literal, marked := strings.CutPrefix(value, "=")
	pattern := !marked && (strings.ContainsAny(value, "*{") || strings.HasPrefix(value, "re:"))
	if pattern || h.hasher == nil {
		fix := "--keys-secret-file hashes the value"
		if pattern {
			fix = "a pattern has no hash"
		}
		h.lost = append(h.lost, fmt.Sprintf("%s: the value %q of %s matches nothing, because the log has hashes: %s", owner, value, p, fix))
		return value
	}
	return h.hasher.Hash(p, literal)
}

// config returns a copy of a configuration with hashes.
func (h *hashing) config(c *config.Config) *config.Config {
	if len(h.parts) == 0 {
		return c
	}
	own := *c
	own.Exempt = h.matches("exempt", c.Exempt)
	own.Rules = slices.Clone(c.Rules)
	for i := range own.Rules {
		h.rule(&own.Rules[i])
	}
	own.Customers = slices.Clone(c.Customers)
	if quota := slices.IndexFunc(own.Rules, func(r guard.Rule) bool { return r.Quota != "" }); quota >= 0 {
		for i := range own.Customers {
			own.Customers[i].Name = h.hash("customers", own.Rules[quota].Key[0], own.Customers[i].Name)
		}
	}
	if c.FairShare != nil {
		share := *c.FairShare
		share.Match = h.match("fair_share", &share.Match)
		weights := maps.Clone(share.Weights)
		clear(weights)
		for _, name := range slices.Sorted(maps.Keys(share.Weights)) {
			weights[h.hash("fair_share", share.Client, name)] = share.Weights[name]
		}
		share.Weights = weights
		own.FairShare = &share
	}
	return &own
}

// rule hashes the values of a rule.
func (h *hashing) rule(r *guard.Rule) {
	owner := fmt.Sprintf("rule %q", r.Name)
	r.Match, r.Exempt = h.match(owner, &r.Match), h.matches(owner, r.Exempt)
	r.Overrides = slices.Clone(r.Overrides)
	for i := range r.Overrides {
		o := &r.Overrides[i]
		if value := h.hash(owner, r.Key[0], o.Value); value != o.Value {
			o.Value, o.Many = value, false
		}
	}
}

func (h *hashing) matches(owner string, all []rule.Match) []rule.Match {
	all = slices.Clone(all)
	for i := range all {
		all[i] = h.match(owner, &all[i])
	}
	return all
}

// match hashes the values of headers.
func (h *hashing) match(owner string, m *rule.Match) rule.Match {
	own := *m
	own.Headers = maps.Clone(m.Headers)
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		p, err := rule.ParsePart(headerPrefix + textproto.CanonicalMIMEHeaderKey(name))
		if value := m.Headers[name]; err == nil && value != "*" {
			own.Headers[name] = h.hash(owner, p, value)
		}
	}
	if m.Not != nil {
		not := h.match(owner, m.Not)
		own.Not = &not
	}
	return own
}
