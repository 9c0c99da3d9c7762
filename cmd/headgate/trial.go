package main

import (
	"context"
	"io"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl"
)

// trialCommand tries other limits of a rule.
type trialCommand struct {
	List  listTrialsCommand `cmd:"" default:"1" help:"Print the trials in progress: what other limits would refuse."`
	Start startTrialCommand `cmd:"" help:"Try other limits beside those of a rule, on the requests of now, for some time."`
	Stop  stopTrialCommand  `cmd:"" help:"End a trial, and print its last figures."`
}

type listTrialsCommand struct{}

// Run prints the trials in progress.
func (listTrialsCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).OnEach(ctx, stdout, func(i *ctl.Instance, out io.Writer) error { return i.Trials(ctx, out) })
}

// actionFlags say how something is changed at run time.
type actionFlags struct {
	DryRun bool   `help:"Only check the action, and print what it would do."`
	Reason string `help:"Reason, for the log and the records." placeholder:"TEXT"`
}

func (f actionFlags) terms() ctl.Terms { return ctl.Terms{Reason: f.Reason, DryRun: f.DryRun} }

type startTrialCommand struct {
	actionFlags

	Rule   string   `arg:"" help:"Name of a rule, whose limits stay in effect."`
	Limits []string `arg:"" name:"limit" help:"Limits to try, like 25/1s."`
	Burst  int64    `help:"Burst of these limits. The default is that of the rule." placeholder:"N"`
	For    string   `help:"How long the trial lasts, 1s to 24h." default:"10m" placeholder:"TIME"`
}

// Run begins a trial.
func (s startTrialCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	order := &admin.TrialOrder{Rule: s.Rule, Limits: s.Limits, Burst: s.Burst, For: s.For, Reason: s.Reason, DryRun: s.DryRun}
	return c.fleet(stderr).OnEach(ctx, stdout, func(i *ctl.Instance, out io.Writer) error { return i.StartTrial(ctx, out, order) })
}

type stopTrialCommand struct {
	actionFlags

	Name string `arg:"" help:"Name of a trial, as headgate ctl trial prints it."`
}

// Run ends a trial.
func (s stopTrialCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).OnEach(ctx, stdout, func(i *ctl.Instance, out io.Writer) error {
		return i.StopTrial(ctx, out, s.Name, s.terms())
	})
}
