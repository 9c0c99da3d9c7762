package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/headgate/headgate/pace/etcd"
)

type deleteLimitCommand struct {
	Provider   string `arg:"" help:"Whose limit."`
	IfRevision *int64 `help:"Only if the limit has this revision." placeholder:"N"`
}

// Validate refuses a name that no provider can have.
func (d deleteLimitCommand) Validate() error {
	if err := checkProvider(d.Provider); err != nil {
		return err
	}
	return checkRevision(d.IfRevision)
}

// Run deletes the limit.
func (d deleteLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.Limit.run(ctx, c, stdout, stderr, func(s *limitSession) error {
		return s.delete(ctx, d.Provider, d.IfRevision)
	})
}

// delete deletes the limit that it reads first. Instances keep the last limit that they
// have heard of: without one nothing would hold them.
func (s *limitSession) delete(ctx context.Context, provider string, ifRevision *int64) error {
	before, err := s.expect(ctx, provider, ifRevision)
	switch {
	case err != nil:
		return err
	case before.Revision == 0:
		return noLimit(provider)
	}
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = s.limits.Delete(timed, provider, before.Revision)
	switch {
	case errors.Is(err, etcd.ErrConflict), errors.Is(err, etcd.ErrNotFound):
		return s.lost(ctx, provider, before.Revision)
	case err != nil:
		return s.unsure(err)
	}
	if s.json {
		return writeDocument(s.out, changeDocument{Provider: provider, Before: valueOf(&before), Changed: true})
	}
	if err := s.tell(&before, &etcd.Entry{Provider: provider}, true); err != nil || len(before.Members) == 0 {
		return err
	}
	return s.say(fmt.Sprintf("instances that live keep it: %d; a limit of 0 stops them", len(before.Members)))
}
