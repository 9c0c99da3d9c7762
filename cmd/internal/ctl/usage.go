package ctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/quota"
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
	write, end := quota.Table(out, u.CSV)
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
			if c.JSON && !u.CSV {
				return nil
			}
			return end()
		}
		query.Set("after", page.Next)
	}
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
