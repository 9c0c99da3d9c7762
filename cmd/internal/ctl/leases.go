package ctl

import (
	"context"
	"io"
	"net/url"

	"github.com/headgate/headgate/cmd/internal/lease"
)

// Leases prints the resources of capacity leases, or one resource with its holders.
func (c *Instance) Leases(ctx context.Context, stdout io.Writer, resource string) error {
	page := "/api/v1/leases"
	if resource != "" {
		page += "?resource=" + url.QueryEscape(resource)
	}
	return show(ctx, c, page, stdout, lease.Write)
}
