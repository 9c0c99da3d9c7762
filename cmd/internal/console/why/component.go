// Package why is the room of explanations: what a running instance would do with a request now, and why.
package why

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

const (
	// maxOrder bounds the body of a call.
	maxOrder = 64 << 10
	// timeout bounds the calls of the store for one explanation, and the wait for another one.
	timeout = 5 * time.Second
)

// Component answers why a request would be decided as it would be.
type Component struct {
	component.Defaults

	log  *slog.Logger
	from Source
	// one has room for one explanation at a time: the cost grows with the number of rules and of clients of fair share.
	one chan struct{}
}

// Source is what an explanation reads.
type Source struct {
	// Name names the instance.
	Name func() string
	// Config returns the configuration in effect.
	Config func() *config.Config
	Guard  *guard.Guard
	Store  *open.Opened
}

// New makes the component.
func New(log *slog.Logger, from Source) *Component {
	return &Component{log: log, from: from, one: make(chan struct{}, 1)}
}

// Calls implements component.Component.
func (c *Component) Calls() []calls.Call {
	return []calls.Call{{
		Pattern: "POST /api/v1/explain", Scope: config.ScopeAdminister,
		Handler: calls.OwnSiteOrProgram(calls.Parameters(c.log, c.explain)),
	}}
}

// explain answers one call.
func (c *Component) explain(w http.ResponseWriter, r *http.Request) {
	order, failure := orderOf(r.Body)
	if failure != nil {
		calls.Fail(c.log, w, failure)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	answer, failure := c.Explain(ctx, order)
	if failure != nil {
		calls.Fail(c.log, w, failure)
		return
	}
	calls.WriteJSON(c.log, w, answer)
}

// Explain says what the instance would do with a request now. Nothing is counted for it.
func (c *Component) Explain(ctx context.Context, order *admin.ExplainOrder) (*admin.Why, *calls.Failure) {
	select {
	case c.one <- struct{}{}:
		defer func() { <-c.one }()
	case <-ctx.Done():
		return nil, calls.Unavailable(errors.New("another explanation takes too long: try again"))
	}
	settings := c.from.Config()
	notes, err := applyCustomer(order, settings)
	if err != nil {
		return nil, calls.BadRequest(err.Error())
	}
	req, err := requestOf(ctx, order)
	if err != nil {
		return nil, calls.BadRequest(err.Error())
	}
	live, err := req.Live(ctx, settings, c.from.Guard, time.Now())
	switch {
	case errors.Is(err, guard.ErrDeciderExplains):
		return nil, calls.BadRequest(strings.TrimPrefix(err.Error(), "guard: "))
	case err != nil:
		return nil, calls.Unavailable(err)
	}
	e := &explanation{Live: live, store: c.from.Store, sent: req.HTTP()}
	answer := e.answer()
	answer.Instance = c.from.Name()
	answer.Unknown = append(notes, answer.Unknown...)
	return answer, nil
}

// orderOf reads and checks the body of a call.
func orderOf(body io.Reader) (*admin.ExplainOrder, *calls.Failure) {
	text, err := io.ReadAll(io.LimitReader(body, maxOrder+1))
	if err != nil || len(text) > maxOrder {
		return nil, calls.BadRequest(fmt.Sprintf("the body cannot be read, or has more than %d bytes: write a shorter one", maxOrder))
	}
	order := new(admin.ExplainOrder)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(order); err != nil {
		return nil, calls.BadRequest("the body is no request (" + strings.TrimPrefix(err.Error(), "json: ") +
			`): write JSON like {"request": "GET /v1/search", "headers": {"X-Client-Id": "acme"}}`)
	}
	if decoder.More() {
		return nil, calls.BadRequest("a second value follows the request in the body: write one")
	}
	return order, nil
}
