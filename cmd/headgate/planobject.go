package main

import (
	"context"
	"io"

	"github.com/headgate/headgate/internal/config/source"
)

type listPlanCommand struct{}

// Run prints all plans.
func (listPlanCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().ListObjects(ctx, stdout, source.Plan)
}

type getPlanCommand struct {
	Name string `arg:"" name:"plan" help:"Name of the plan."`
}

// Run prints one plan.
func (g getPlanCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	of := c.instance()
	of.Terminal = isTerminal(stdout)
	return of.GetObject(ctx, stdout, source.Key{Kind: source.Plan, Name: g.Name})
}

type setPlanCommand struct {
	Name string      `arg:"" name:"plan" help:"Name of the plan."`
	Text textFlags   `embed:""`
	How  changeFlags `embed:""`
}

// Validate demands either fields or a file.
func (s setPlanCommand) Validate() error { return s.Text.check() }

// Run changes one plan.
func (s setPlanCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return s.Text.set(ctx, c, stdout, source.Key{Kind: source.Plan, Name: s.Name}, &s.How)
}

type deletePlanCommand struct {
	Name string      `arg:"" name:"plan" help:"Name of the plan."`
	How  changeFlags `embed:""`
}

// Run deletes one plan.
func (d deletePlanCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().DeleteObject(ctx, stdout, source.Key{Kind: source.Plan, Name: d.Name}, d.How.change())
}
