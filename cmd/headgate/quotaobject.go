package main

import (
	"context"
	"io"

	"github.com/headgate/headgate/internal/config/source"
)

type listQuotaCommand struct{}

// Run prints all customers.
func (listQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().ListObjects(ctx, stdout, source.Customer)
}

type getQuotaCommand struct {
	Name string `arg:"" name:"customer" help:"Name of the customer."`
}

// Run prints one customer.
func (g getQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	of := c.instance()
	of.Terminal = isTerminal(stdout)
	return of.GetObject(ctx, stdout, source.Key{Kind: source.Customer, Name: g.Name})
}

type setQuotaCommand struct {
	Name string      `arg:"" name:"customer" help:"Name of the customer."`
	Text textFlags   `embed:""`
	How  changeFlags `embed:""`
}

// Validate demands either fields or a file.
func (s setQuotaCommand) Validate() error { return s.Text.check() }

// Run changes one customer.
func (s setQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return s.Text.set(ctx, c, stdout, source.Key{Kind: source.Customer, Name: s.Name}, &s.How)
}

type deleteQuotaCommand struct {
	Name string      `arg:"" name:"customer" help:"Name of the customer."`
	How  changeFlags `embed:""`
}

// Run deletes one customer.
func (d deleteQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().DeleteObject(ctx, stdout, source.Key{Kind: source.Customer, Name: d.Name}, d.How.change())
}
