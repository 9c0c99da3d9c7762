package config

import (
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// InMemory returns a copy of the configuration for a store in memory, without prefetch and without
// fallback local. Use it to try rules out: it counts the same limits.
func (c *Config) InMemory() *Config {
	own := *c
	own.Store, own.Shared, own.Prefetch, own.LocalShare, own.prefetch = memoryWord, nil, Prefetch{}, 0, nil
	own.Fallback = notLocal(c.Fallback)
	own.Rules = slices.Clone(c.Rules)
	for i := range own.Rules {
		r := &own.Rules[i]
		r.Fallback, r.Policies = notLocal(r.Fallback), withoutHold(r.Policies)
		r.Overrides = slices.Clone(r.Overrides)
		for j := range r.Overrides {
			r.Overrides[j].Policies = withoutHold(r.Overrides[j].Policies)
		}
	}
	own.Domains = slices.Clone(c.Domains)
	for i := range own.Domains {
		own.Domains[i].Fallback = notLocal(own.Domains[i].Fallback)
	}
	return &own
}

func notLocal(f guard.Fallback) guard.Fallback {
	if f == guard.FallbackLocal {
		return guard.FallbackDeny
	}
	return f
}

// withoutHold returns the policies without Hold and Batch.
func withoutHold(policies []headgate.Policy) []headgate.Policy {
	own := slices.Clone(policies)
	for i := range own {
		own[i].Hold, own[i].Batch = 0, 0
	}
	return own
}
