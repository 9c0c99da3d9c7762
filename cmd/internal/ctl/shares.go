package ctl

import (
	"context"
	"io"
	"net/http"
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
		return c.watch(ctx, &Watched{Every: s.Every, Window: s.Window, Out: s.Out, Errors: s.Errors}, &sharesView{shape: shape})
	}
	return show(ctx, c, sharesPage, s.Out, func(out io.Writer, now *admin.Shares) error {
		if s.Window != nil {
			_, shape.Columns = s.Window()
		}
		return fairshare.Write(out, now, shape)
	})
}

// sharesView is the view of the shares.
type sharesView struct {
	shape fairshare.Shape
	last  *admin.Shares
}

func (v *sharesView) read(ctx context.Context, c *Instance) (text []byte, restarted bool, err error) {
	text, err = c.query(ctx, http.MethodGet, sharesPage)
	s := new(admin.Shares)
	if err == nil {
		err = c.decode(text, s)
	}
	if err != nil {
		return nil, false, err
	}
	restarted = v.last != nil && s.Cycle < v.last.Cycle
	v.last = s
	return text, restarted, nil
}

func (v *sharesView) lines(rows, columns int) []string {
	shape := v.shape
	shape.Rows, shape.Columns = rows, columns
	return fairshare.Lines(v.last, shape)
}
