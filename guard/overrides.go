package guard

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Override gives values of the first part of a rule's key limits of their own.
type Override struct {
	// Value is the value in the request. For parts that are addresses, it is an IP address.
	Value string
	// Many says that Value may be a network, or a pattern: see rule.Override.
	Many bool
	// Policies replace those of the rule.
	Policies []headgate.Policy
	// Unlimited lets requests pass in place of Policies: the rule neither counts nor refuses them, with its ban and its bound of
	// requests in flight.
	Unlimited bool
	// Until is the time from which the Override has no effect, as if it were not there; 0 is no end.
	Until headgate.Instant
}

// Ended reports whether the Override has no effect any more.
func (o *Override) Ended(now headgate.Instant) bool { return o.Until != 0 && o.Until <= now }

// overrides are the Overrides of a rule, prepared for decisions.
type overrides struct {
	index *rule.Overrides
	// windows are empty for an Override that is Unlimited.
	windows [][]window
	until   []headgate.Instant // nil if no Override has an end
}

// prepareOverrides prepares the Overrides of a rule.
func (g *Guard) prepareOverrides(c *Config, r *Rule, claimed *claims) (*overrides, error) {
	if len(r.Overrides) == 0 {
		return nil, nil //nolint:nilnil // A rule without Overrides needs none.
	}
	all := &overrides{windows: make([][]window, len(r.Overrides))}
	for i := range r.Overrides {
		o := &r.Overrides[i]
		if o.Until != 0 && all.until == nil {
			all.until = make([]headgate.Instant, len(r.Overrides))
		}
		if all.until != nil {
			all.until[i] = o.Until
		}
		if o.Unlimited {
			if len(o.Policies) > 0 {
				return nil, fmt.Errorf("override %q has limits and is Unlimited: leave out one of them", o.Value)
			}
			continue
		}
		var err error
		if all.windows[i], err = g.windows(c, r, o.Policies, claimed); err != nil {
			return nil, fmt.Errorf("override %q: %w", o.Value, err)
		}
	}
	var err error
	all.index, err = r.overrideIndex(c.Folds)
	return all, err
}

func (r *Rule) overrideIndex(folds rule.Folds) (*rule.Overrides, error) {
	entries := make([]rule.Override, len(r.Overrides))
	for i := range r.Overrides {
		entries[i] = folds.Override(r.Key[0], rule.Override{Value: r.Overrides[i].Value, Many: r.Overrides[i].Many})
	}
	return rule.NewManyOverrides(r.Key[0], entries)
}

// find gives the number of the Override that applies to a request.
func (o *overrides) find(req *headgate.Request, g *Guard) (number int, found bool) {
	number, found = o.index.Find(req)
	if !found || o.until == nil {
		return number, found
	}
	for now := g.calendarNow(); found && o.until[number] != 0 && o.until[number] <= now; {
		number, found = o.index.Next(req, number)
	}
	return number, found
}

// OverrideAt gives the Override of the rule that applies to a request at a time, or nil. It reads all Overrides each time, so it is
// for explanations. The path of the request is folded.
func (r *Rule) OverrideAt(req *headgate.Request, now time.Time, folds rule.Folds) *Override {
	if len(r.Overrides) == 0 {
		return nil
	}
	index, err := r.overrideIndex(folds)
	if err != nil {
		return nil // A guard with this rule was not made.
	}
	i, found := index.Find(req)
	for found && r.Overrides[i].Ended(headgate.Instant(now.UnixNano())) {
		i, found = index.Next(req, i)
	}
	if !found {
		return nil
	}
	return &r.Overrides[i]
}
