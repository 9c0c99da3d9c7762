package keylimit

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// Write prints the limits of single keys for headgate ctl status. Without one it prints nothing.
func Write(w io.Writer, s *admin.Status) {
	if len(s.KeyLimits) == 0 {
		return
	}
	terminal.Rowf(w, "\nLIMIT OF A KEY\tRULE\tSET AT\tBY\tENDS\n")
	for i := range s.KeyLimits {
		l := &s.KeyLimits[i]
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\n", strings.Join(l.Limits, ", "), l.Rule, l.Since.Local().Format(time.DateTime),
			cmp.Or(l.By, "-"), ends(l))
	}
	terminal.Rowf(w, "\n%d in all; headgate ctl key limits prints the keys\n", s.KeyLimitsTotal)
}

// WriteList prints limits with their keys for headgate ctl key limits.
func WriteList(out io.Writer, all *admin.KeyLimits) error {
	if len(all.Limits) == 0 {
		_, err := fmt.Fprintln(out, "no key has limits of the run time")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "RULE\tVALUE\tLIMITS\tENDS\tBY\tREASON\n")
	for i := range all.Limits {
		l := &all.Limits[i]
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Rule, terminal.Printable(l.Value), strings.Join(l.Limits, ", "), ends(l),
			cmp.Or(l.By, "-"), cmp.Or(terminal.Printable(l.Reason), "-"))
	}
	return w.Flush()
}

func ends(l *admin.KeyLimited) string {
	at := l.Until.Local().Format(time.DateTime)
	if l.Everywhere {
		return at + ", in all instances"
	}
	return at + ", or with the process"
}

// WriteChange prints what headgate ctl key limit has done.
func WriteChange(out io.Writer, c *admin.KeyLimitChange) error {
	var b strings.Builder
	verb := "has"
	if c.DryRun {
		verb = "would have"
	}
	fmt.Fprintf(&b, "%s of rule %s %s %s, and had %s", terminal.Printable(c.Value), c.Rule, verb, strings.Join(c.After, ", "),
		strings.Join(c.Before, ", "))
	if c.Until != nil {
		fmt.Fprintf(&b, ", until %s", c.Until.Local().Format(time.DateTime))
	}
	if c.DryRun {
		b.WriteString(" (dry run: nothing was changed)")
	}
	b.WriteString("\n")
	if c.Parts > 1 {
		b.WriteString("the limits apply to each key with this value: the key of the rule has further parts\n")
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	switch {
	case c.DryRun:
	case c.Behind:
		b.WriteString("the source has the change, and this instance does not have it yet: see headgate ctl status\n")
	case c.Everywhere:
		b.WriteString("in all instances with the source\n")
	default:
		b.WriteString("in this instance alone: repeat the command for each instance\n")
	}
	if c.Undo != "" {
		fmt.Fprintf(&b, "undo: %s\n", c.Undo)
	}
	_, err := io.WriteString(out, b.String())
	return err //nolint:wrapcheck // because it is the writer's own error.
}
