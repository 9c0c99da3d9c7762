package ctl

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/acted"
	"github.com/headgate/headgate/cmd/internal/console/keylimit"
)

// LimitKey sets or ends the limits that one key has at run time, and prints them.
func (c *Instance) LimitKey(ctx context.Context, stdout io.Writer, order *admin.KeyLimitOrder) error {
	return act(ctx, c, http.MethodPost, "/api/v1/key/limit", order, stdout, keylimit.WriteChange)
}

// LimitedKeys prints the limits that single keys have at run time. ruleName selects those of a rule.
func (c *Instance) LimitedKeys(ctx context.Context, stdout io.Writer, ruleName string) error {
	page := "/api/v1/key/limits"
	if ruleName != "" {
		page += "?rule=" + url.QueryEscape(ruleName)
	}
	return show(ctx, c, page, stdout, keylimit.WriteList)
}

// Actions prints what operators have changed at run time.
func (c *Instance) Actions(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, "/api/v1/actions", stdout, acted.WriteList)
}
