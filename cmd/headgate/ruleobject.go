package main

import (
	"context"
	"io"

	"github.com/headgate/headgate/internal/config/source"
)

type listRuleCommand struct{}

// Run prints all rules.
func (listRuleCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().ListObjects(ctx, stdout, source.Rule)
}

type getRuleCommand struct {
	Name string `arg:"" name:"rule" help:"Name of the rule."`
}

// Run prints one rule.
func (g getRuleCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	of := c.instance()
	of.Terminal = isTerminal(stdout)
	return of.GetObject(ctx, stdout, source.Key{Kind: source.Rule, Name: g.Name})
}

type setRuleCommand struct {
	Name string      `arg:"" name:"rule" help:"Name of the rule."`
	Text textFlags   `embed:""`
	How  changeFlags `embed:""`
}

// Validate demands either fields or a file.
func (s setRuleCommand) Validate() error { return s.Text.check() }

// Run changes one rule.
func (s setRuleCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return s.Text.set(ctx, c, stdout, source.Key{Kind: source.Rule, Name: s.Name}, &s.How)
}

type deleteRuleCommand struct {
	Name string      `arg:"" name:"rule" help:"Name of the rule."`
	How  changeFlags `embed:""`
}

// Run deletes one rule.
func (d deleteRuleCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().DeleteObject(ctx, stdout, source.Key{Kind: source.Rule, Name: d.Name}, d.How.change())
}
