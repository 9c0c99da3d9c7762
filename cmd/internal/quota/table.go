package quota

import (
	"encoding/csv"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// WriteMetering prints the state of metering, if it is on.
func WriteMetering(w io.Writer, s *admin.MeteringStatus) {
	if s == nil {
		return
	}
	terminal.Rowf(w, "\nMETERING\tOUTPUT\tDELIVERED\tPENDING\tOLDEST\tDROPPED\tSET ASIDE\tFAILURES\tERROR\n")
	for i := range s.Outputs {
		o := &s.Outputs[i]
		problem := o.Error
		if problem == "" {
			problem = s.Error
		}
		terminal.Rowf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n", terminal.Printable(s.Instance), o.Name, o.Delivered,
			o.Pending+uint64(max(0, s.Waiting)),
			time.Duration(o.OldestSeconds*float64(time.Second)).Round(time.Second), o.Dropped, o.SetAside, o.Failures,
			terminal.Printable(problem))
	}
	if s.Error != "" {
		terminal.Rowf(w, "%d records wait in memory for the journal: %s\n", s.Waiting, terminal.Printable(s.Error))
	}
	if s.Faults > 0 || s.Lost > 0 || s.Others > 0 {
		terminal.Rowf(w, "journal faults %d, changes lost %d, changes under others %d\n", s.Faults, s.Lost, s.Others)
	}
}

// Table gives the function that writes a page, and the one that writes the end.
func Table(out io.Writer, asCSV bool) (write func(*admin.Usage) error, end func() error) {
	if asCSV {
		w := csv.NewWriter(out)
		_ = w.Write([]string{
			"customer", "plan", "quota", "limit", "period", "algorithm", "used", "included", "soft", "hard", "after", "start", "end",
			"carried",
		}) // Flush returns the error.
		return func(u *admin.Usage) error { return writeUsageCSV(w, u) }, func() error {
			w.Flush()
			return w.Error()
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	terminal.Rowf(w, "CUSTOMER\tPLAN\tQUOTA\tLIMIT\tUSED\tINCLUDED\tHARD\tWINDOW\n")
	return func(u *admin.Usage) error { return writeUsage(w, u) }, w.Flush
}

func writeUsage(w *tabwriter.Writer, u *admin.Usage) error {
	for i := range u.Customers {
		customer := &u.Customers[i]
		plan := customer.Plan
		if customer.Raised {
			plan += " (raised)"
		}
		if len(customer.Limits) == 0 {
			terminal.Rowf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\n", terminal.Printable(customer.Customer), plan)
		}
		for j := range customer.Limits {
			l := &customer.Limits[j]
			terminal.Rowf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", terminal.Printable(customer.Customer), plan, l.Quota,
				l.Limit, l.Used, l.Included, l.Hard,
				window(l))
		}
	}
	return w.Flush()
}

// window tells the present window of a limit, and whether its count began before.
func window(l *admin.LimitUsage) string {
	if l.Start == nil || l.End == nil {
		return "-"
	}
	text := l.Start.UTC().Format(time.RFC3339) + " to " + l.End.UTC().Format(time.RFC3339)
	if l.Carried {
		text += " (may have units from before: the calendar has changed)"
	}
	return text
}

func writeUsageCSV(w *csv.Writer, u *admin.Usage) error {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i := range u.Customers {
		customer := &u.Customers[i]
		for j := range customer.Limits {
			l := &customer.Limits[j]
			start, end := "", ""
			if l.Start != nil && l.End != nil {
				start, end = l.Start.UTC().Format(time.RFC3339), l.End.UTC().Format(time.RFC3339)
			}
			err := w.Write([]string{
				customer.Customer, customer.Plan, l.Quota, l.Limit, l.Period, l.Algorithm, number(l.Used), number(l.Included),
				number(l.Soft),
				number(l.Hard), l.After, start, end, strconv.FormatBool(l.Carried),
			})
			if err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}
