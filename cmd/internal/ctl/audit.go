package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/source"
)

// auditPage is the highest number of records that an instance gives at a time.
const auditPage = 1000

// Audit prints at most n records of changes, the newest first, page by page. object is like customers/acme; "" means all. With
// JSON, each page is a document.
func (c *Instance) Audit(ctx context.Context, out io.Writer, object string, n int) error {
	query := url.Values{}
	if object != "" {
		if _, err := source.ParseKey(object); err != nil {
			return ConfigError{fmt.Errorf("ctl: %q is not an object: write rules/NAME, plans/NAME or customers/NAME", object)}
		}
		query.Set("object", object)
	}
	for printed := 0; ; {
		query.Set("limit", strconv.Itoa(min(n-printed, auditPage)))
		text, err := c.call(ctx, http.MethodGet, "/api/v1/audit?"+query.Encode(), "")
		if err != nil {
			return err
		}
		var page admin.Audit
		if err := c.decode(text, &page); err != nil {
			return err
		}
		if c.JSON {
			_, err = out.Write(text)
		} else {
			err = writeRecords(out, page.Records)
		}
		if err != nil {
			return err
		}
		printed += len(page.Records)
		if page.Next == "" || printed >= n {
			if printed == 0 && object != "" {
				if err := c.checkObject(ctx, object); err != nil {
					return err
				}
			}
			return endOfRecords(out, printed, c.JSON)
		}
		query.Set("after", page.Next)
	}
}

// checkObject says whether an object without records exists.
func (c *Instance) checkObject(ctx context.Context, object string) error {
	key, err := source.ParseKey(object)
	if err == nil {
		_, err = c.call(ctx, http.MethodGet, objectPage(key.Kind, url.Values{"name": {key.Name}}), "")
	}
	if failed := new(FailedError); errors.As(err, &failed) && failed.Code == admin.CodeNotFound {
		return fmt.Errorf("ctl: %s: there is no %s, and no record of it: list the %s to see their names",
			c.Admin, terminal.Printable(object), key.Kind.Section())
	}
	return err
}

func endOfRecords(out io.Writer, printed int, asJSON bool) error {
	if printed > 0 || asJSON {
		return nil
	}
	_, err := fmt.Fprintln(out, "no records")
	return err
}

func writeRecords(out io.Writer, all []source.Record) error {
	for i := range all {
		r := &all[i]
		line := fmt.Sprintf("%s %s %s by %s from %s", r.Time.UTC().Format(time.RFC3339), r.Action, r.Object, orNone(r.Caller),
			orNone(r.Address))
		if r.Reason != "" {
			line += ": " + r.Reason
		}
		if _, err := fmt.Fprintf(out, "%s\n", terminal.Printable(line)); err != nil {
			return err
		}
		for _, side := range [...]struct{ name, text string }{{"before", r.Before}, {"after", r.After}} {
			if _, err := fmt.Fprintf(out, "  %s: %s\n", side.name, terminal.Printable(orNone(flat(side.text)))); err != nil {
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
