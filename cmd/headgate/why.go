package main

import (
	"context"
	"errors"
	"io"

	"github.com/headgate/headgate/cmd/internal/ctl"
)

// whyCommand explains what a running instance would do with a request.
type whyCommand struct {
	Request   string   `arg:"" optional:"" help:"Method and path, like 'GET /v1/search'."`
	Header    []string `help:"Header of the request, like 'X-Client-Id: acme'; repeatable." short:"H" sep:"none" placeholder:"HEADER"`
	IP        string   `help:"Address of the client's connection, or unix. Default: 192.0.2.1." name:"ip" placeholder:"IP"`
	Subject   string   `help:"Subject of a client certificate, like 'CN=billing,O=Example'." placeholder:"NAME"`
	Customer  string   `help:"Name for the header or the cookie by which fair share and rules name clients." placeholder:"NAME"`
	RequestID string   `help:"Look up a refusal by the id of its request, or by its Headgate-Decision." name:"request-id" placeholder:"ID"`
	Length    int64    `help:"Announced length of the body, in bytes." placeholder:"N"`
}

// Run prints the explanation.
func (w whyCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	if w.RequestID != "" {
		if w.Request != "" {
			return errors.New("--request-id names a refusal: leave out the request")
		}
		return (&ctl.Why{Fleet: c.fleet(stderr), Out: stdout}).RequestID(ctx, w.RequestID)
	}
	if w.Request == "" {
		return errors.New("which request? write it like headgate ctl why 'GET /v1/search' -H 'X-Client-Id: acme'")
	}
	order, err := ctl.ExplainOrder(w.Request, w.Header)
	if err != nil {
		return ctl.NewConfigError(err)
	}
	order.Address, order.Subject, order.Customer, order.Length = w.IP, w.Subject, w.Customer, w.Length
	return (&ctl.Why{Fleet: c.fleet(stderr), Out: stdout}).Explain(ctx, order)
}
