package ctl

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate/headgate/pace/etcd"
)

// Delete deletes the limit of a provider. With ifRevision, it deletes only that revision.
func (l *Limits) Delete(ctx context.Context, provider string, ifRevision *int64) error {
	return l.run(ctx, func(s *limitSession) error { return s.delete(ctx, provider, ifRevision) })
}

// delete reads the limit and deletes that revision. Instances keep the last limit that they
// received, because without a limit their calls would be unbounded.
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
	return s.say(fmt.Sprintf("running instances that keep the limit: %d; a limit of 0 stops their calls", len(before.Members)))
}
