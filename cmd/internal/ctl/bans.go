package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// Bans prints the bans, as a table or as JSON.
func (c *Instance) Bans(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, "/api/v1/bans", stdout, writeBans)
}

func writeBans(out io.Writer, b *admin.Bans) error {
	if len(b.Bans) == 0 {
		_, err := fmt.Fprintln(out, "no bans")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rowf(w, "ID\tENDS IN\tRULE\tKEY\n")
	for _, entry := range b.Bans {
		name := entry.Rule
		if entry.Shadow {
			name += " (shadow)"
		}
		rowf(w, "%s\t%s\t%s\t%s\n", entry.ID, max(0, entry.Until.Sub(b.Now)).Round(time.Second), name, entry.Key)
	}
	if b.More {
		rowf(w, "\nThe list is incomplete: the instance has more bans.\n")
	}
	return w.Flush()
}

// Lift ends the bans one after another. The error lists every ban that could not be lifted.
func (c *Instance) Lift(ctx context.Context, stdout io.Writer, ids []string) error {
	var failed error
	for _, id := range ids {
		if _, err := c.query(ctx, http.MethodDelete, "/api/v1/bans/"+url.PathEscape(id)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s is lifted\n", id); err != nil {
			return err
		}
	}
	return failed
}
