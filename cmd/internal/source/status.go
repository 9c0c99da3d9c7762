package source

import (
	"cmp"
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config/source"
)

// maxShownHeld bounds the changes that the status lists.
const maxShownHeld = 100

// Status implements component.Component.
func (f *Follower) Status(s *admin.Status) {
	n := f.state.Get()
	status := &admin.SourceStatus{
		Kind: f.settings.Kind(), Place: f.settings.Place(), State: stateWord(&n), Revision: n.Revision,
		Changed: timeOrNil(n.Changed), Failure: cmp.Or(n.Failure, n.Lacks), Failures: n.Failures,
		HeldCount: len(n.Held), Held: []admin.HeldStatus{},
		Rules: n.Objects[source.Rule], Plans: n.Objects[source.Plan], Customers: n.Objects[source.Customer],
	}
	if !n.Reached.IsZero() {
		age := time.Since(n.Reached).Seconds()
		status.AgeSeconds = &age
	}
	for i := range n.Held[:min(maxShownHeld, len(n.Held))] {
		status.Held = append(status.Held, heldStatus(&n.Held[i]))
	}
	if f.settings.Cache != "" {
		status.Cache = &admin.CacheStatus{Path: f.settings.Cache, Written: timeOrNil(n.CacheWritten), Failure: n.CacheFailure}
	}
	s.Source = status
}

// stateWord says where what is in force comes from.
func stateWord(n *objects.Snapshot) string {
	switch {
	case !n.Known:
		return "unknown"
	case n.FromCache:
		return "cache"
	default:
		return "followed"
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// heldStatus says which change is held back, and why.
func heldStatus(h *objects.Held) admin.HeldStatus {
	s := admin.HeldStatus{Objects: shownKeys(h.Objects), Since: h.Since.UTC(), Problem: h.Reason}
	if len(h.Faults) == 0 {
		return s
	}
	first := &h.Faults[0]
	if s.At = first.File; first.Line > 0 {
		s.At = fmt.Sprintf("%s:%d:%d", first.File, first.Line, first.Column)
	}
	s.Problem, s.Fix = first.Problem, first.Fix
	if first.Path != "" {
		s.Problem = first.Path + ": " + first.Problem
	}
	if more := len(h.Faults) - 1; more > 0 {
		s.Problem += fmt.Sprintf(" (and %d more)", more)
	}
	return s
}

// shownKeys gives the first keys for people.
func shownKeys(keys []source.Key) []string {
	const most = 5
	shown := []string{}
	for i, key := range keys {
		if i == most {
			return append(shown, fmt.Sprintf("and %d more", len(keys)-most))
		}
		shown = append(shown, key.String())
	}
	return shown
}

// Metrics implements component.Component.
func (f *Follower) Metrics(c *prom.Config) {
	c.Source = func() prom.Source {
		n := f.state.Get()
		return prom.Source{
			Kind: f.settings.Kind(), Revision: n.Revision, Known: n.Known, FromCache: n.FromCache,
			Changed: n.Changed, Reached: n.Reached, Failing: n.Failure != "", Failures: n.Failures,
			Changes: n.Changes, Refused: n.Refused, Held: len(n.Held), HeldObjects: heldObjects(n.Held),
			Rules: n.Objects[source.Rule], Plans: n.Objects[source.Plan], Customers: n.Objects[source.Customer],
			Cache: f.settings.Cache != "", CacheWritten: n.CacheWritten, CacheFailing: n.CacheFailure != "",
		}
	}
}

// heldObjects counts the objects of changes that are held back, by name as far as the metric has names.
func heldObjects(held []objects.Held) []prom.HeldObject {
	var all []prom.HeldObject
	others, seen := map[source.Kind]int{}, map[source.Key]bool{}
	for i := range held {
		for _, key := range held[i].Objects {
			switch {
			case seen[key]:
			case len(all) < prom.MaxHeldObjects && key.Name != prom.OthersHeld:
				all = append(all, prom.HeldObject{Kind: key.Kind.String(), Name: key.Name, N: 1})
			default:
				others[key.Kind]++
			}
			seen[key] = true
		}
	}
	for _, kind := range source.Kinds() {
		if others[kind] > 0 {
			all = append(all, prom.HeldObject{Kind: kind.String(), Name: prom.OthersHeld, N: others[kind]})
		}
	}
	return all
}
