package refusals

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/internal/config/field"
)

// The columns of a table of 80.
const (
	ruleColumns = 16
	wordColumns = 24
)

// Write prints refusals for headgate ctl refusals, the newest first.
func Write(out io.Writer, all *admin.Refusals) error {
	if len(all.Refusals) == 0 {
		since := ""
		if all.Since != nil {
			since = " since " + all.Since.Format(time.RFC3339)
		}
		_, err := fmt.Fprintf(out, "no such refusals%s\n", since)
		return err //nolint:wrapcheck // because it is the writer's own error.
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "AGO\tRULE\tREASON\tKEY\tREQUEST\n")
	for i := range all.Refusals {
		r := &all.Refusals[i]
		name := terminal.Shorten(terminal.Printable(r.Rule), ruleColumns)
		if r.Shadow {
			name += " (shadow)"
		}
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\n", max(0, all.Now.Sub(r.At)).Round(time.Second), name, r.Reason,
			terminal.Shorten(terminal.Printable(r.Key), wordColumns),
			terminal.Shorten(terminal.Printable(r.Method+" "+r.Path), wordColumns))
	}
	if all.Skipped > 0 {
		terminal.Rowf(w, "\n%s not kept: more than %d in a second.\n", field.Counted(int64(all.Skipped), "refusal"), perSecond)
	}
	return w.Flush() //nolint:wrapcheck // because it is the writer's own error.
}

// WriteOne prints a refusal for headgate ctl why --request-id.
func WriteOne(out io.Writer, r *admin.Refusal) error {
	how := "was refused by " + r.Rule
	if r.Shadow {
		how = "would have been refused by " + r.Rule + " (shadow)"
	}
	text := fmt.Sprintf("%s: %s %s%s %s on instance %s: %s", r.At.Format(time.RFC3339), r.Method, r.Host, r.Path, how, r.Instance, r.Reason)
	if r.RetrySeconds > 0 {
		text += ", again in " + explain.Span(time.Duration(r.RetrySeconds*float64(time.Second)))
	}
	lines := ""
	if r.Key != "" {
		lines = "key       " + terminal.Printable(r.Key) + "\n"
	}
	_, err := fmt.Fprintf(out, "%s\n%srequest   %s\ndecision  %s\nremaining %d\n\n", terminal.Printable(text), lines,
		terminal.Printable(r.RequestID), r.Decision, r.Remaining)
	return err //nolint:wrapcheck // because it is the writer's own error.
}
