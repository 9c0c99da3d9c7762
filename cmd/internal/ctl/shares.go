package ctl

import (
	"context"
	"io"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/fairshare"
)

const sharesPage = "/api/v1/shares"

// Shares describes how to print the shares of an instance.
type Shares struct {
	// Every is the interval at which they are printed until the context ends. 0 prints once.
	Every time.Duration
	// Sort is the order of the table: name, demand, size, borrowed or refused.
	Sort string
	// Top is the number of clients in the table. 0 means all.
	Top int
	// Window returns the size of the terminal. It is nil when Out is not a terminal.
	Window func() (rows, columns int)
	// Out receives the shares. Errors receives messages about an unreachable instance.
	Out, Errors io.Writer
}

// Shares prints the shares, as a table or as JSON.
func (c *Instance) Shares(ctx context.Context, s *Shares) error {
	shape := fairshare.Shape{Order: s.Sort, Top: s.Top}
	if s.Every > 0 {
		w := &watch{ctl: c, out: s.Out, errors: s.Errors, every: s.Every, shape: shape}
		if !c.JSON {
			w.window = s.Window
		}
		return w.run(ctx)
	}
	return show(ctx, c, sharesPage, s.Out, func(out io.Writer, now *admin.Shares) error {
		if s.Window != nil {
			_, shape.Columns = s.Window()
		}
		return fairshare.Write(out, now, shape)
	})
}
