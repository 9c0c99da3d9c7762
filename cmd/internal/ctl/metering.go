package ctl

import (
	"io"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// writeMetering prints the state of metering, if it is on.
func writeMetering(w io.Writer, s *admin.MeteringStatus) {
	if s == nil {
		return
	}
	rowf(w, "\nMETERING\tOUTPUT\tDELIVERED\tPENDING\tOLDEST\tDROPPED\tSET ASIDE\tFAILURES\tERROR\n")
	for i := range s.Outputs {
		o := &s.Outputs[i]
		problem := o.Error
		if problem == "" {
			problem = s.Error
		}
		rowf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n", printable(s.Instance), o.Name, o.Delivered, o.Pending+uint64(max(0, s.Waiting)),
			time.Duration(o.OldestSeconds*float64(time.Second)).Round(time.Second), o.Dropped, o.SetAside, o.Failures, printable(problem))
	}
	if s.Error != "" {
		rowf(w, "%d records wait in memory for the journal: %s\n", s.Waiting, printable(s.Error))
	}
	if s.Faults > 0 || s.Lost > 0 || s.Others > 0 {
		rowf(w, "journal faults %d, changes lost %d, changes under others %d\n", s.Faults, s.Lost, s.Others)
	}
}
