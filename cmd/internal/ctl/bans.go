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
func (c *Instance) Lift(ctx context.Context, stdout io.Writer, ids []string) error {
	var failed error
	for _, id := range ids {
		if _, err := c.query(ctx, http.MethodDelete, banPage(id)); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s is lifted\n", id); err != nil {
			return err
		}
	}
	return failed
}

func banPage(id string) string { return "/api/v1/bans/" + url.PathEscape(id) }
