package config

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
)

// WriteDomainTable writes a table of all limits of the domains.
func WriteDomainTable(w io.Writer, domains []guard.Domain) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprint(t, "DOMAIN\tDESCRIPTOR\tMODE\tALGORITHM\tLIMITS\n")
	for i := range domains {
		d := &domains[i]
		name := shown(d.Name)
		if len(d.Descriptors) == 0 {
			_, _ = fmt.Fprintf(t, "%s\t-\t-\t-\t-\n", name)
		}
		writeLeaves(t, name, "", d.Descriptors)
	}
	return t.Flush()
}

// writeLeaves writes the limits of one level and of the levels below.
func writeLeaves(t *tabwriter.Writer, name, above string, all []guard.Descriptor) {
	for i := range all {
		d := &all[i]
		path := above + shown(d.Key)
		switch {
		case d.Literal: // The mark distinguishes the value from a wildcard.
			path += "==" + shown(d.Value)
		case d.Value != "":
			path += "=" + shown(d.Value)
		}
		switch l := d.Leaf; {
		case l == nil && len(d.Descriptors) == 0:
			_, _ = fmt.Fprintf(t, "%s\t%s\t-\t-\tallowed\n", name, path)
		case l == nil:
		case l.Unlimited:
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t-\tunlimited\n", name, path, l.Mode)
		default:
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", name, path, l.Mode, l.Policies[0].Algorithm, leafText(l))
		}
		writeLeaves(t, name, path+" ", d.Descriptors)
	}
}

// leafText returns the limits of a leaf in one line.
func leafText(l *guard.Leaf) string {
	if l.Unlimited {
		return "unlimited"
	}
	texts := make([]string, len(l.Policies))
	for i, p := range l.Policies {
		texts[i] = field.FormatLimit(p)
	}
	return strings.Join(texts, ", ")
}

// shown returns a text of a file for a table, with a bounded length.
func shown(text string) string {
	if len(text) > quoteLength {
		text = strings.ToValidUTF8(text[:quoteLength], "") + "..."
	}
	return visible([]rune(strings.ReplaceAll(text, "\t", "?")))
}
