package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
)

// writeMetering writes where usage is delivered.
func (c *Config) writeMetering(b *strings.Builder) {
	m := c.Metering
	if m == nil {
		return
	}
	fmt.Fprintf(b, "metering: journal %s of at most %s, synced each %s", m.Journal, field.FormatSize(m.MaxSize), m.Sync)
	if m.Events != nil {
		fmt.Fprintf(b, ", events to %s", m.Events.URL)
	}
	if m.Lines != nil {
		fmt.Fprintf(b, ", lines in %s", m.Lines.Folder)
	}
	if !slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Quota != "" }) {
		b.WriteString("; no rule has a quota, so there is nothing to meter")
	}
	b.WriteByte('\n')
}
