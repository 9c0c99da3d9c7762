package main

import (
	"context"
	"fmt"
	"io"

	"github.com/headgate/headgate/cmd/internal/ctl"
)

// refusalsCommand lists the last refusals.
type refusalsCommand struct {
	Rule string `help:"Name of a rule, fair_share or throttle. Default: all." placeholder:"NAME"`
	Key  string `help:"Text that the key contains, like acme or 192.0.2.1." placeholder:"TEXT"`
	Last int    `help:"How many to list, 1 to 1000." default:"20" placeholder:"N"`
}

const mostRefusals = 1000

// Validate refuses a number that no instance lists.
func (r refusalsCommand) Validate() error {
	if r.Last < 1 || r.Last > mostRefusals {
		return fmt.Errorf("--last is %d: use 1 to %d", r.Last, mostRefusals)
	}
	return nil
}

// Run prints the refusals.
func (r refusalsCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return (&ctl.Why{Fleet: c.fleet(stderr), Out: stdout}).Refusals(ctx, r.Rule, r.Key, r.Last)
}
