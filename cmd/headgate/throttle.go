package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

type throttleCommand struct {
	Watch bool          `help:"Print repeatedly until Ctrl-C; --json prints one document per line."`
	Every time.Duration `help:"Interval of --watch." default:"1s" placeholder:"TIME"`
}

// Validate refuses a value of --every that would poll without a pause.
func (t throttleCommand) Validate() error {
	if t.Every < minEvery {
		return fmt.Errorf("--every is %s: write at least %s, like 1s", t.Every, minEvery)
	}
	return nil
}

// Run prints the load of the throttle, once or until ctx ends.
func (t throttleCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	every := time.Duration(0)
	if t.Watch {
		every = t.Every
	}
	return c.fleet(stderr).Throttle(ctx, every, stdout)
}
