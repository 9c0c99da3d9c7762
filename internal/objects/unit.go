package objects

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/source"
)

// unit is a change that takes effect as a whole. In set, nil is a deletion.
type unit struct {
	set   map[source.Key]*source.Object
	since time.Time
	// faults say why the unit is held back.
	faults config.ObjectFaults
	reason string
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

// unitsOf makes units of all objects of a source: one for each object that differs from those in force.
func unitsOf(c source.Change, in *config.Objects, now time.Time) []*unit {
	present := make(map[source.Key]bool, len(c.Objects))
	var units []*unit
	add := func(key source.Key, object *source.Object) {
		units = append(units, &unit{set: map[source.Key]*source.Object{key: object}, since: now})
	}
	for i := range c.Objects {
		object := &c.Objects[i]
		present[object.Key] = true
		if was, known := in.Get(object.Key); !known || was.Origin != config.FromSource || was.Text != object.Text ||
			was.Revision != object.Revision {
			add(object.Key, object)
		}
	}
	for object := range in.Sourced {
		if !present[object.Key] {
			add(object.Key, nil)
		}
	}
	return units
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
