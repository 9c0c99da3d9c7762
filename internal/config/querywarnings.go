package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// QueryWarnings tells which rules for queries of a server count by what Envoy's rate limit service cannot give. Such rules are valid:
// other listeners of the server give every part. There is at most one text, which names three rules.
func (c *Config) QueryWarnings() []string {
	if c.Server == nil || c.Server.GRPC.Address == "" && c.Server.HTTP.Address == "" {
		return nil
	}
	var named []string
	n := 0
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Mode == guard.Off || !r.Match.ForQueries() || !slices.ContainsFunc(r.Key, rule.Part.BeyondQueries) {
			continue
		}
		if n++; n <= mostNames {
			named = append(named, quote(r.Name))
		}
	}
	if n == 0 {
		return nil
	}
	text := "rule " + strings.Join(named, ", ")
	if n > mostNames {
		text += fmt.Sprintf(" and %d more", n-mostNames)
	}
	return []string{text + ": Envoy's rate limit service gives no part of a key but descriptors, and refuses the queries " +
		"that an enforced rule " +
		"matches: count by descriptor:NAME, or ask over headgate.v1 or POST /v1/decide"}
}
