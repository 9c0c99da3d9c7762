package rules

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/merge"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
)

// WriteBansOf prints the bans of several instances, each with the instances that list it.
func WriteBansOf(out io.Writer, answers []admin.From[admin.Bans]) error {
	bans := merge.OfBans(answers)
	if len(bans.Bans) == 0 {
		_, err := fmt.Fprintln(out, "no bans")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "ID\tENDS IN\tRULE\tKEY\tINSTANCE\n")
	for _, b := range bans.Bans {
		name := b.Rule
		if b.Shadow {
			name += " (shadow)"
		}
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(b.ID, "-"), max(0, b.Until.Sub(bans.Now)).Round(time.Second), name, b.Key,
			namesOf(b.Instances, len(answers)))
	}
	if bans.More {
		terminal.Rowf(w, "\nThe list is incomplete: an instance has more bans.\n")
	}
	return w.Flush()
}

// namesOf lists instances, or says that they are all.
func namesOf(names []string, all int) string {
	if len(names) == all {
		return "all"
	}
	return strings.Join(names, ", ")
}

// WriteTopOf prints the n keys with the most refusals of several instances, each with the refusals of its instances.
func WriteTopOf(out io.Writer, answers []admin.From[admin.Top], n int) error {
	top := merge.OfTop(answers, n)
	since := time.Since(top.Since).Round(time.Second)
	if len(top.Keys) == 0 {
		_, err := fmt.Fprintf(out, "no refusals in the last %s\n", since)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "REFUSALS\tAT MOST TOO HIGH BY\tRULE\tKEY\tINSTANCE\n")
	for _, k := range top.Keys {
		var by []string
		for _, p := range k.By {
			by = append(by, fmt.Sprintf("%s %d", p.Instance, p.N))
		}
		terminal.Rowf(w, "%d\t%d\t%s\t%s\t%s\n", k.Refusals, k.Error, k.Rule, k.Key, strings.Join(by, ", "))
	}
	terminal.Rowf(w, "\n%s of all keys in the last %s, in %s.\n", field.Counted(top.Total, "refusal"), since,
		field.Counted(len(answers), "instance"))
	return w.Flush()
}
