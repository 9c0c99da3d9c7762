package config

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// WriteSummary tells in a few lines what a configuration does: where it listens,
// and for each rule whom it counts, against what, and what a key costs.
func (c *Config) WriteSummary(w io.Writer) error {
	together := "all or nothing"
	if c.Independent {
		together = "independent"
	}
	var b strings.Builder
	rules := "rules"
	if len(c.Rules) == 1 {
		rules = "rule"
	}
	fmt.Fprintf(&b, "%d %s, %s; store %s of %s\n", len(c.Rules), rules, together, c.Store, formatSize(c.MaxMemory))
	if c.Proxy.Upstream != nil {
		fmt.Fprintf(&b, "proxy %s to %s\n", c.Proxy.Listen, c.Proxy.Upstream)
	}
	fmt.Fprintf(&b, "admin %s, health %s\n", orOff(c.Admin.Listen), orOff(c.Admin.Health))
	if len(c.Rules) > 0 {
		b.WriteByte('\n')
		c.writeRules(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRules writes a table; a strings.Builder takes all that is written.
func (c *Config) writeRules(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "RULE\tMODE\tKEY\tALGORITHM\tLIMITS\tON EXCESS\tBYTES PER KEY\tKEYS THAT FIT")
	for i, need := range c.Needs() {
		r := &c.Rules[i]
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n",
			r.Name, r.Mode, keyText(r), r.Policies[0].Algorithm, limitsText(r), excessText(r), need.Bytes(), need.Keys)
	}
	_ = t.Flush()
}

// excessText tells what happens near a limit, above it, and far above it.
func excessText(r *guard.Rule) string {
	text := ""
	if r.Soft > 0 {
		text = fmt.Sprintf("soft %d%%, ", r.Soft)
	}
	x := &r.Exceed
	switch text += x.Action.String(); x.Action {
	case guard.Delay:
		text += " " + formatDuration(x.MaxWait)
	case guard.Degrade:
		text += " " + x.Header
		if x.Hard.Limit.Per > 0 {
			text += ", hard " + x.Hard.Limit.String()
		}
	default:
	}
	if r.Ban.For > 0 {
		text += fmt.Sprintf(", ban %s after %s", formatDuration(r.Ban.For), banPolicy(r, r.Policies).Limit)
	}
	return text
}

func keyText(r *guard.Rule) string {
	parts := make([]string, len(r.Key))
	for i, p := range r.Key {
		parts[i] = p.String()
	}
	return strings.Join(parts, "+")
}

func limitsText(r *guard.Rule) string {
	texts := make([]string, len(r.Policies))
	for i, p := range r.Policies {
		texts[i] = limitText(p)
	}
	text := strings.Join(texts, " ")
	if n := len(r.Overrides); n > 0 {
		text += fmt.Sprintf(" (%d overridden)", n)
	}
	return text
}

// limitText shows what differs from the algorithm's defaults.
func limitText(p headgate.Policy) string {
	text := p.Limit.String()
	if p.Limit.Burst > 0 {
		text += fmt.Sprintf(" burst %d", p.Limit.Burst)
	}
	return text
}

func orOff(address string) string {
	if address == "" {
		return "off"
	}
	return address
}
