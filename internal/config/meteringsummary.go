package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// writeMetering writes where usage is delivered.
func (c *Config) writeMetering(b *strings.Builder) {
	m := c.Metering
	if m == nil {
		return
	}
	fmt.Fprintf(b, "metering: journal %s of at most %s, synced each %s", m.Journal, field.FormatSize(m.MaxSize), m.Sync)
	if m.Events != nil {
		fmt.Fprintf(b, ", events to %s", withoutQuery(m.Events.URL))
		if m.Events.TokenFile != "" && strings.HasPrefix(strings.ToLower(m.Events.URL), "http:") {
			b.WriteString(" with a token that others in the network can read: use https")
		}
	}
	if m.Lines != nil {
		fmt.Fprintf(b, ", lines in %s", m.Lines.Folder)
	}
	if !slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Quota != "" }) {
		b.WriteString("; no rule has a quota, so there is nothing to meter")
	}
	b.WriteByte('\n')
}

// withoutQuery gives the scheme, host and path of an address, for people: the query may have a secret.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the endpoint"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
