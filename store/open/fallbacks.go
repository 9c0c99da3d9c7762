package open

import (
	"strings"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
)

// nameFallbacks keeps the names of the fallbacks of c for the log. A reload may change them.
func (s *Opened) nameFallbacks(c *config.Config) {
	names := fallbackNames(c)
	s.fallbacks.Store(&names)
}

// fallbackNames gives the names of the fallbacks that decide while a server of the store does
// not answer.
func (s *Opened) fallbackNames() string { return *s.fallbacks.Load() }

// fallbackNames gives the fallbacks of the rules, each once, as "deny,allow"; "none" without
// rules.
func fallbackNames(c *config.Config) string {
	var used []string
	for _, f := range guard.Fallbacks() {
		for i := range c.Rules {
			if c.Rules[i].Fallback == f {
				used = append(used, f.String())
				break
			}
		}
	}
	if len(used) == 0 {
		return "none"
	}
	return strings.Join(used, ",")
}
