package rls

import (
	"context"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// permit checks what the caller of a read call may do, and takes the units of its limit. The error is of
// gRPC.
func (c *call) permit() error {
	if c.access == nil {
		return nil
	}
	client := c.access.Client()
	err := client.PermitDomain(c.wire.domain)
	for i := range c.requests {
		if err == nil && c.requests[i].Sent.Per > 0 {
			err = client.Permit(config.ScopeSendLimits)
		}
	}
	if err == nil {
		err = client.TakeAll(len(c.requests))
	}
	if err != nil {
		return c.forbidden(err)
	}
	return nil
}

// forbidden counts a refusal, and gives its error of gRPC.
func (c *call) forbidden(err error) error {
	c.access.Refused(err)
	return access.Status(err)
}

// giveBack gives back what the descriptors of a call took, because the caller may not use the rule of another one. The
// units stay counted if the store does not answer.
func (c *call) giveBack(g *guard.Guard) {
	var all []guard.Taken
	for i := range c.requests {
		if a := &c.answers[i]; a.Error == nil {
			all = append(all, a.Taken())
		}
	}
	_ = g.GiveBack(context.WithoutCancel(c.ctx), all)
}
