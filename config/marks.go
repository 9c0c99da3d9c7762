package config

import (
	"fmt"
	"net/http"
	"strings"
)

// checkMarks finds headers that tell a service what was decided, and that rules
// read from requests. What clients send in them goes no further, so that nobody
// tells a service what he likes; then the service would not learn what the rules did.
func (r *reader) checkMarks(c *Config) {
	marks := map[string]string{} // With who reads them first.
	for i := range c.Rules {
		if name := c.Rules[i].Exceed.Header; name != "" {
			marks[name] = ""
		}
	}
	if len(marks) == 0 {
		return
	}
	c.readHeaders(func(name, format string, where ...any) {
		name = http.CanonicalHeaderKey(name)
		if by, mark := marks[name]; mark && by == "" {
			marks[name] = fmt.Sprintf(format, where...)
		}
	})
	for i := range c.Rules {
		name := c.Rules[i].Exceed.Header
		if by := marks[name]; by != "" {
			r.fault(r.find(fmt.Sprintf("rules[%d].on_exceed.header", i)),
				fmt.Sprintf("%s is read by %s, and what clients send in it would not reach the service", name, by),
				"use a header of your own, like X-Degraded")
		}
	}
}

// readHeaders gives each header that is read from requests, with the way to where
// the configuration says so.
func (c *Config) readHeaders(yield func(name, format string, where ...any)) {
	for i, name := range c.Identity.UserIPHeaders {
		yield(name, "identity.user_ip_headers[%d]", i)
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		for j, part := range r.Key {
			if name, ok := strings.CutPrefix(part.String(), "header:"); ok {
				yield(name, "rules[%d].key[%d]", i, j)
			}
		}
		for name := range r.Match.Headers {
			yield(name, "rules[%d].match.headers.%s", i, name)
		}
		if r.CostHeader != "" {
			yield(r.CostHeader, "rules[%d].cost", i)
		}
	}
}

// readShareHeaders gives each header that fair share reads from requests, with the way
// to where the configuration says so.
func (c *Config) readShareHeaders(yield func(name, path string)) {
	f := c.FairShare
	if f == nil {
		return
	}
	if name, ok := strings.CutPrefix(f.Client.String(), "header:"); ok {
		yield(name, "fair_share.client")
	}
	for name := range f.Match.Headers {
		yield(name, "fair_share.match.headers."+name)
	}
	if f.CostHeader != "" {
		yield(f.CostHeader, "fair_share.cost")
	}
	if f.IDHeader != "" {
		yield(f.IDHeader, "fair_share.count_once")
	}
}
