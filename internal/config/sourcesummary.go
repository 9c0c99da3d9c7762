package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/config/source"
)

// writeSource writes the source and its bounds. check reads the file alone, so it says what it did not check.
func (c *Config) writeSource(b *strings.Builder) {
	if c.Source == nil {
		return
	}
	fmt.Fprintf(b, "\nsource %s %s: at most %d rules, plans and customers, %s each", c.Source.Kind(), c.Source.Place(), source.MaxObjects,
		field.FormatSize(source.MaxText))
	if h := c.Source.HTTP; h != nil {
		fmt.Fprintf(b, "; read every %s within %s", field.FormatDuration(h.Interval), field.FormatDuration(h.Timeout))
	}
	b.WriteString("\n")
	if c.Source.Cache != "" {
		fmt.Fprintf(b, "cache %s\n", c.Source.Cache)
	} else {
		b.WriteString("no cache: an instance that starts without the source is not ready until it answers\n")
	}
	b.WriteString("before the source has answered, without a usable cache: ")
	if c.Source.WithoutState == AllowWithoutState {
		b.WriteString("rules that only the source has limit nothing, and requests with an unknown plan are refused with 503, " +
			"plan_missing\n")
	} else {
		b.WriteString("every request is refused with 503, source_unavailable or plan_missing\n")
	}
	b.WriteString("not checked here: plans and quotas that only the source has\n")
}
