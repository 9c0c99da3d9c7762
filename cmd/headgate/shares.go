package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate/cmd/internal/ctl"
)

// watchFlags are those of commands that print repeatedly.
type watchFlags struct {
	Watch bool          `help:"Print repeatedly until Ctrl-C. A terminal is updated in place; --json prints one document per line."`
	Every time.Duration `help:"Interval of --watch." default:"1s" placeholder:"TIME"`
}

// Validate refuses a value of --every that would poll without a pause.
func (w watchFlags) Validate() error {
	if w.Every < minEvery {
		return fmt.Errorf("--every is %s: write at least %s, like 1s", w.Every, minEvery)
	}
	return nil
}

// how says how to print repeatedly.
func (w watchFlags) how(stdout io.Writer, stderr errorWriter) *ctl.Watched {
	return &ctl.Watched{Every: w.Every, Window: terminalWindow(stdout), Out: stdout, Errors: stderr}
}

type sharesCommand struct {
	watchFlags

	Sort string `help:"Order of the table: ${enum}." default:"name" enum:"name,demand,size,borrowed,refused" placeholder:"COLUMN"`
	Top  int    `help:"Number of clients in the table. The default is all." placeholder:"N"`
}

// minEvery is the shortest interval at which an instance is polled.
const minEvery = 10 * time.Millisecond

const byName = "name"

// Validate refuses a value of --every that would poll without a pause, and a negative --top.
func (s sharesCommand) Validate() error {
	if s.Top < 0 {
		return fmt.Errorf("--top is %d: write the number of clients to show, like 10, or 0 for all", s.Top)
	}
	return s.watchFlags.Validate()
}

// Run prints the shares, once or until ctx ends.
func (s sharesCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	shown := &ctl.Shares{Sort: s.Sort, Top: s.Top, Window: terminalWindow(stdout), Out: stdout, Errors: stderr}
	if s.Watch {
		shown.Every = s.Every
	}
	return c.fleet(stderr).Shares(ctx, shown)
}
