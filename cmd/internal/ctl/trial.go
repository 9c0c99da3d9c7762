package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/trial"
)

const trialsPage = "/api/v1/trials"

// Trials prints the trials in progress, with their figures.
func (c *Instance) Trials(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, trialsPage, stdout, trial.WriteList)
}

// StartTrial begins a trial, and prints it.
func (c *Instance) StartTrial(ctx context.Context, stdout io.Writer, order *admin.TrialOrder) error {
	return act(ctx, c, http.MethodPost, trialsPage, order, stdout, trial.WriteStarted)
}

// StopTrial ends a trial, and prints its last figures.
func (c *Instance) StopTrial(ctx context.Context, stdout io.Writer, name string, terms Terms) error {
	return act(ctx, c, http.MethodDelete, trialsPage+"/"+url.PathEscape(name)+terms.query(), nil, stdout, trial.WriteStopped)
}

// Terms are what an action says beside its object.
type Terms struct {
	Reason string
	DryRun bool
}

// query gives the parameters of a call.
func (t Terms) query() string {
	values := url.Values{}
	if t.Reason != "" {
		values.Set("reason", t.Reason)
	}
	if t.DryRun {
		values.Set("dry_run", "1")
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// act sends a call that changes something. body is a document; nil is none. It prints JSON unchanged, or calls write for a table.
func act[T any](
	ctx context.Context, c *Instance, method, page string, body any, stdout io.Writer, write func(io.Writer, *T) error,
) error {
	sent := ""
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("ctl: %w", err)
		}
		sent = string(text)
	}
	text, err := c.call(ctx, method, page, sent)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := stdout.Write(text)
		return err
	}
	value := new(T)
	if err := c.decode(text, value); err != nil {
		return err
	}
	return write(stdout, value)
}
