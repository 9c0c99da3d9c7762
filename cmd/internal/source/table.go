package source

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// Write prints the state of a source, if there is one, and the changes that are held back.
func Write(w io.Writer, s *admin.SourceStatus) {
	if s == nil {
		return
	}
	age := "-"
	if s.AgeSeconds != nil {
		age = time.Duration(*s.AgeSeconds * float64(time.Second)).Round(time.Second).String()
	}
	terminal.Rowf(w, "\nSOURCE\tSTATE\tREVISION\tAGE\tRULES\tPLANS\tCUSTOMERS\tHELD BACK\n")
	terminal.Rowf(w, "%s %s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", s.Kind, terminal.Printable(s.Place), s.State,
		terminal.Printable(s.Revision), age, s.Rules, s.Plans,
		s.Customers, s.HeldCount)
	if s.Failure != "" {
		terminal.Rowf(w, "the source cannot be read: %s\n", terminal.Printable(s.Failure))
	}
	if s.Cache != nil && s.Cache.Failure != "" {
		terminal.Rowf(w, "the cache cannot be used: %s\n", terminal.Printable(s.Cache.Failure))
	}
	if len(s.Held) == 0 {
		return
	}
	terminal.Rowf(w, "\nHELD BACK\tSINCE\tAT\tPROBLEM\tFIX\n")
	for i := range s.Held {
		h := &s.Held[i]
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\n", terminal.Printable(strings.Join(h.Objects, ", ")),
			h.Since.Format(time.DateTime), terminal.Printable(h.At),
			terminal.Printable(h.Problem), terminal.Printable(h.Fix))
	}
	if more := s.HeldCount - len(s.Held); more > 0 {
		terminal.Rowf(w, "%s\n", fmt.Sprintf("and %d more", more))
	}
}
