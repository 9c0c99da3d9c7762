package ctl

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// writeSource prints the state of a source, if there is one, and the changes that are held back.
func writeSource(w io.Writer, s *admin.SourceStatus) {
	if s == nil {
		return
	}
	age := "-"
	if s.AgeSeconds != nil {
		age = time.Duration(*s.AgeSeconds * float64(time.Second)).Round(time.Second).String()
	}
	rowf(w, "\nSOURCE\tSTATE\tREVISION\tAGE\tRULES\tPLANS\tCUSTOMERS\tHELD BACK\n")
	rowf(w, "%s %s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", s.Kind, printable(s.Place), s.State, printable(s.Revision), age, s.Rules, s.Plans,
		s.Customers, s.HeldCount)
	if s.Failure != "" {
		rowf(w, "the source cannot be read: %s\n", printable(s.Failure))
	}
	if s.Cache != nil && s.Cache.Failure != "" {
		rowf(w, "the cache cannot be used: %s\n", printable(s.Cache.Failure))
	}
	if len(s.Held) == 0 {
		return
	}
	rowf(w, "\nHELD BACK\tSINCE\tAT\tPROBLEM\tFIX\n")
	for i := range s.Held {
		h := &s.Held[i]
		rowf(w, "%s\t%s\t%s\t%s\t%s\n", printable(strings.Join(h.Objects, ", ")), h.Since.Format(time.DateTime), printable(h.At),
			printable(h.Problem), printable(h.Fix))
	}
	if more := s.HeldCount - len(s.Held); more > 0 {
		rowf(w, "%s\n", fmt.Sprintf("and %d more", more))
	}
}
