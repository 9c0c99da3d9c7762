package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/throttle"
)

// errNoThrottle is the error of Throttle for an instance without one.
var errNoThrottle = errors.New("the throttle is off: add throttle: {concurrency: 16} to the configuration (docs/throttling.md)")

// Throttle prints the load of the throttle, as a table or as JSON. With every above 0, it prints again at
// that interval until ctx ends.
func (c *Instance) Throttle(ctx context.Context, every time.Duration, out io.Writer) error {
	for {
		text, err := c.query(ctx, http.MethodGet, statusPage)
		if err != nil {
			return err
		}
		var s admin.Status
		if err := c.decode(text, &s); err != nil {
			return err
		}
		if s.Throttle == nil {
			return fmt.Errorf("ctl: %s: %w", c.Admin, errNoThrottle)
		}
		if err := c.writeLoad(out, s.Throttle); err != nil || every <= 0 {
			return err
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

func (c *Instance) writeLoad(out io.Writer, s *admin.ThrottleStatus) error {
	if c.JSON {
		return json.NewEncoder(out).Encode(s) //nolint:wrapcheck // The writer is the caller's.
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	writeThrottle(w, s)
	estimated := ""
	if s.Mode == "shadow" {
		estimated = " (shadow: all figures are estimates)"
	}
	rowf(w, "\nCLASS\tQUEUED\tREFUSED\n")
	for i := range throttle.ClassCount {
		class := throttle.Class(i).String()
		rowf(w, "%s\t%d\t%d\n", class, s.Queued[class], s.RefusedByClass[class])
	}
	rowf(w, "\nqueued work %.0f ms%s, %s; predicted work %s\n", 1000*s.QueuedWorkSeconds, drains(s), estimated+rate(s), against(s))
	if s.AdvisedConcurrency > 0 {
		rowf(w, "auto_concurrency advises %s in flight\n", field.Counted(s.AdvisedConcurrency, "request"))
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
