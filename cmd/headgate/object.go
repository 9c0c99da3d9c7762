package main

import (
	"context"
	"io"

	"github.com/headgate/headgate/internal/config/source"
)

// objectName is the argument that names an object of one kind.
type objectName interface{ key() source.Key }

type planName struct {
	Name string `arg:"" name:"plan" help:"Name of the plan."`
}

func (n planName) key() source.Key { return source.Key{Kind: source.Plan, Name: n.Name} }

type ruleName struct {
	Name string `arg:"" name:"rule" help:"Name of the rule."`
}

func (n ruleName) key() source.Key { return source.Key{Kind: source.Rule, Name: n.Name} }

type customerName struct {
	Name string `arg:"" name:"customer" help:"Name of the customer."`
}

func (n customerName) key() source.Key { return source.Key{Kind: source.Customer, Name: n.Name} }

type listCommand[N objectName] struct{}

// Run prints all objects of a kind.
func (listCommand[N]) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	var none N
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.ListObjects(ctx, stdout, none.key().Kind)
}

type getCommand[N objectName] struct {
	Object N `embed:""`
}

// Run prints one object.
func (g getCommand[N]) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	instance, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	instance.Terminal = isTerminal(stdout)
	return instance.GetObject(ctx, stdout, g.Object.key())
}

type setCommand[N objectName] struct {
	Object N           `embed:""`
	Text   textFlags   `embed:""`
	How    changeFlags `embed:""`
}

// Validate demands either fields or a file.
func (s setCommand[N]) Validate() error { return s.Text.check() }

// Run changes one object.
func (s setCommand[N]) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return s.Text.set(ctx, c, stdout, stderr, s.Object.key(), &s.How)
}

type deleteCommand[N objectName] struct {
	Object N           `embed:""`
	How    changeFlags `embed:""`
}

// Run deletes one object.
func (d deleteCommand[N]) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.DeleteObject(ctx, stdout, d.Object.key(), d.How.change())
}
