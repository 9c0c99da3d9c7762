package objects

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// unit is a change that takes effect as a whole. In set, nil is a deletion.
type unit struct {
	set   map[source.Key]*source.Object
	since time.Time
	// faults say why the unit is held back.
	faults config.ObjectFaults
	reason string
	// tried has the objects in force when the unit was refused alone. It would be refused again.
	tried *config.Objects
	taken bool
}

// shown is the unit for people.
func (u *unit) shown() Held {
	reason := u.reason
	if len(u.faults) == 0 && reason == "" {
		reason = "too many changes are held back, and this one was not tried yet: correct the others, or wait"
	}
	return Held{u.keys(), u.since, u.faults, reason}
}

// hasAny reports whether the unit has one of the keys.
func (u *unit) hasAny(keys map[source.Key]bool) bool {
	for key := range u.set {
		if keys[key] {
			return true
		}
	}
	return false
}

// order is that in which units are tried if they cannot be tried together: customers need plans.
func (u *unit) order() int {
	if u.hasRuleOrPlan() {
		return 0
	}
	return 1
}

// unitOf makes a unit of a change that is not All.
func unitOf(c source.Change, now time.Time) *unit {
	u := &unit{set: make(map[source.Key]*source.Object, len(c.Objects)+len(c.Deleted)), since: now}
	for _, key := range c.Deleted {
		u.set[key] = nil
	}
	for i := range c.Objects {
		u.set[c.Objects[i].Key] = &c.Objects[i]
	}
	return u
}

// replaced makes units of all objects of a source: one for each object that differs from those in force. A unit that is held back
// stays whole if the source has its objects unchanged.
func (t *Table) replaced(c source.Change, now time.Time) []*unit {
	present := make(map[source.Key]*source.Object, len(c.Objects))
	for i := range c.Objects {
		present[c.Objects[i].Key] = &c.Objects[i]
	}
	keeps := map[source.Key]bool{}
	t.held = slices.DeleteFunc(t.held, func(u *unit) bool {
		kept := u.isIn(present)
		for key := range u.set {
			keeps[key] = keeps[key] || kept
		}
		return !kept
	})
	var units []*unit
	add := func(key source.Key, object *source.Object) {
		if !keeps[key] {
			units = append(units, &unit{set: map[source.Key]*source.Object{key: object}, since: now})
		}
	}
	for i := range c.Objects {
		object := &c.Objects[i]
		if was, known := t.in.Get(object.Key); !known || was.Origin != config.FromSource || was.Object != *object {
			add(object.Key, object)
		}
	}
	for object := range t.in.Sourced {
		if present[object.Key] == nil {
			add(object.Key, nil)
		}
	}
	return units
}

// isIn reports whether a source has the objects of the unit as the unit has them.
func (u *unit) isIn(all map[source.Key]*source.Object) bool {
	for key, object := range u.set {
		has := all[key]
		if (has == nil) != (object == nil) || has != nil && *has != *object {
			return false
		}
	}
	return true
}

// hasRuleOrPlan reports whether other objects may depend on the unit.
func (u *unit) hasRuleOrPlan() bool {
	for key := range u.set {
		if key.Kind != source.Customer {
			return true
		}
	}
	return false
}

// keys gives the objects of a unit, sorted.
func (u *unit) keys() []source.Key {
	return slices.SortedFunc(maps.Keys(u.set), func(a, b source.Key) int {
		return strings.Compare(a.String(), b.String())
	})
}

// merged makes one change of units. Of two units with one object, the later one counts.
func merged(units []*unit) source.Change {
	all := map[source.Key]*source.Object{}
	for _, u := range units {
		maps.Copy(all, u.set)
	}
	var c source.Change
	for key, object := range all {
		if object == nil {
			c.Deleted = append(c.Deleted, key)
		} else {
			c.Objects = append(c.Objects, *object)
		}
	}
	return c
}

// size counts the objects of units.
func size(units []*unit) int {
	n := 0
	for _, u := range units {
		n += len(u.set)
	}
	return n
}
