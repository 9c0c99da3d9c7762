package throttle

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/throttle"
)

// Write prints the state of the throttle.
func Write(w io.Writer, s *admin.ThrottleStatus) {
	most := fmt.Sprintf("%d of %d", s.InFlight, s.Concurrency)
	if s.Concurrency == 0 {
		most = fmt.Sprintf("%d, %.0f of %.0f ms of CPU time", s.InFlight, 1000*s.WorkInFlightSeconds, 1000*s.CPUInFlightSeconds)
	}
	queued := map[string]uint64{}
	for class, n := range s.Queued {
		queued[class] = uint64(max(n, 0))
	}
	terminal.Rowf(w, "THROTTLE\tIN FLIGHT\tQUEUED\tTENANTS\tWAITED\tMEAN WAIT\tREFUSED\n")
	terminal.Rowf(w, "%s\t%s\t%s\t%d\t%d\t%.0f ms\t%s\n", s.Mode, most, terminal.ListCounts(queued), s.Tenants, s.Waited,
		1000*s.WaitSeconds/float64(max(s.Waited, 1)), terminal.ListCounts(s.Refused))
	if s.Hung {
		terminal.Rowf(w, "The service answers nothing: it gets one request at a time.\n")
	}
}

// WriteLoad prints the load for headgate ctl throttle.
func WriteLoad(out io.Writer, s *admin.ThrottleStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	Write(w, s)
	estimated := ""
	if s.Mode == "shadow" {
		estimated = " (shadow: all figures are estimates)"
	}
	terminal.Rowf(w, "\nCLASS\tQUEUED\tREFUSED\n")
	for i := range throttle.ClassCount {
		class := throttle.Class(i).String()
		terminal.Rowf(w, "%s\t%d\t%d\n", class, s.Queued[class], s.RefusedByClass[class])
	}
	terminal.Rowf(w, "\nqueued work %.0f ms%s, %s; predicted work %s\n", 1000*s.QueuedWorkSeconds, drains(s), estimated+rate(s), against(s))
	if s.AdvisedConcurrency > 0 {
		terminal.Rowf(w, "auto_concurrency advises %s in flight\n", field.Counted(s.AdvisedConcurrency, "request"))
	}
	return w.Flush() //nolint:wrapcheck // The writer is the caller's.
}

// drains tells how long the queued work takes.
func drains(s *admin.ThrottleStatus) string {
	if s.DrainRate <= 0 || s.QueuedWorkSeconds <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f ms to drain)", 1000*s.QueuedWorkSeconds/s.DrainRate)
}

func rate(s *admin.ThrottleStatus) string {
	if s.DrainRate <= 0 {
		return "drain rate not known yet"
	}
	return fmt.Sprintf("%.2f s of work end each second while requests are queued", s.DrainRate)
}

// against compares the predicted work with that of the answered requests.
func against(s *admin.ThrottleStatus) string {
	if s.WorkSeconds <= 0 {
		return "not compared yet"
	}
	return fmt.Sprintf("%.2f times the real one", s.PredictedWorkSeconds/s.WorkSeconds)
}
