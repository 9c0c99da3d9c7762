package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
)

// WithDomains returns a copy of c that has more domains, as a source of them has given: a folder, or a
// management server. The error joins the reasons why c cannot have them.
func (c *Config) WithDomains(more []guard.Domain) (*Config, error) {
	own := *c
	own.Domains = slices.Concat(c.Domains, more)
	named := map[string]bool{}
	var faults []error
	for i := range own.Domains {
		name := own.Domains[i].Name
		if named[name] {
			faults = append(faults, fmt.Errorf(
				"config: the domain %s is there twice: remove it from the source or from the file", quote(name)))
		}
		named[name] = true
	}
	none := func(string) bool { return false }
	for _, f := range slices.Concat(check.Policies(c.Rules, own.Domains), check.Capacity(c.Rules, own.Domains, c.memory(), none)) {
		faults = append(faults, fmt.Errorf("config: %s: %s: %s", f.Path, f.Problem, f.Fix))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &own, nil
}

// FollowsSource says that domains of any algorithm can come from a source, so that the store in memory
// reserves room for all of them.
func (c *Config) FollowsSource() *Config {
	own := *c
	own.sourced = true
	return &own
}
