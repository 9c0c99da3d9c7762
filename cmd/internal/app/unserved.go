package app

import (
	"slices"

	"github.com/headgate/headgate/internal/config"
)

// unserved lists the sections of a configuration that the command does not serve: one file may be for
// the proxy and for the server.
func unserved(c *config.Config, server bool) []string {
	var sections []string
	if server {
		if c.Proxy.Upstream != nil {
			sections = append(sections, "proxy")
		}
		return sections
	}
	if c.Server != nil {
		sections = append(sections, "server")
	}
	if len(c.Domains) > 0 {
		sections = append(sections, "domains")
	}
	return sections
}

// warnUnserved logs the sections of next that the command does not serve, if was did not have them. was
// may be nil.
func (i *Instance) warnUnserved(was, next *config.Config) {
	const byServer, byProxy = "a section of the configuration has no effect in headgate proxy: headgate server serves it",
		"a section of the configuration has no effect in headgate server: headgate proxy serves it"
	server := i.options.Server
	var before []string
	if was != nil {
		before = unserved(was, server)
	}
	for _, section := range unserved(next, server) {
		switch {
		case slices.Contains(before, section):
		case server:
			i.options.Log.Warn(byProxy, "section", section)
		default:
			i.options.Log.Warn(byServer, "section", section)
		}
	}
}
