package ctl

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config/field"
)

// Usage says what to print about the used units.
type Usage struct {
	// Customer is one customer; "" is all that have an entry.
	Customer string
	// From and To select the present windows that overlap a time; "" means no bound.
	From, To string
	// CSV prints a line with fields for each limit.
	CSV bool
}

// usagePage is the highest number of customers that an instance gives at a time.
const usagePage = "500"

// Usage prints what customers have used in the present windows, page by page. With JSON, each page is a document.
func (c *Instance) Usage(ctx context.Context, out io.Writer, u *Usage) error {
	query := url.Values{"limit": {usagePage}}
	for name, value := range map[string]string{"customer": u.Customer, "from": u.From, "to": u.To} {
		if value != "" {
			query.Set(name, value)
		}
	}
	write, end := c.usageWriter(out, u.CSV)
	for {
		text, err := c.call(ctx, http.MethodGet, "/api/v1/usage?"+query.Encode(), "")
		if err != nil {
			return err
		}
		var page admin.Usage
		if err := c.decode(text, &page); err != nil {
			return err
		}
		if c.JSON && !u.CSV {
			_, err = out.Write(text)
		} else {
			err = write(&page)
		}
		if err != nil {
			return err
		}
		if page.Next == "" {
			return end()
		}
		query.Set("after", page.Next)
	}
}

// usageWriter gives the function that writes a page, and the one that writes the end.
func (c *Instance) usageWriter(out io.Writer, asCSV bool) (write func(*admin.Usage) error, end func() error) {
	if c.JSON && !asCSV {
		return nil, func() error { return nil }
	}
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
	rowf(w, "CUSTOMER\tPLAN\tQUOTA\tLIMIT\tUSED\tINCLUDED\tHARD\tWINDOW\n")
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
			rowf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\n", printable(customer.Customer), plan)
		}
		for j := range customer.Limits {
			l := &customer.Limits[j]
			rowf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", printable(customer.Customer), plan, l.Quota, l.Limit, l.Used, l.Included, l.Hard,
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

// Reset gives back the used units of a customer, and prints what was used. quota and period select limits; "" means
// all.
func (c *Instance) Reset(ctx context.Context, out io.Writer, customer, quota, period string, how *Change) error {
	query := how.query()
	query.Set("customer", customer)
	for name, value := range map[string]string{"quota": quota, "period": period} {
		if value != "" {
			query.Set(name, value)
		}
	}
	text, err := c.call(ctx, http.MethodPost, "/api/v1/usage/reset?"+query.Encode(), "")
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := out.Write(text)
		return err
	}
	var r admin.Reset
	if err := c.decode(text, &r); err != nil {
		return err
	}
	for i := range r.Before {
		l := &r.Before[i]
		was, is := "were", "are"
		if l.Used == 1 {
			was, is = "was", "is"
		}
		said := was + " used, and " + is + " given back"
		if r.DryRun {
			said = is + " used; this was a dry run"
		}
		if _, err := fmt.Fprintf(out, "%s %s: %s %s\n", l.Quota, l.Period, field.Counted(l.Used, "unit"), said); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "instances hold at most %s ahead\n", field.Counted(r.Ahead, "unit"))
	return err
}
