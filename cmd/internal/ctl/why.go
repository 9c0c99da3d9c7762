package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/why"
)

const explainPage = "/api/v1/explain"

// Why explains requests in one instance or in several.
type Why struct {
	*Fleet

	Out io.Writer
}

// Explain prints what each instance would do with a request now. The error has those of all instances.
func (w *Why) Explain(ctx context.Context, order *admin.ExplainOrder) error {
	body, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	return w.each(ctx, func(one *Instance) error { return one.explain(ctx, w.Out, string(body)) })
}

// explain prints what one instance would do.
func (c *Instance) explain(ctx context.Context, out io.Writer, body string) error {
	text, err := c.call(ctx, http.MethodPost, explainPage, body)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := out.Write(text)
		return err
	}
	answer := new(admin.Why)
	if err := c.decode(text, answer); err != nil {
		return err
	}
	return why.WriteWhy(out, answer)
}

// each asks one instance after the other. With several, a line with the address comes before each answer.
func (w *Why) each(ctx context.Context, ask func(*Instance) error) error {
	all, many, err := w.instances(ctx)
	if err != nil {
		return err
	}
	var failed error
	for i, one := range all {
		if many && !w.JSON {
			gap := "\n"
			if i == 0 {
				gap = ""
			}
			_, _ = fmt.Fprintf(w.Out, "%s%s\n", gap, one.Admin)
		}
		failed = errors.Join(failed, ask(one))
	}
	return failed
}

// ExplainOrder makes the body of a call from a request like "GET /v1/search" and header lines like "X-Client-Id: acme".
func ExplainOrder(request string, headers []string) (*admin.ExplainOrder, error) {
	order := &admin.ExplainOrder{Request: request, Headers: admin.ExplainHeaders{}}
	for _, line := range headers {
		name, value, found := strings.Cut(line, ":")
		if !found || name == "" {
			return nil, fmt.Errorf("the header %.64q has no name and value: write it like -H 'X-Client-Id: acme'", line)
		}
		order.Headers[name] = append(order.Headers[name], strings.TrimSpace(value))
	}
	return order, nil
}
