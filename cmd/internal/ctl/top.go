package ctl

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config/field"
)

// Top prints the n keys with the most refusals, as a table or as JSON. "" selects all rules.
func (c *Instance) Top(ctx context.Context, stdout io.Writer, rule string, n int) error {
	page := "/api/v1/top?" + url.Values{"rule": {rule}, "top": {strconv.Itoa(n)}}.Encode()
	return show(ctx, c, page, stdout, writeTop)
}

func writeTop(out io.Writer, t *admin.Top) error {
	since := time.Since(t.Since).Round(time.Second)
	if len(t.Keys) == 0 {
		_, err := fmt.Fprintf(out, "no refusals in the last %s\n", since)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rowf(w, "REFUSALS\tAT MOST TOO HIGH BY\tRULE\tKEY\n")
	for _, k := range t.Keys {
		rowf(w, "%d\t%d\t%s\t%s\n", k.Refusals, k.Error, k.Rule, k.Key)
	}
	rowf(w, "\n%s of all keys in the last %s.\n", field.Counted(t.Total, "refusal"), since)
	return w.Flush()
}
