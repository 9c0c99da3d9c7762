package ctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/pace/etcd"
)

// await waits until a limit that was set is in force, and says from when on it is as soon
// as that is known. It gives the plan that divides the limit; nil is none, because no
// instance lives that could make one, or because nothing is waited for.
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
		return nil, s.say("in force when an instance lives: now none does")
	}
	now := s.now()
	text := inForce(&etcd.Entry{Limit: set.Limit, Revision: set.Revision, Plan: p}, now) + ", " + counted(p.Instances, "instance")
	if p.From.After(end) {
		return p, s.say(text + "; that is not waited for")
	}
	if err := s.say(text); err != nil || !p.From.After(now) {
		return p, err
	}
	if !pause(ctx, p.From.Sub(now)) {
		return p, interrupted(set)
	}
	return p, nil
}

// interrupted says how far a command came whose wait was ended by a signal.
func interrupted(set *etcd.Entry) error {
	return fmt.Errorf("ctl: %s is set, and the wait was ended before it was in force", limitText(set.Limit))
}

// say writes a line for people.
func (s *limitSession) say(text string) error {
	if s.json {
		return nil
	}
	_, err := fmt.Fprintln(s.out, text)
	return err
}

// awaitPlan waits for a plan that divides the limit; nil is a provider without instances.
func (s *limitSession) awaitPlan(ctx context.Context, set *etcd.Entry, wait time.Duration) (*etcd.PlanInfo, error) {
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var last *etcd.Entry
	err := s.limits.Watch(timed, set.Provider, func(e etcd.Entry) {
		if last == nil || !settled(last, set) { // Else the watch is being ended.
			last = &e
		}
		if settled(last, set) {
			cancel()
		}
	})
	if ctx.Err() != nil {
		return nil, interrupted(set)
	}
	if err == nil && (last == nil || !settled(last, set)) { // Of an etcd that has gone, a watch says nothing.
		var e etcd.Entry
		e, err = s.get(ctx, set.Provider)
		last = &e
	}
	if err != nil && !errors.Is(err, etcd.ErrNotFound) {
		return nil, fmt.Errorf("%w; %s is set, and whether it is in force is not known", s.explain(err), limitText(set.Limit))
	}
	return conclude(last, set, wait)
}

// settled reports whether there is nothing more to wait for.
func settled(e, set *etcd.Entry) bool {
	return e.Revision != set.Revision || planned(e.Plan, set.Limit) || len(e.Members) == 0
}

// conclude says what has become of a limit that was set.
func conclude(e, set *etcd.Entry, wait time.Duration) (*etcd.PlanInfo, error) {
	switch {
	case e.Revision == 0:
		return nil, fmt.Errorf("ctl: %s was set, and deleted before it was in force", limitText(set.Limit))
	case e.Revision != set.Revision:
		return nil, fmt.Errorf("ctl: %s was set, and is %s before it was in force: somebody else has changed it",
			limitText(set.Limit), entryLimit(e))
	case planned(e.Plan, set.Limit):
		return e.Plan, nil
	case len(e.Members) == 0:
		return nil, nil //nolint:nilnil // because there is nobody to wait for
	}
	return nil, fmt.Errorf("ctl: %s is set, and after %s none of %s has made a plan of it: do they reach etcd? "+
		"headgate ctl limit get %s shows them", limitText(set.Limit), wait, counted(len(e.Members), "instance"), set.Provider)
}
