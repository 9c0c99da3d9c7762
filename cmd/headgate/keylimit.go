package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl"
)

// limitKeyCommand sets limits of one key at run time.
type limitKeyCommand struct {
	actionFlags

	Rule      string   `arg:"" help:"Name of a rule."`
	Values    []string `arg:"" name:"value" help:"Value of the first part of its key: the limits apply to all keys with the value."`
	Limits    []string `help:"Limits in place of those of the rule, like 200/1s, with commas." placeholder:"LIMIT"`
	Burst     int64    `help:"Burst of these limits. The default is that of the rule." placeholder:"N"`
	Unlimited bool     `help:"Let the key pass in place of limits."`
	For       string   `help:"How long the limits last, 1s to 31d." placeholder:"TIME"`
	End       bool     `help:"End the limits that the key has at run time."`
	Here      bool     `help:"Change this instance alone, although a source keeps the limits of all instances."`
}

// Validate refuses a change without limits, and one of several values.
func (l limitKeyCommand) Validate() error {
	switch {
	case len(l.Values) > 1:
		return errors.New("limits of the run time apply to all keys with a value of the first part: write this value alone")
	case !l.End && len(l.Limits) == 0 && !l.Unlimited:
		return errors.New("which limits? write --limits 200/1s, --unlimited, or --end")
	case !l.End && l.For == "":
		return errors.New("--for is missing: write how long the limits last, like --for 1h")
	}
	return nil
}

// Run sets or ends limits.
func (l limitKeyCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).LimitKey(ctx, stdout, &admin.KeyLimitOrder{
		Rule: l.Rule, Value: strings.Join(l.Values, ""), Limits: l.Limits, Burst: l.Burst, Unlimited: l.Unlimited, For: l.For, End: l.End,
		Here: l.Here, Reason: l.Reason, DryRun: l.DryRun,
	})
}

type keyLimitsCommand struct {
	Rule string `arg:"" optional:"" help:"Name of a rule. The default is all."`
}

// Run prints the limits that keys have at run time.
func (k keyLimitsCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).OnEach(ctx, stdout, func(i *ctl.Instance, out io.Writer) error { return i.LimitedKeys(ctx, out, k.Rule) })
}

type actionsCommand struct{}

// Run prints what operators have changed at run time.
func (actionsCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).OnEach(ctx, stdout, func(i *ctl.Instance, out io.Writer) error { return i.Actions(ctx, out) })
}
