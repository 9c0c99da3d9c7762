package ctl

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/refusals"
)

const refusalsPage = "/api/v1/refusals"

// Refusals prints the last refusals of each instance. rule and key select some; "" selects all.
func (w *Why) Refusals(ctx context.Context, rule, key string, n int) error {
	values := url.Values{"limit": {strconv.Itoa(n)}}
	if rule != "" {
		values.Set("rule", rule)
	}
	if key != "" {
		values.Set("key", key)
	}
	return w.each(ctx, func(one *Instance) error {
		return show(ctx, one, refusalsPage+"?"+values.Encode(), w.Out, refusals.Write)
	})
}

// errNotFound says why a refusal may be in no instance.
var errNotFound = errors.New("ctl: no instance has a refusal with this id: each keeps its last 4,096, at most 200 of a second, and the " +
	"request may have passed: look it up in the access log, or ask with the request itself, like headgate ctl why 'GET /v1/search' -H LINE")

// RequestID looks up the refusal of a request by its id or by the value of Headgate-Decision, in each instance. It prints what it was,
// and whether it still holds.
func (w *Why) RequestID(ctx context.Context, id string) error {
	found := false
	err := w.each(ctx, func(one *Instance) error {
		text, err := one.query(ctx, "GET", refusalsPage+"?"+url.Values{"request_id": {id}}.Encode())
		if err != nil {
			return err
		}
		if w.JSON {
			found = true
			_, err := w.Out.Write(text)
			return err //nolint:wrapcheck // because it is the writer's own error.
		}
		var all admin.Refusals
		if err := one.decode(text, &all); err != nil {
			return err
		}
		if len(all.Refusals) == 0 {
			return nil
		}
		found = true
		return w.stillHolds(ctx, one, &all)
	})
	if err == nil && !found {
		return errNotFound
	}
	return err
}

// stillHolds prints a refusal, and explains a request like it.
func (w *Why) stillHolds(ctx context.Context, one *Instance, all *admin.Refusals) error {
	for i := range all.Refusals {
		if err := refusals.WriteOne(w.Out, &all.Refusals[i]); err != nil {
			return err //nolint:wrapcheck // because it is the writer's own error.
		}
	}
	order, known := orderLike(all.Refusals)
	if !known {
		_, err := io.WriteString(w.Out, "Whether it still holds is not known, because the key does not tell the whole request.\n")
		return err //nolint:wrapcheck // because it is the writer's own error.
	}
	if _, err := io.WriteString(w.Out, "A request with this path and this key now:\n\n"); err != nil {
		return err //nolint:wrapcheck // because it is the writer's own error.
	}
	return (&Why{Fleet: &Fleet{Instance: *one}, Out: w.Out}).Explain(ctx, order)
}

// part is a part of a key with a value in plain text.
var part = regexp.MustCompile(`(\w+)(?::([\w-]+))?=("(?:[^"\\]|\\.)*"|\S+)`)

// orderLike makes a request with the path and the keys of the refusals of one request. known is false if a key has parts that a request
// cannot be given.
func orderLike(all []admin.Refusal) (order *admin.ExplainOrder, known bool) {
	r := &all[0]
	if r.Method == "" || !strings.HasPrefix(r.Path, "/") || strings.HasSuffix(r.Path, "...") {
		return nil, false
	}
	order = &admin.ExplainOrder{Method: r.Method, Path: r.Path, Headers: admin.ExplainHeaders{}}
	if !strings.HasSuffix(r.Host, "...") {
		order.Host = r.Host
	}
	known = true
	for i := range all {
		if same := all[i].RequestID == r.RequestID && all[i].Decision == r.Decision; same {
			known = addKey(order, all[i].Key) && known
		}
	}
	return order, known
}

// addKey gives a request the values of a key.
func addKey(order *admin.ExplainOrder, key string) bool {
	parts := part.FindAllStringSubmatch(key, -1)
	for _, m := range parts {
		value, err := strconv.Unquote(m[3])
		switch address, wrong := netip.ParseAddr(m[3]); {
		case m[1] == "ip" && wrong == nil:
			order.Address = address.String()
		case m[1] == "header" && err == nil:
			order.Headers[m[2]] = []string{value}
		case m[1] == "cookie" && err == nil:
			order.Headers["Cookie"] = []string{m[2] + "=" + value}
		case m[1] == "path", m[1] == "method", m[1] == "host":
		default:
			return false
		}
	}
	return len(parts) > 0
}
