package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate/cmd/internal/commandline"
	"github.com/headgate/headgate/cmd/internal/ctl"
	"github.com/headgate/headgate/internal/config/source"
)

type planQuotaCommand struct {
	Name string      `arg:"" name:"customer" help:"Name of the customer."`
	Plan string      `arg:"" help:"Name of the plan."`
	How  changeFlags `embed:""`
}

// Run gives the customer another plan.
func (p planQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	text, err := ctl.PlanText(p.Plan)
	if err != nil {
		return ctl.NewConfigError(err)
	}
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.SetObject(ctx, stdout, source.Key{Kind: source.Customer, Name: p.Name}, text, true, p.How.change())
}

type resetQuotaCommand struct {
	Name   string `arg:"" name:"customer" help:"Name of the customer."`
	Quota  string `arg:"" optional:"" help:"Name of the quota. Default: all quotas of the customer."`
	Period string `help:"Period of the limit to reset, like 30d or month. Default: all limits of the quota." placeholder:"PERIOD"`
	DryRun bool   `help:"Only print what is used."`
	Reason string `help:"Reason, for the log." placeholder:"TEXT"`
}

// AfterApply refuses empty arguments: an empty variable of a script would mean all quotas.
func (r resetQuotaCommand) AfterApply(parsed *commandline.Parsed) error {
	for _, step := range parsed.Path {
		if a := step.Argument; a != nil && a.Text() == "" {
			return fmt.Errorf("<%s> is empty: name it, or leave it out", a.Name)
		}
		if f := step.Flag; f != nil && f.Name == "period" && f.Text() == "" {
			return errors.New("--period is empty: name it, or leave it out")
		}
	}
	return nil
}

// Run gives back what the customer has used.
func (r resetQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.Reset(ctx, stdout, r.Name, r.Quota, r.Period, &ctl.Change{DryRun: r.DryRun, Reason: r.Reason})
}

// spanFlags select windows and a form.
type spanFlags struct {
	From string `help:"Only windows that overlap the time from here: a date in UTC, or a time." placeholder:"DATE"`
	To   string `help:"Only windows that overlap the time to here: a date in UTC, which includes that day, or a time." placeholder:"DATE"`
	CSV  bool   `help:"Print a line with commas for each limit." name:"csv"`
}

func (f *spanFlags) print(ctx context.Context, c *ctlCommand, stdout, stderr io.Writer, customer string) error {
	if f.CSV && c.JSON {
		return ctl.NewConfigError(errors.New("--csv and --json are two forms: leave out one of them"))
	}
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.Usage(ctx, stdout, &ctl.Usage{Customer: customer, From: f.From, To: f.To, CSV: f.CSV})
}

type usageQuotaCommand struct {
	Name string    `arg:"" name:"customer" help:"Name of the customer."`
	Span spanFlags `embed:""`
}

// Run prints what one customer has used.
func (u usageQuotaCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return u.Span.print(ctx, c, stdout, stderr, u.Name)
}

type usageCommand struct{ spanFlags }

// Run prints what all customers have used that have an entry.
func (u usageCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return u.print(ctx, c, stdout, stderr, "")
}

type auditCommand struct {
	Object string `arg:"" optional:"" help:"An object, like customers/acme, plans/free or rules/search. Default: all."`
	Last   int    `help:"How many records to print, 1 to 10000." default:"100" placeholder:"N"`
}

// Validate bounds the number.
func (a auditCommand) Validate() error {
	if a.Last < 1 || a.Last > source.MaxRecords {
		return fmt.Errorf("--last %d: use 1 to %d", a.Last, source.MaxRecords)
	}
	return nil
}

// Run prints the records of changes.
func (a auditCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	one, err := c.one(ctx, stderr)
	if err != nil {
		return err
	}
	return one.Audit(ctx, stdout, a.Object, a.Last)
}
