package rules

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
)

// WriteBans prints bans for headgate ctl bans.
func WriteBans(out io.Writer, b *admin.Bans) error {
	if len(b.Bans) == 0 {
		_, err := fmt.Fprintln(out, "no bans")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "ID\tENDS IN\tRULE\tKEY\n")
	for _, entry := range b.Bans {
		name := entry.Rule
		if entry.Shadow {
			name += " (shadow)"
		}
		terminal.Rowf(w, "%s\t%s\t%s\t%s\n", cmp.Or(entry.ID, "-"), max(0, entry.Until.Sub(b.Now)).Round(time.Second), name, entry.Key)
	}
	if b.More {
		terminal.Rowf(w, "\nThe list is incomplete: the instance has more bans.\n")
	}
	return w.Flush()
}

// WriteTop prints keys for headgate ctl top.
func WriteTop(out io.Writer, t *admin.Top) error {
	since := time.Since(t.Since).Round(time.Second)
	if len(t.Keys) == 0 {
		_, err := fmt.Fprintf(out, "no refusals in the last %s\n", since)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "REFUSALS\tAT MOST TOO HIGH BY\tRULE\tKEY\n")
	for _, k := range t.Keys {
		terminal.Rowf(w, "%d\t%d\t%s\t%s\n", k.Refusals, k.Error, k.Rule, k.Key)
	}
	terminal.Rowf(w, "\n%s of all keys in the last %s.\n", field.Counted(t.Total, "refusal"), since)
	return w.Flush()
}
