package main

import (
	"context"
	"errors"
	"io"

	"github.com/headgate/headgate/cmd/internal/ctl"
	"github.com/headgate/headgate/rule"
)

// keyCommand reads and changes one key.
type keyCommand struct {
	Get   getKeyCommand   `cmd:"" help:"Print what a key has used of each limit, when it may go on, and its ban."`
	Reset resetKeyCommand `cmd:"" help:"Give back what a key has used of the limits of its rule."`
	Ban   banKeyCommand   `cmd:"" help:"Refuse a key for some time."`
	Unban unbanKeyCommand `cmd:"" help:"End the ban of a key, and reset the attempts that led to it."`

	Limit  limitKeyCommand  `cmd:"" help:"Give one value of a key limits of its own for some time, or end them."`
	Limits keyLimitsCommand `cmd:"" help:"Print the limits that single keys have at run time."`
}

// keyFlags name a key.
type keyFlags struct {
	Domain string   `help:"Domain of a descriptor, whose entries follow as NAME=VALUE, in place of a rule." placeholder:"NAME"`
	Name   []string `arg:"" name:"rule value" help:"Name of a rule, and a value for each part of its key, or '(missing)'."`
}

// changeKeyFlags say how a key is changed.
type changeKeyFlags struct {
	DryRun bool   `help:"Only print what there is."`
	Reason string `help:"Reason, for the log." placeholder:"TEXT"`
}

func (f *keyFlags) keys(c *ctlCommand, stdout, stderr io.Writer) *ctl.Keys {
	return &ctl.Keys{Fleet: c.fleet(stderr), Out: stdout}
}

// change makes a change of a key.
func (f *keyFlags) change(ctx context.Context, c *ctlCommand, stdout, stderr io.Writer, action, length string, how *changeKeyFlags) error {
	order, err := ctl.KeyOrder(f.Domain, f.Name)
	if err != nil {
		return ctl.NewConfigError(err)
	}
	order.For, order.Reason, order.DryRun = length, how.Reason, how.DryRun
	return f.keys(c, stdout, stderr).Change(ctx, action, order)
}

type getKeyCommand struct{ keyFlags }

// Run prints what a key has used.
func (g getKeyCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	order, err := ctl.KeyOrder(g.Domain, g.Name)
	if err != nil {
		return ctl.NewConfigError(err)
	}
	return g.keys(c, stdout, stderr).Get(ctx, order)
}

type resetKeyCommand struct {
	keyFlags
	changeKeyFlags
}

// Run gives back what a key has used.
func (r resetKeyCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return r.change(ctx, c, stdout, stderr, "reset", "", &r.changeKeyFlags)
}

type banKeyCommand struct {
	keyFlags
	changeKeyFlags

	For string `help:"Length of the ban, 1s to 367d." placeholder:"TIME"`
}

// Validate demands a length.
func (b banKeyCommand) Validate() error {
	if _, err := rule.ParseDuration(b.For); err != nil {
		return errors.New("--for is missing or is no time: write how long the ban lasts, like --for 1h")
	}
	return nil
}

// Run bans a key.
func (b banKeyCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return b.change(ctx, c, stdout, stderr, "ban", b.For, &b.changeKeyFlags)
}

type unbanKeyCommand struct {
	keyFlags
	changeKeyFlags
}

// Run ends the ban of a key.
func (u unbanKeyCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return u.change(ctx, c, stdout, stderr, "unban", "", &u.changeKeyFlags)
}
