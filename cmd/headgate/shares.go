package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/headgate/headgate/internal/ctl"
)

type sharesCommand struct {
	Watch bool          `help:"Print again and again until Ctrl-C, on a terminal in place; with --json a document a line."`
	Every time.Duration `help:"How often, with --watch; 1s unless told otherwise." default:"1s" placeholder:"TIME"`
	Sort  string        `help:"Order of the table: ${enum}." default:"name" enum:"name,demand,size,borrowed,refused" placeholder:"COLUMN"`
	Top   int           `help:"How many clients the table shows; all unless told otherwise." placeholder:"N"`
}

// leastEvery bounds how often an instance is asked.
const leastEvery = 10 * time.Millisecond

const byName = "name"

// Validate refuses an --every that would ask without a pause, and a --top of less than nobody.
func (s sharesCommand) Validate() error {
	switch {
	case s.Every < leastEvery:
		return fmt.Errorf("--every is %s: write at least %s, like 1s", s.Every, leastEvery)
	case s.Top < 0:
		return fmt.Errorf("--top is %d: write how many clients the table shows, like 10; 0 is all", s.Top)
	}
	return nil
}

// Run prints the shares, once or until ctx ends.
func (s sharesCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	shown := &ctl.Shares{Sort: s.Sort, Top: s.Top, Window: terminalWindow(stdout), Out: stdout, Errors: stderr}
	if s.Watch {
		shown.Every = s.Every
	}
	return c.instance().Shares(ctx, shown)
}
