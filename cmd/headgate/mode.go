package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

type modeCommand struct {
	Mode     string         `arg:"" optional:"" name:"mode" help:"enforce, shadow, or file, which ends them. The default prints them."`
	Rules    []string       `arg:"" optional:"" name:"rule" help:"Names of rules, fair_share or throttle. The default is all."`
	For      *time.Duration `help:"How long the mode lasts. The default is until it is changed, or the instance ends." placeholder:"TIME"`
	Percent  *int           `help:"With enforce: part of the keys, 1 to 100. The others are in shadow." placeholder:"N"`
	KeepBans bool           `help:"Let bans that began in one mode hold in the other one."`
	Here     bool           `help:"Change this instance alone, although a source keeps the modes of all instances."`
	Reason   string         `help:"Reason, for the log and the records." placeholder:"TEXT"`
}

// Validate refuses a part of the keys that is none.
func (m modeCommand) Validate() error {
	if m.Percent != nil && (*m.Percent < 1 || *m.Percent > 100) {
		return fmt.Errorf("--percent is %d: use 1 to 100, or shadow in place of enforce to refuse nothing", *m.Percent)
	}
	return nil
}

// Run prints or sets modes.
func (m modeCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	if m.Mode == "" {
		if m.For != nil || m.Percent != nil || m.KeepBans || m.Here || m.Reason != "" {
			return errors.New("which mode? write enforce, shadow or file before the flags")
		}
		return c.fleet(stderr).Modes(ctx, stdout)
	}
	change := admin.ModeChange{Mode: m.Mode, Rules: m.Rules, Percent: m.Percent, KeepBans: m.KeepBans, Reason: m.Reason, Here: m.Here}
	if m.For != nil {
		lasts := m.For.String()
		change.For = &lasts
	}
	return c.fleet(stderr).SetMode(ctx, stdout, &change)
}
