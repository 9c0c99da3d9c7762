package why

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/guard"
)

// columns is the width of a terminal that a table fits into.
const columns = 80

// WriteWhy prints an explanation for headgate ctl why.
func WriteWhy(out io.Writer, w *admin.Why) error {
	var b strings.Builder
	wrap(&b, "", w.Sentence)
	b.WriteByte('\n')
	for i := range w.Steps {
		writeStep(&b, i+1, &w.Steps[i])
	}
	for _, text := range w.Unknown {
		b.WriteByte('\n')
		wrap(&b, "", "Not known: "+text+".")
	}
	_, err := io.WriteString(out, b.String())
	return err //nolint:wrapcheck // because it is the writer's own error.
}

// writeStep prints a step. A > marks the one that decides.
func writeStep(b *strings.Builder, n int, s *admin.WhyStep) {
	mark := " "
	if s.Decides {
		mark = ">"
	}
	head := strings.ReplaceAll(s.Kind, "_", " ")
	if s.Name != "" && s.Name != s.Kind {
		head += " " + s.Name
	}
	if s.Mode != "" && s.Mode != guard.Enforce.String() {
		head += " (" + s.Mode + ")"
	}
	wrap(b, "     ", fmt.Sprintf("%s%2d. %s: %s", mark, n, head, s.Text))
	detail := func(word, text string) {
		if text != "" {
			wrap(b, "                ", fmt.Sprintf("     %-10s %s", word, text))
		}
	}
	detail("key", s.Key)
	if c := s.Customer; c != nil {
		entry := "no entry"
		if c.Entry {
			entry = "an entry"
		}
		detail("customer", fmt.Sprintf("%q, plan %s; %s", c.Name, cmp.Or(c.Plan, "-"), entry))
		detail("note", c.Note)
	}
	detail("override", s.Override)
	detail("lease", s.Lease)
	if s.Cost > 1 {
		detail("cost", fmt.Sprint(s.Cost))
	}
	for i := range s.Limits {
		detail(limitText(&s.Limits[i]))
	}
	if f := s.InFlight; f != nil {
		detail("in flight", fmt.Sprintf("%d of %d", f.Used, f.Limit))
	}
	if h := s.Share; h != nil {
		detail("share", fmt.Sprintf("default %d, now %d of %d units in %s; %s used %d; next cycle in %s", h.Default, h.Size, h.Capacity,
			seconds(h.Cycle), haveClients(h.Clients), h.Used, seconds(h.Ends)))
	}
	if s.Ban != nil {
		detail("ban id", s.Ban.ID)
	}
	for _, text := range s.Unknown {
		detail("not known", text)
	}
	for _, a := range s.Actions {
		detail("do", a.Text+":")
		fmt.Fprintf(b, "                  %s\n", terminal.Printable(a.Command)) // Whole, to be copied.
	}
}

// limitText gives a limit, and what is used of it.
func limitText(l *admin.KeyLimit) (word, text string) {
	text = fmt.Sprintf("%s, %s: %d used, %d left", l.Limit, l.Algorithm, l.Used, l.Remaining)
	switch {
	case l.Never:
		text += ", and it admits nothing"
	case l.Remaining <= 0 && l.NextSeconds > 0:
		text += ", next in " + seconds(l.NextSeconds)
	}
	if l.FullSeconds > 0 {
		text += ", all back in " + seconds(l.FullSeconds)
	}
	return "limit", text
}

func haveClients(n int) string {
	if n == 1 {
		return "1 client has"
	}
	return fmt.Sprintf("%d clients have", n)
}

func seconds(s float64) string { return explain.Span(time.Duration(s * float64(time.Second))) }

// wrap writes a paragraph in lines of at most 80 columns, where words allow it. Lines after the first begin with indent. Clients choose
// some of the words, so all are made printable.
func wrap(b *strings.Builder, indent, text string) {
	text = terminal.Printable(text)
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	width := terminal.Width()
	line := lead
	for i, word := range strings.Split(text[len(lead):], " ") {
		switch {
		case i == 0:
			line += word
		case width.StringWidth(line)+1+width.StringWidth(word) <= columns:
			line += " " + word
		default:
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent + word
		}
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
