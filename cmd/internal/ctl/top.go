package ctl

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"github.com/headgate/headgate/cmd/internal/rules"
)

// Top prints the n keys with the most refusals, as a table or as JSON. "" selects all rules.
func (c *Instance) Top(ctx context.Context, stdout io.Writer, rule string, n int) error {
	page := "/api/v1/top?" + url.Values{"rule": {rule}, "top": {strconv.Itoa(n)}}.Encode()
	return show(ctx, c, page, stdout, rules.WriteTop)
}
