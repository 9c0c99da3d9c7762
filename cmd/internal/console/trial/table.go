package trial

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
)

// Write prints trials for headgate ctl status. Without one it prints nothing.
func Write(w io.Writer, trials []admin.Trial) {
	if len(trials) == 0 {
		return
	}
	terminal.Rowf(w, "\nTRIAL\tRULE\tLIMITS\tREQUESTS\tWOULD REFUSE\tRULE REFUSES\tENDS\n")
	for i := range trials {
		t := &trials[i]
		terminal.Rowf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", t.Name, t.Rule, strings.Join(t.Limits, ", "), t.Tried.Decided,
			percent(t.Tried.Part), percent(t.Present.Part), t.Until.Local().Format(time.DateTime))
	}
}

// WriteList prints trials with their figures for headgate ctl trial list.
func WriteList(w io.Writer, all *admin.Trials) error {
	if len(all.Trials) == 0 {
		_, err := fmt.Fprintln(w, "no trials")
		return err
	}
	for i := range all.Trials {
		t := &all.Trials[i]
		if _, err := fmt.Fprintf(w, "%s, until %s\n%s", t.Name, t.Until.Local().Format(time.DateTime), figures(t)); err != nil {
			return err
		}
	}
	return nil
}

// WriteStarted prints a trial that has begun.
func WriteStarted(w io.Writer, t *admin.Trial) error {
	var b strings.Builder
	switch {
	case t.DryRun:
		fmt.Fprintf(&b, "dry run: %s would try %s beside %s of rule %s for %s\n", t.Name, strings.Join(t.Tried.Limits, ", "),
			strings.Join(t.Present.Limits, ", "), t.Rule, t.Until.Sub(t.Since).Round(time.Second))
	default:
		fmt.Fprintf(&b, "%s tries %s beside %s of rule %s until %s\n", t.Name, strings.Join(t.Tried.Limits, ", "),
			strings.Join(t.Present.Limits, ", "), t.Rule, t.Until.Local().Format(time.DateTime))
	}
	if len(t.LeavesOut) > 0 {
		fmt.Fprintf(&b, "the trial does without %s of the rule\n", strings.Join(t.LeavesOut, ", "))
	}
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if t.Undo != "" {
		fmt.Fprintf(&b, "figures: headgate ctl trial list\nundo: %s\n", t.Undo)
	}
	_, err := io.WriteString(w, b.String())
	return err //nolint:wrapcheck // because it is the writer's own error.
}

// WriteStopped prints a trial that has ended, with its last figures.
func WriteStopped(w io.Writer, t *admin.Trial) error {
	said := t.Name + " has ended\n"
	if t.DryRun {
		said = "dry run: " + t.Name + " would end\n"
	}
	said += figures(t)
	if t.Undo != "" {
		said += "undo: " + t.Undo + "\n"
	}
	_, err := io.WriteString(w, said)
	return err //nolint:wrapcheck // because it is the writer's own error.
}

// figures say what a trial has shown.
func figures(t *admin.Trial) string {
	if t.Paused != "" {
		return "  decides on nothing: " + terminal.Printable(t.Paused) + "\n"
	}
	p, q := &t.Present, &t.Tried
	said := fmt.Sprintf("  now %s refuses %s (%d, %.1f/s), %s would refuse %s (%d, %.1f/s) of %s in %s\n", strings.Join(p.Limits, ", "),
		percent(p.Part), p.Refused, p.RefusedRate, strings.Join(q.Limits, ", "), percent(q.Part), q.Refused, q.RefusedRate,
		field.Counted(q.Decided, "request"), time.Duration(t.Seconds*float64(time.Second)).Round(time.Second))
	if p.Otherwise > 0 {
		said += fmt.Sprintf("  rule %s refused %s for other reasons than its limits, such as bans\n", t.Rule,
			field.Counted(p.Otherwise, "request"))
	}
	return said
}

// percent gives a part with one decimal below 10 %.
func percent(part float64) string {
	if part < 0.1 {
		return fmt.Sprintf("%.1f %%", part*100)
	}
	return fmt.Sprintf("%.0f %%", part*100)
}
