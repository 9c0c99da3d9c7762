package ctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/admin"
)

// Audit prints at most n records of changes, the newest first. object is like customers/acme; "" means all.
func (c *Instance) Audit(ctx context.Context, out io.Writer, object string, n int) error {
	query := url.Values{"limit": {strconv.Itoa(n)}}
	if object != "" {
		query.Set("object", object)
	}
	text, err := c.call(ctx, http.MethodGet, "/api/v1/audit?"+query.Encode(), "")
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := out.Write(text)
		return err
	}
	var a admin.Audit
	if err := c.decode(text, &a); err != nil {
		return err
	}
	if len(a.Records) == 0 {
		_, err := fmt.Fprintln(out, "no records")
		return err
	}
	for i := range a.Records {
		r := &a.Records[i]
		line := fmt.Sprintf("%s %s %s by %s from %s", r.Time.UTC().Format(time.RFC3339), r.Action, r.Object, orNone(r.Caller),
			orNone(r.Address))
		if r.Reason != "" {
			line += ": " + r.Reason
		}
		if _, err := fmt.Fprintf(out, "%s\n", printable(line)); err != nil {
			return err
		}
		for _, side := range [...]struct{ name, text string }{{"before", r.Before}, {"after", r.After}} {
			if _, err := fmt.Fprintf(out, "  %s: %s\n", side.name, printable(orNone(flat(side.text)))); err != nil {
				return err
			}
		}
	}
	return nil
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
