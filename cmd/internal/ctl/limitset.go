package ctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace/etcd"
	"github.com/headgate/headgate/rule"
)

// SetLimit describes a limit to set.
type SetLimit struct {
	Provider   string
	Limit      string // Units and a window for all instances together, like 50000/s.
	Balance    string // even, which is the default
	IfRevision *int64 // The revision that the limit must have. nil means any, and 0 means no limit.
	AllowZero  bool   // Allows a limit of 0, which stops all calls to the provider.
	Wait       time.Duration
}

// Validate refuses invalid fields.
func (c *SetLimit) Validate() error {
	if err := CheckProvider(c.Provider); err != nil {
		return err
	}
	l, err := c.limit()
	switch {
	case err != nil:
		return err
	case l.Count == 0 && !c.AllowZero:
		return fmt.Errorf("limit %s stops all calls to %s: add --allow-zero to confirm", l, c.Provider)
	case c.Balance == "demand":
		return errors.New(etcd.NoDemand +
			"; headgate ctl limit sets the capacity of the resource too: see docs/pacing.md, A rate that follows demand")
	case c.Balance != "" && c.Balance != string(etcd.Even):
		return fmt.Errorf("--balance is %.130q: write even", c.Balance)
	case c.Wait < 0:
		return fmt.Errorf("--wait is %s: write how long to wait, like 30s; 0s does not wait", c.Wait)
	}
	return CheckRevision(c.IfRevision)
}

// CheckRevision refuses a negative revision.
func CheckRevision(revision *int64) error {
	if revision != nil && *revision < 0 {
		return fmt.Errorf("--if-revision is %d: write the revision that headgate ctl limit get shows", *revision)
	}
	return nil
}

// limit parses the limit and checks its bounds.
func (c *SetLimit) limit() (headgate.Limit, error) {
	if c.Limit == "" {
		return headgate.Limit{}, errors.New("no limit is given: write it after the provider, like 50000/s")
	}
	l, err := rule.ParseLimit(c.Limit)
	if fault, found := errors.AsType[*rule.ParseError](err); found {
		return l, fmt.Errorf("%s: %s", fault.Problem, fault.Fix)
	}
	switch {
	case err != nil:
		return l, err
	case l.Count > schedule.MaxLimit:
		return l, fmt.Errorf("limit %s is too great: use 0 to %d", l, int64(schedule.MaxLimit))
	case l.Per < schedule.MinPer || l.Per > schedule.MaxPer:
		longest := headgate.Limit{Per: schedule.MaxPer}.Period()
		return l, fmt.Errorf("limit %s has a window out of range: use %s to %s", l, schedule.MinPer, longest)
	case l.Per%time.Microsecond != 0:
		return l, fmt.Errorf("limit %s has a window that is not a multiple of 1µs: round it", l)
	}
	return l, nil
}

// Set sets the limit and waits until it is in force.
func (l *Limits) Set(ctx context.Context, c *SetLimit) error {
	limit, err := c.limit()
	if err != nil {
		return ConfigError{err}
	}
	to := etcd.Limit{Count: limit.Count, Per: limit.Per, Balance: etcd.Even}
	return l.run(ctx, func(s *limitSession) error { return s.set(ctx, c.Provider, to, c.IfRevision, c.Wait) })
}

// set reads the limit and replaces that revision.
func (s *limitSession) set(ctx context.Context, provider string, to etcd.Limit, ifRevision *int64, wait time.Duration) error {
	before, err := s.expect(ctx, provider, ifRevision)
	if err != nil {
		return err
	}
	after := before
	after.Provider, after.Limit = provider, to
	changed := before.Revision == 0 || to.Count != before.Limit.Count || to.Per != before.Limit.Per || to.Balance != balanceOf(before.Limit)
	if changed {
		if after.Revision, err = s.write(ctx, provider, to, before.Revision); err != nil {
			return err
		}
	}
	if err := s.tell(&before, &after, changed); err != nil {
		return err
	}
	p, err := s.await(ctx, &after, wait)
	if s.json {
		err = errors.Join(err, writeDocument(s.out, changeDocument{
			Provider: provider, Before: valueOf(&before), After: valueOf(&after), Changed: changed,
			InForce: p != nil && !p.From.After(s.now()), Plan: planDocumentOf(p),
		}))
	}
	return err
}

// expect reads a provider, which may be unknown. With ifRevision, it fails when the limit has
// another revision.
func (s *limitSession) expect(ctx context.Context, provider string, ifRevision *int64) (etcd.Entry, error) {
	e, err := s.get(ctx, provider)
	switch {
	case errors.Is(err, etcd.ErrNotFound):
		e = etcd.Entry{Provider: provider}
	case err != nil:
		return e, s.explain(err)
	}
	err = nil
	if ifRevision != nil && *ifRevision != e.Revision {
		err = conflict(&e, *ifRevision)
	}
	return e, err
}

// write replaces the given revision of a limit.
func (s *limitSession) write(ctx context.Context, provider string, to etcd.Limit, revision int64) (int64, error) {
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	now, err := s.limits.Set(timed, provider, to, revision)
	if errors.Is(err, etcd.ErrConflict) {
		return 0, s.lost(ctx, provider, revision)
	}
	return now, s.unsure(err)
}

// unsure is explain for a write. A write without an answer may have succeeded.
func (s *limitSession) unsure(err error) error {
	switch etcdCode(err) {
	case codes.OK:
		return nil
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return fmt.Errorf("%w; it is unknown whether the change was made: headgate ctl limit get shows it", s.explain(err))
	default:
		return s.explain(err)
	}
}

// lost returns the conflict error for a write that another change preceded.
func (s *limitSession) lost(ctx context.Context, provider string, revision int64) error {
	e, err := s.expect(ctx, provider, nil)
	if err != nil {
		return err
	}
	return conflict(&e, revision)
}

// conflict is the error when the limit does not have the known revision.
func conflict(now *etcd.Entry, known int64) error {
	was := fmt.Sprintf("revision %d", known)
	if known == 0 {
		was = "no limit"
	}
	return fmt.Errorf("ctl: nothing was done: %s has %s now, and not %s: another operator changed it. To overwrite that change, "+
		"repeat the command with --if-revision %d", terminal.Printable(now.Provider), entryLimit(now), was, now.Revision)
}

// tell prints the change.
func (s *limitSession) tell(before, after *etcd.Entry, changed bool) error {
	if s.json {
		return nil // set writes one JSON document at its end.
	}
	text := fmt.Sprintf("%s -> %s", entryLimit(before), entryLimit(after))
	if !changed {
		text = entryLimit(after) + " already"
	}
	_, err := fmt.Fprintf(s.out, "%s: %s\n", terminal.Printable(after.Provider), text)
	return err
}
