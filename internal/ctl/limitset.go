package ctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace/etcd"
	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/rule"
)

// SetLimit is a limit to set.
type SetLimit struct {
	Provider   string
	Limit      string // units and a window for all instances together, like 50000/s
	Balance    string // even or demand; "" is as it was, and even when there was none
	IfRevision *int64 // nil is any revision, 0 no limit
	AllowZero  bool   // a limit of 0 stops all calls to the provider
	Wait       time.Duration
}

// Validate refuses what makes no limit.
func (c *SetLimit) Validate() error {
	if err := CheckProvider(c.Provider); err != nil {
		return err
	}
	l, err := c.limit()
	switch {
	case err != nil:
		return err
	case l.Count == 0 && !c.AllowZero:
		return fmt.Errorf("limit %s stops all calls to %s: add --allow-zero if that is meant", l, c.Provider)
	case c.Balance != "" && c.Balance != string(etcd.Even) && c.Balance != string(etcd.Demand):
		return fmt.Errorf("--balance is %.130q: write even, or demand", c.Balance)
	case c.Wait < 0:
		return fmt.Errorf("--wait is %s: write how long to wait, like 30s; 0s does not wait", c.Wait)
	}
	return CheckRevision(c.IfRevision)
}

// CheckRevision refuses what no limit can have.
func CheckRevision(revision *int64) error {
	if revision != nil && *revision < 0 {
		return fmt.Errorf("--if-revision is %d: write the revision that headgate ctl limit get shows", *revision)
	}
	return nil
}

// limit reads the limit, and finds what no window can have.
func (c *SetLimit) limit() (headgate.Limit, error) {
	if c.Limit == "" {
		return headgate.Limit{}, errors.New("no limit is given: write it behind the provider, like 50000/s")
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
		return l, fmt.Errorf("limit %s has a window of no whole microseconds: round it", l)
	}
	return l, nil
}

// Set sets the limit and waits until it is in force.
func (l *Limits) Set(ctx context.Context, c *SetLimit) error {
	limit, err := c.limit()
	if err != nil {
		return ConfigError{err}
	}
	to := etcd.Limit{Count: limit.Count, Per: limit.Per, Balance: etcd.Balance(c.Balance)}
	return l.run(ctx, func(s *limitSession) error { return s.set(ctx, c.Provider, to, c.IfRevision, c.Wait) })
}

// set writes a limit over the one that it reads first. An empty balance stays what it is.
func (s *limitSession) set(ctx context.Context, provider string, to etcd.Limit, ifRevision *int64, wait time.Duration) error {
	before, err := s.expect(ctx, provider, ifRevision)
	if err != nil {
		return err
	}
	if to.Balance == "" {
		to.Balance = balanceOf(before.Limit)
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

// expect reads a provider, of which nothing need be known. With ifRevision it is an
// error when the limit has another one.
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

// write writes a limit over that of a revision.
func (s *limitSession) write(ctx context.Context, provider string, to etcd.Limit, revision int64) (int64, error) {
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	now, err := s.limits.Set(timed, provider, to, revision)
	if errors.Is(err, etcd.ErrConflict) {
		return 0, s.lost(ctx, provider, revision)
	}
	return now, s.unsure(err)
}

// unsure is explain for an order: one without an answer may have been carried out.
func (s *limitSession) unsure(err error) error {
	switch etcdCode(err) {
	case codes.OK:
		return nil
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return fmt.Errorf("%w; whether it was done is not known: headgate ctl limit get shows it", s.explain(err))
	default:
		return s.explain(err)
	}
}

// lost tells who was first.
func (s *limitSession) lost(ctx context.Context, provider string, revision int64) error {
	e, err := s.expect(ctx, provider, nil)
	if err != nil {
		return err
	}
	return conflict(&e, revision)
}

// conflict says what the limit is now, other than whoever changes it knew.
func conflict(now *etcd.Entry, known int64) error {
	was := fmt.Sprintf("revision %d", known)
	if known == 0 {
		was = "no limit"
	}
	return fmt.Errorf("ctl: nothing was done: %s has %s now, and not %s: somebody else was first. If the change is still right, "+
		"make it again with --if-revision %d", printable(now.Provider), entryLimit(now), was, now.Revision)
}

// tell says what became of a limit.
func (s *limitSession) tell(before, after *etcd.Entry, changed bool) error {
	if s.json {
		return nil // All of it is told at the end.
	}
	text := fmt.Sprintf("%s -> %s", entryLimit(before), entryLimit(after))
	if !changed {
		text = entryLimit(after) + " already"
	}
	_, err := fmt.Fprintf(s.out, "%s: %s\n", printable(after.Provider), text)
	return err
}
