package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/headgate/headgate/cmd/internal/rules"
)

// Bans prints the bans, as a table or as JSON.
func (c *Instance) Bans(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, "/api/v1/bans", stdout, rules.WriteBans)
}

// Lift ends the bans one after another. The error lists every ban that could not be lifted.
func (c *Instance) Lift(ctx context.Context, stdout io.Writer, ids []string, terms Terms) error {
	said := "is lifted"
	if terms.DryRun {
		said = "would be lifted (dry run: nothing was changed)"
	}
	var failed error
	for _, id := range ids {
		if _, err := c.query(ctx, http.MethodDelete, banPage(id, terms)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s %s\n", id, said); err != nil {
			return err
		}
	}
	return failed
}

func banPage(id string, terms Terms) string {
	return "/api/v1/bans/" + url.PathEscape(id) + terms.query()
}
