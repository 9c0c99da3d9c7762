package rules

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// WriteKey prints a key for headgate ctl key get.
func WriteKey(out io.Writer, k *admin.Key) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "key\t%s\n", terminal.Printable(k.Key))
	if k.Mode != guard.Enforce.String() {
		terminal.Rowf(w, "mode\t%s: the rule refuses nothing\n", k.Mode)
	}
	if k.Override != "" {
		terminal.Rowf(w, "override\t%s%s\n", terminal.Printable(k.Override), unlimited(k))
	}
	if k.LimitsFrom {
		terminal.Rowf(w, "limits_from\ta request may state another limit: the limits below are those of requests that state none\n")
	}
	terminal.Rowf(w, "ban\t%s\n", banText(k))
	if k.EarlierBans > 0 {
		terminal.Rowf(w, "earlier bans\t%d: the next ban is longer\n", k.EarlierBans)
	}
	if err := w.Flush(); err != nil {
		return err //nolint:wrapcheck // because it is the writer's own error.
	}
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "LIMIT\tALGORITHM\tUSED\tREMAINING\tNEXT UNIT\tALL UNITS\n")
	for i := range k.Limits {
		l := &k.Limits[i]
		next := inTime(l.NextSeconds)
		if l.Never {
			next = "never"
		}
		terminal.Rowf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", l.Limit, l.Algorithm, l.Used, l.Remaining, next, inTime(l.FullSeconds))
	}
	if s := k.InFlight; s != nil {
		terminal.Rowf(w, "in flight\t\t%d\t%d\t\t\n", s.Used, max(0, s.Limit-s.Used))
	}
	return w.Flush() //nolint:wrapcheck // because it is the writer's own error.
}

// unlimited says that an override lets all requests of the key pass.
func unlimited(k *admin.Key) string {
	if len(k.Limits) > 0 || k.InFlight != nil || k.LimitsFrom {
		return ""
	}
	return ": unlimited, so the rule neither counts nor refuses the key"
}

// inTime gives a time from now on.
func inTime(seconds float64) string {
	if seconds <= 0 {
		return "now"
	}
	d := time.Duration(seconds * float64(time.Second))
	if d >= time.Minute {
		return "in " + d.Round(time.Second).String()
	}
	return "in " + max(d.Round(time.Millisecond), time.Millisecond).String()
}

// banText says until when and why a key is banned.
func banText(k *admin.Key) string {
	b := k.Ban
	if b == nil {
		return "none"
	}
	why := "by the rule"
	if b.Operator {
		why = "by an operator"
	}
	if b.Reason != "" {
		why += ": " + terminal.Printable(b.Reason)
	}
	return fmt.Sprintf("until %s (%s), %s", b.Until.Format(time.RFC3339), inTime(b.Until.Sub(k.Now).Seconds()), why)
}

// WriteKeyChange prints what headgate ctl key reset, ban or unban has done.
func WriteKeyChange(out io.Writer, action string, k *admin.Key) error {
	name := terminal.Printable(k.Key)
	said := ""
	switch {
	case action == "reset":
		for i := range k.Limits {
			l := &k.Limits[i]
			used := field.Counted(l.Used, "unit")
			said += fmt.Sprintf("%s: %s of %s %s used, and all are back%s\n", name, used, l.Limit, were(l.Used), dry(k))
		}
		if len(k.Limits) == 0 {
			said += fmt.Sprintf("%s: has no limits, so nothing is to reset%s\n", name, dry(k))
		}
		if k.Ban != nil {
			said += fmt.Sprintf("%s: still banned until %s: headgate ctl key unban ends the ban\n", name, k.Ban.Until.Format(time.RFC3339))
		}
	case action == "ban" && k.DryRun:
		said = fmt.Sprintf("%s: would be banned; ban now: %s\n", name, banText(k))
	case action == "ban":
		said = fmt.Sprintf("%s: banned until %s, with the id %s\n", name, k.Ban.Until.Format(time.RFC3339), k.ID)
	case k.Ban == nil:
		said = fmt.Sprintf("%s: was not banned; its attempts are reset%s\n", name, dry(k))
	default:
		said = fmt.Sprintf("%s: the ban until %s has ended%s\n", name, k.Ban.Until.Format(time.RFC3339), dry(k))
	}
	said += reach(action, k)
	if k.Undo != "" {
		said += "undo: " + terminal.Printable(k.Undo) + "\n"
	}
	_, err := io.WriteString(out, said)
	return err //nolint:wrapcheck // because it is the writer's own error.
}

func were(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func dry(k *admin.Key) string {
	if k.DryRun {
		return " (dry run: nothing was changed)"
	}
	return ""
}

// reach says in which instances a change has effect.
func reach(action string, k *admin.Key) string {
	switch {
	case k.DryRun:
		return ""
	case !k.Shared:
		return "in this instance alone: its store is its memory\n"
	case action == "ban":
		return "in all instances with the same store, within a second\n"
	case k.Ahead && action == "reset":
		return "in all instances with the same store; another one may repeat a refusal for one more second, and spend units that " +
			"it has prefetched\n"
	default:
		return "in all instances with the same store; another one may repeat a refusal for one more second\n"
	}
}
