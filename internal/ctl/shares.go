package ctl

import (
	"context"
	"io"
	"time"

	"github.com/headgate/headgate/internal/admin"
)

const sharesPage = "/api/v1/shares"

// Shares says how the shares of an instance are printed.
type Shares struct {
	// Every is how often they are printed again until the context ends; 0 is once.
	Every time.Duration
	// Sort is the order of the table: name, demand, size, borrowed or refused.
	Sort string
	// Top is how many clients the table shows; 0 is all.
	Top int
	// Window gives the size of the terminal that Out is; nil is no terminal.
	Window func() (rows, columns int)
	// Out gets the shares, Errors what happens to a watched instance.
	Out, Errors io.Writer
}

// Shares prints the shares, as a table or as they came.
func (c *Instance) Shares(ctx context.Context, s *Shares) error {
	shape := tableShape{order: s.Sort, top: s.Top}
	if s.Every > 0 {
		w := &watch{ctl: c, out: s.Out, errors: s.Errors, every: s.Every, shape: shape}
		if !c.JSON {
			w.window = s.Window
		}
		return w.run(ctx)
	}
	return show(ctx, c, sharesPage, s.Out, func(out io.Writer, now *admin.Shares) error {
		if s.Window != nil {
			_, shape.columns = s.Window()
		}
		return writeShares(out, now, shape)
	})
}
