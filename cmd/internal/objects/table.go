package objects

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/sorting"
)

const (
	// maxTogether bounds the objects held back that a change of customers alone is tried with. Customers rarely need
	// each other, and each attempt reads all of them. The next change is tried with the next ones.
	maxTogether = 1000
	// maxNamed bounds how often the units that faults name are divided from the others. Each time, a check names up to
	// 100 faulty rules and plans, and all faulty customers. Halves come after that.
	maxNamed = 32
	// Bounds of the attempts of one Apply. leastAttempts are enough to find one faulty unit of MaxObjects by halves.
	leastAttempts = 40
	// maxWork is in objects that are read again, and attemptWork is what each attempt costs beside that. A check reads
	// about 50,000 objects in a second.
	maxWork     = 50_000
	attemptWork = 500
)

// Table decides which changes take effect. A change is a unit: it takes effect as a whole, or is held back as a whole.
// Held changes are tried again with later changes, because two changes may only be valid together. One goroutine at
// a time uses a Table.
type Table struct {
	in   *config.Objects
	held []*unit
	// attempts and work are those of the present Apply, and named counts its divisions by names.
	attempts, work, named int
	// due is set if an Apply has reached its bounds before it had tried everything.
	due bool
	// lacks says why nothing of a source that has answered is in force: the file alone is faulty without further objects.
	lacks config.ObjectFaults
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
func NewTable(in *config.Objects, put func(*config.Objects) error) *Table {
	return &Table{in: in, put: put}
}

// Objects returns what is in force.
func (t *Table) Objects() *config.Objects { return t.in }

// Held lists what is held back, the oldest first.
func (t *Table) Held() []Held {
	all := make([]Held, len(t.held))
	for i, u := range t.held {
		all[i] = u.shown()
	}
	sorting.StableFunc(all, func(a, b Held) int { return a.Since.Compare(b.Since) })
	return all
}

// HeldObject gives the version of an object that is held back, and why. A nil object is a deletion.
func (t *Table) HeldObject(key source.Key) (object *source.Object, why Held, found bool) {
	for _, u := range t.held {
		if object, found := u.set[key]; found {
			return object, u.shown(), true
		}
	}
	return nil, Held{}, false
}

// Lacks says what the file needs that a source has not given in force. It is empty once objects are known, and before a source has
// answered.
func (t *Table) Lacks() config.ObjectFaults { return t.lacks }

// Due reports whether changes are held back that were not tried yet, because there were too many. Apply tries more of them.
func (t *Table) Due() bool { return t.due }

// Apply takes changes in their order, and returns those that are now held back and were not before. Changes that come
// together take effect in one step, unless one of them is faulty. Without changes, it tries what is held back. It ends
// early with ctx: then what it has not tried is held back.
func (t *Table) Apply(ctx context.Context, now time.Time, changes ...source.Change) []Held {
	var fresh []*unit
	all := false
	for _, c := range changes {
		if c.All {
			all = true
			fresh = t.replaced(c, now)
		} else if len(c.Objects)+len(c.Deleted) > 0 {
			fresh = append(fresh, unitOf(c, now))
		}
	}
	fresh = t.supersede(fresh)
	t.apply(ctx, fresh)
	if (all || len(t.lacks) > 0) && !t.in.Known() && ctx.Err() == nil {
		t.lacks, _ = t.take(nil) // A source without a valid object is known too, if the file is complete.
	}
	if t.in.Known() {
		t.lacks = nil
	}
	begun := make([]Held, 0, len(fresh))
	for _, u := range fresh {
		if !u.taken {
			begun = append(begun, u.shown())
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
func (t *Table) apply(ctx context.Context, fresh []*unit) {
	again := t.held
	if size(again) > maxTogether && len(fresh) > 0 && !slices.ContainsFunc(fresh, (*unit).hasRuleOrPlan) {
		n := countTogether(again)
		t.held = slices.Concat(again[n:], again[:n]) // The next change is tried with others.
		again = again[:n]
	}
	if len(fresh) == 0 { // Each piece of many changes tries what the former ones have not.
		again = slices.DeleteFunc(slices.Clone(again), t.wasTried)
	}
	candidates := slices.Concat(again, fresh)
	t.held = append(t.held, fresh...)
	slices.SortStableFunc(candidates, func(a, b *unit) int { return a.order() - b.order() })
	t.attempts, t.work, t.named, t.due = 0, 0, 0, false
	for {
		former := t.in
		t.takeMost(ctx, candidates)
		t.held = slices.DeleteFunc(t.held, func(u *unit) bool { return u.taken })
		candidates = slices.DeleteFunc(candidates, func(u *unit) bool { return u.taken })
		if len(t.held) == 0 {
			t.held = nil // Its array has space for all changes that came together.
		}
		if t.in == former {
			return
		}
	}
}

// countTogether counts the first units that have about maxTogether objects.
func countTogether(units []*unit) (n int) {
	for objects := 0; n < len(units) && objects < maxTogether; n++ {
		objects += len(units[n].set)
	}
	return n
}

// wasTried reports whether a unit was refused alone by what is in force.
func (t *Table) wasTried(u *unit) bool { return u.tried == t.in }

// takeMost puts in force what it can of units: all together, or else in two parts, until single units are refused.
// Faults may name the wrong unit or none, so that they only decide which units are tried first. A unit that was refused alone is
// tried again together with others, because it may be valid with one of them only.
func (t *Table) takeMost(ctx context.Context, units []*unit) {
	if !slices.ContainsFunc(units, func(u *unit) bool { return !t.wasTried(u) }) {
		return
	}
	if ctx.Err() != nil || t.attempts >= leastAttempts && t.work >= maxWork {
		t.due = true
		return
	}
	faults, err := t.take(units)
	switch {
	case faults == nil && err == nil:
		for _, u := range units {
			u.taken = true
		}
	case len(units) == 1:
		u := units[0]
		if u.faults, u.reason, u.tried = faults, "", t.in; err != nil {
			u.reason, u.tried = err.Error(), nil // The next attempt may succeed, because put also fails for other reasons.
		}
	default:
		first, second := t.divide(units, faults)
		t.takeMost(ctx, first)
		t.takeMost(ctx, second)
	}
}

// divide makes two parts of units: those that faults do not name and the others, or halves.
func (t *Table) divide(units []*unit, faults config.ObjectFaults) (first, second []*unit) {
	bad := make(map[source.Key]bool, len(faults))
	for i := range faults {
		bad[faults[i].Key] = true
	}
	if t.named++; t.named <= maxNamed {
		for _, u := range units {
			if u.hasAny(bad) {
				second = append(second, u)
			} else {
				first = append(first, u)
			}
		}
	}
	if len(first) == 0 || len(second) == 0 {
		return units[:len(units)/2], units[len(units)/2:]
	}
	return first, second
}

// take puts units in force together, or says why they cannot be.
func (t *Table) take(units []*unit) (config.ObjectFaults, error) {
	t.attempts++
	t.work += size(units) + attemptWork
	if slices.ContainsFunc(units, (*unit).hasRuleOrPlan) {
		for _, kind := range source.Kinds() {
			t.work += t.in.Len(kind)
		}
	}
	next, faults := t.in.With(merged(units))
	if len(faults) > 0 {
		return faults, nil
	}
	if err := t.put(next); err != nil {
		return nil, err
	}
	t.in = next
	return nil, nil
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
