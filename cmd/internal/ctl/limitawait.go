package ctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/pace/etcd"
)

// await waits until a limit is in force, and prints the time from which it is in force when
// that time is known. It returns the plan that divides the limit. The plan is nil when no
// instance is running or wait is 0.
func (s *limitSession) await(ctx context.Context, set *etcd.Entry, wait time.Duration) (*etcd.PlanInfo, error) {
	if wait <= 0 {
		return nil, nil //nolint:nilnil // because none is asked for
	}
	end := s.now().Add(wait)
	p, err := s.awaitPlan(ctx, set, wait)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, s.say("in force when an instance starts: no instance is running now")
	}
	now := s.now()
	text := inForce(&etcd.Entry{Limit: set.Limit, Revision: set.Revision, Plan: p}, now) + ", " + field.Counted(p.Instances, "instance")
	if p.From.After(end) {
		return p, s.say(text + "; not waiting that long")
	}
	if err := s.say(text); err != nil || !p.From.After(now) {
		return p, err
	}
	if !pause(ctx, p.From.Sub(now)) {
		return p, interrupted(set)
	}
	return p, nil
}

// interrupted is the error of a command whose wait was ended by a signal.
func interrupted(set *etcd.Entry) error {
	return fmt.Errorf("ctl: %s is set, but the wait was interrupted before it was in force", limitText(set.Limit))
}

// say writes a line, unless the output is JSON.
func (s *limitSession) say(text string) error {
	if s.json {
		return nil
	}
	_, err := fmt.Fprintln(s.out, text)
	return err
}

// awaitPlan waits for a plan that divides the limit. It returns nil when the provider has no
// running instance.
func (s *limitSession) awaitPlan(ctx context.Context, set *etcd.Entry, wait time.Duration) (*etcd.PlanInfo, error) {
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var last *etcd.Entry
	err := s.limits.Watch(timed, set.Provider, func(e etcd.Entry) {
		if last == nil || !settled(last, set) { // After a settled entry, the watch is already canceled.
			last = &e
		}
		if settled(last, set) {
			cancel()
		}
	})
	if ctx.Err() != nil {
		return nil, interrupted(set)
	}
	if err == nil && (last == nil || !settled(last, set)) { // A watch does not report an unreachable etcd. A read does.
		var e etcd.Entry
		e, err = s.get(ctx, set.Provider)
		last = &e
	}
	if err != nil && !errors.Is(err, etcd.ErrNotFound) {
		return nil, fmt.Errorf("%w; %s is set, and it is unknown whether the limit is in force", s.explain(err), limitText(set.Limit))
	}
	return conclude(last, set, wait)
}

// settled reports whether the wait is over: the limit was replaced, it has a plan, or no
// instance is running.
func settled(e, set *etcd.Entry) bool {
	return e.Revision != set.Revision || planned(e.Plan, set.Limit) || len(e.Members) == 0
}

// conclude returns the plan of the limit, or an error that says why the limit is not in force.
func conclude(e, set *etcd.Entry, wait time.Duration) (*etcd.PlanInfo, error) {
	switch {
	case e.Revision == 0:
		return nil, fmt.Errorf("ctl: %s was set, and deleted before it was in force", limitText(set.Limit))
	case e.Revision != set.Revision:
		return nil, fmt.Errorf("ctl: %s was set, and is %s before it was in force: another operator has changed it",
			limitText(set.Limit), entryLimit(e))
	case planned(e.Plan, set.Limit):
		return e.Plan, nil
	case len(e.Members) == 0:
		return nil, nil //nolint:nilnil // because no instance is running
	}
	return nil, fmt.Errorf("ctl: %s is set, and after %s none of %s has planned it: check that they reach etcd: "+
		"headgate ctl limit get %s shows them", limitText(set.Limit), wait, field.Counted(len(e.Members), "instance"), set.Provider)
}
