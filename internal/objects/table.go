package objects

import (
	"slices"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/source"
)

const (
	// maxRounds bounds how often faulty units are left out before the others are tried again. Each round names up to
	// 100 faulty rules and plans, and all faulty customers.
	maxRounds = 32
	// maxTogether bounds the objects held back that a change of customers alone is tried with. Customers rarely need
	// each other, and each attempt reads all of them.
	maxTogether = 1000
)

// Table decides which changes take effect. A change is a unit: it takes effect as a whole, or is held back as a whole.
// Held changes are tried again with later changes, because two changes may only be valid together. One goroutine at
// a time uses a Table.
type Table struct {
	in   *config.Objects
	held []*unit
	// put puts objects in force. After its error, the former ones stay.
	put func(*config.Objects) error
}

// Held is a change that is not in force.
type Held struct {
	Objects []source.Key
	Since   time.Time
	// Faults say why, and Reason if the faults do not.
	Faults config.ObjectFaults
	Reason string
}

// NewTable makes a table in which the objects are in force. put puts others in force; its error refuses them.
func NewTable(in *config.Objects, put func(*config.Objects) error) *Table { return &Table{in: in, put: put} }

// Objects returns what is in force.
func (t *Table) Objects() *config.Objects { return t.in }

// Held lists what is held back, the oldest first.
func (t *Table) Held() []Held {
	all := make([]Held, len(t.held))
	for i, u := range t.held {
		all[i] = Held{u.keys(), u.since, u.faults, u.reason}
	}
	return all
}

// HeldKeys lists the objects that are held back, sorted within each change.
func (t *Table) HeldKeys() []source.Key {
	var keys []source.Key
	for _, u := range t.held {
		keys = append(keys, u.keys()...)
	}
	return keys
}

// Apply takes changes in their order, and returns those that are now held back and were not before. Changes that come
// together take effect in one step, unless one of them is faulty.
func (t *Table) Apply(now time.Time, changes ...source.Change) []Held {
	var fresh []*unit
	all := false
	for _, c := range changes {
		if c.All {
			all, fresh, t.held = true, unitsOf(c, t.in, now), nil
		} else {
			fresh = append(fresh, unitOf(c, now))
		}
	}
	fresh = t.supersede(fresh)
	t.apply(fresh)
	if all && !t.in.Known() {
		t.take(nil) // A source without a valid object is known too, if the file is complete.
	}
	var begun []Held
	for _, u := range t.held {
		if slices.Contains(fresh, u) {
			begun = append(begun, Held{u.keys(), u.since, u.faults, u.reason})
		}
	}
	return begun
}

// supersede drops former versions of objects from what is held back and from earlier units.
func (t *Table) supersede(fresh []*unit) []*unit {
	if len(t.held) == 0 && len(fresh) < 2 {
		return fresh
	}
	newer := map[source.Key]bool{}
	older := func(u *unit) bool {
		for key := range u.set {
			if newer[key] {
				delete(u.set, key)
			}
			newer[key] = true
		}
		return len(u.set) == 0
	}
	kept := make([]*unit, 0, len(fresh))
	for _, u := range slices.Backward(fresh) {
		if !older(u) {
			kept = append(kept, u)
		}
	}
	slices.Reverse(kept)
	t.held = slices.DeleteFunc(t.held, older)
	return kept
}

// apply puts in force what it can of the units and of what is held back.
func (t *Table) apply(fresh []*unit) {
	candidates := append(slices.Clone(t.held), fresh...)
	if size(t.held) > maxTogether && !slices.ContainsFunc(fresh, (*unit).hasRuleOrPlan) {
		candidates = fresh
	}
	taken := t.takeMost(candidates)
	rest := slices.DeleteFunc(append(slices.Clone(t.held), fresh...), func(u *unit) bool { return taken[u] })
	t.held = rest
	for _, u := range fresh {
		if !taken[u] && len(fresh) <= maxRounds && t.take([]*unit{u}) {
			t.held = slices.DeleteFunc(t.held, func(other *unit) bool { return other == u })
		}
	}
}

// takeMost tries units together, and leaves out those with faults until the others are valid. It returns those that
// took effect.
func (t *Table) takeMost(units []*unit) map[*unit]bool {
	for round := 0; round < maxRounds && len(units) > 0; round++ {
		if t.take(units) {
			taken := make(map[*unit]bool, len(units))
			for _, u := range units {
				taken[u] = true
			}
			return taken
		}
		next := t.withoutFaulty(units)
		if len(next) == len(units) {
			return nil
		}
		units = next
	}
	return nil
}

// take puts units in force together, or notes why they cannot be.
func (t *Table) take(units []*unit) bool {
	next, faults := t.in.With(merged(units))
	reason := ""
	if len(faults) == 0 {
		err := t.put(next)
		if err == nil {
			t.in = next
			return true
		}
		reason = err.Error()
	}
	blame(units, faults, reason)
	return false
}

// blame gives each unit the faults of its objects. A unit without any has those that name no unit.
func blame(units []*unit, faults config.ObjectFaults, reason string) {
	known := map[source.Key]bool{}
	for _, u := range units {
		for key := range u.set {
			known[key] = true
		}
	}
	byKey := map[source.Key]config.ObjectFaults{}
	var others config.ObjectFaults
	for _, f := range faults {
		if known[f.Key] {
			byKey[f.Key] = append(byKey[f.Key], f)
		} else {
			others = append(others, f)
		}
	}
	for _, u := range units {
		u.faults, u.reason = nil, reason
		for _, key := range u.keys() {
			u.faults = append(u.faults, byKey[key]...)
		}
		if len(u.faults) == 0 {
			u.faults = others
		}
	}
}

// withoutFaulty leaves out the units that have faults. If the faults name none of them, it leaves out those that others
// may depend on.
func (t *Table) withoutFaulty(units []*unit) []*unit {
	named := func(u *unit) bool {
		return slices.ContainsFunc(u.faults, func(f config.ObjectFault) bool { _, has := u.set[f.Key]; return has })
	}
	if slices.ContainsFunc(units, named) {
		return slices.DeleteFunc(slices.Clone(units), named)
	}
	return slices.DeleteFunc(slices.Clone(units), (*unit).hasRuleOrPlan)
}

// Reload gives the objects in force with another file. The error says why they do not fit it.
func (t *Table) Reload(file *config.Config) (*config.Objects, error) {
	next, err := config.NewObjects(file)
	if err != nil || !t.in.Known() {
		return next, err
	}
	c := source.Change{All: true}
	for object := range t.in.Sourced {
		c.Objects = append(c.Objects, object)
	}
	next, faults := next.With(c)
	if len(faults) > 0 {
		return nil, faults
	}
	return next, nil
}

// Reloaded takes the result of Reload, which is in force now.
func (t *Table) Reloaded(in *config.Objects) { t.in = in }
