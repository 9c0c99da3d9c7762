package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/app"
)

type sharesCommand struct {
	Watch bool          `help:"Print again and again until Ctrl-C, on a terminal in place; with --json a document a line."`
	Every time.Duration `help:"How often, with --watch; 1s unless told otherwise." default:"1s" placeholder:"TIME"`
}

// leastEvery bounds how often an instance is asked.
const leastEvery = 10 * time.Millisecond

const sharesPage = "/api/v1/shares"

// Validate refuses an --every that would ask without a pause.
func (s sharesCommand) Validate() error {
	if s.Every < leastEvery {
		return fmt.Errorf("--every is %s: write at least %s, like 1s", s.Every, leastEvery)
	}
	return nil
}

// Run prints the shares, as a table or as they came, once or until ctx ends.
func (s sharesCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	if !s.Watch {
		return show(ctx, c, sharesPage, stdout, writeShares)
	}
	w := &watch{ctl: c, out: stdout, errors: stderr, every: s.Every}
	if !c.JSON {
		w.window = terminalWindow(stdout)
	}
	return w.run(ctx)
}

// writeShares prints shares for people.
func writeShares(out io.Writer, s *app.Shares) error {
	if _, err := fmt.Fprintln(out, sharesHead(s)); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rowf(w, "CLIENT\tDEMAND\tSIZE\tBORROWED\tLENT\tSEEN\tADMITTED\tREFUSED\n")
	var total app.ClientShare
	for i := range s.Clients {
		c := &s.Clients[i]
		shareRow(w, printable(c.Client), c)
		total.Demand, total.Size = total.Demand+c.Demand, total.Size+c.Size
		total.Borrowed, total.Lent = total.Borrowed+c.Borrowed, total.Lent+c.Lent
		total.Seen, total.Admitted, total.Refused = total.Seen+c.Seen, total.Admitted+c.Admitted, total.Refused+c.Refused
	}
	shareRow(w, fmt.Sprintf("TOTAL of %d", len(s.Clients)), &total)
	return w.Flush()
}

func shareRow(w io.Writer, name string, c *app.ClientShare) {
	rowf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, c.Demand, c.Size, c.Borrowed, c.Lent, c.Seen, c.Admitted, c.Refused)
}

// sharesHead says what is shared, and how much of it the last cycle used.
func sharesHead(s *app.Shares) string {
	used := "there was no cycle before"
	if s.LastCapacity > 0 {
		used = fmt.Sprintf("the last used %d of %d (%.0f%%)", s.LastAdmitted, s.LastCapacity,
			100*float64(s.LastAdmitted)/float64(s.LastCapacity))
	}
	mode := s.Mode
	if mode == "shadow" {
		mode = "shadow (passthrough: nothing is refused)"
	}
	return fmt.Sprintf("cycle %d, capacity %d per %s, %s; %s; %s, %s",
		s.Cycle, s.Capacity, cycleOf(s.CycleSeconds), mode, used, s.Division, s.Reclaim)
}

// cycleOf writes a cycle's length as configurations do.
func cycleOf(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// printable gives a name with what is no printable character escaped, as in Go: a
// name is what a client says of itself.
func printable(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
