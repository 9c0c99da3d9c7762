package server

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// Undecidable finds what headgate server cannot decide: it answers, and does not learn how requests end.
func Undecidable(c *config.Config) error {
	var faults []error
	if c.Throttle != nil {
		err := errors.New("app: throttle needs the end of requests, which clients of headgate server do not tell: " +
			"leave it out, or protect the service with headgate proxy")
		faults = append(faults, &config.SettingError{Path: "throttle", Err: err})
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Mode != guard.Off && r.NeedsEnd() != "" {
			err := fmt.Errorf("app: rule %q has %s, which needs the end of requests, and clients of headgate server "+
				"do not tell it: leave it out, or decide the rule in headgate proxy", r.Name, r.NeedsEnd())
			faults = append(faults, &config.SettingError{Path: fmt.Sprintf("rules[%d].%s", i, r.NeedsEnd()), Err: err})
		}
		if r.Mode != guard.Off && r.ReadsBody() {
			err := fmt.Errorf("app: rule %q reads the bodies of requests, which headgate server does not see: leave out "+
				"match.model, match.json and such key parts, or decide the rule in headgate proxy", r.Name)
			faults = append(faults, &config.SettingError{Path: fmt.Sprintf("rules[%d]", i), Err: err})
		}
	}
	return errors.Join(faults...)
}
