package main

import (
	"context"
	"errors"
	"io"

	"github.com/headgate/headgate/internal/ctl"
)

type ctlCommand struct {
	Admin string `help:"The instance's admin.listen." default:"127.0.0.1:9902" env:"HEADGATE_ADMIN_LISTEN" placeholder:"HOST:PORT"`
	JSON  bool   `help:"Print JSON for programs." name:"json"`

	Status statusCommand `cmd:"" help:"Print what the instance serves, decides and holds, and how its last reload went."`
	Reload reloadCommand `cmd:"" help:"Read the configuration, certificates and log files again, and print what is at fault."`
	Shares sharesCommand `cmd:"" help:"Print who has what of the capacity: demand, size, borrowed or lent, admitted, refused."`
	Top    topCommand    `cmd:"" help:"Print the keys that were refused most in the last five to ten minutes."`
	Bans   bansCommand   `cmd:"" help:"List and lift bans."`
	Limit  limitCommand  `cmd:"" help:"Read and set, in etcd, the limits that pacers keep to."`
}

// Validate refuses with --json what is of the table of shares alone.
func (c *ctlCommand) Validate() error {
	if s := &c.Shares; c.JSON && (s.Top > 0 || s.Sort != "" && s.Sort != byName) {
		return errors.New("--sort and --top are for the table: leave them out with --json, which has all clients by name")
	}
	return nil
}

// instance is the one that the flags name.
func (c *ctlCommand) instance() *ctl.Instance { return &ctl.Instance{Admin: c.Admin, JSON: c.JSON} }

type statusCommand struct{}

// Run prints the status.
func (statusCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().Status(ctx, stdout)
}

type reloadCommand struct{}

// Run has the instance reload.
func (reloadCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().Reload(ctx, stdout)
}

type topCommand struct {
	Rule string `arg:"" optional:"" help:"Name of a rule, or fair_share; without it, all of them."`
	Top  int    `help:"How many keys to list, 1 to 1024." default:"20" placeholder:"N"`
}

// Run prints the keys with most refusals.
func (t topCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().Top(ctx, stdout, t.Rule, t.Top)
}

type bansCommand struct {
	List listBansCommand `cmd:"" default:"1" help:"List the bans that the instance has met, with their ids."`
	Lift liftBansCommand `cmd:"" help:"End bans, by their ids, and forget the attempts that led to them."`
}

type listBansCommand struct{}

// Run prints the bans.
func (listBansCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().Bans(ctx, stdout)
}

type liftBansCommand struct {
	IDs []string `arg:"" name:"id" help:"Ids, as headgate ctl bans prints them."`
}

// Run ends the bans.
func (l liftBansCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer) error {
	return c.instance().Lift(ctx, stdout, l.IDs)
}
