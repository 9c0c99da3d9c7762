package config

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/rule"
)

// Objects are the rules, plans and customers in force: those of a file, and those of a source. Objects is immutable and
// safe for concurrent use: With makes changed ones.
//
// The rules of the source come after those of the file, by name. The file has default_plan.
type Objects struct {
	file  *Config
	texts *fileTexts
	// known is set after the first With: before, the source's objects are not known.
	known bool
	// rules and plans are those of the source, by name.
	rules, plans map[string]source.Object
	base         *objectBase
	// customers are those of the source, by name. names has the names of those that rules find under another one, by that.
	customers *shards[*customerEntry]
	sum       customerSum
	names     *shards[string]
	// size is the length of the texts of the source's objects.
	size int
	// periods counts the limits that the customers of the source have by quota and period.
	periods map[quotaPeriod]periodUse
	quotas  *guard.Quotas
}

// Origin says where an object is written.
type Origin uint8

const (
	// FromFile objects are in the file, which only its owner changes.
	FromFile Origin = iota + 1
	// FromSource objects are in the source.
	FromSource
)

// String gives the word for people.
func (o Origin) String() string {
	if o == FromFile {
		return "file"
	}
	return "source"
}

// Entry is an object and where it is written. An object of the file has revision 0.
type Entry struct {
	source.Object

	Origin Origin
}

// ObjectFault is a mistake in one object. Line and Column of its Fault count within the text of the object.
type ObjectFault struct {
	Fault

	// Key names the object of the change that is at fault. It is zero if the fault is in the file: then File names that.
	Key source.Key
}

// ObjectFaults are all faults of a change.
//
//nolint:errname // The documentation also calls a mistake in a configuration a fault.
type ObjectFaults []ObjectFault

// Error returns the headline of each fault, separated by newlines.
func (all ObjectFaults) Error() string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].Headline()
	}
	return strings.Join(texts, "\n")
}

// NewObjects gives the objects of a file that Load or Parse has read, as they are before the source has answered. The
// error is about the file.
func NewObjects(file *Config) (*Objects, error) {
	o := &Objects{
		file: file, rules: map[string]source.Object{}, plans: map[string]source.Object{}, periods: map[quotaPeriod]periodUse{},
		texts: &fileTexts{written: file.written},
	}
	base, faults := o.readBase(file.Source == nil)
	if len(faults) > 0 {
		return nil, faults
	}
	o.base = base
	return o, nil
}

// With gives Objects with a change. It reads the objects that change, and those that depend on a changed plan. A change
// of a rule or a plan also reads the other rules and plans, and the file; a rule that counts another quota reads all
// customers. With faults, the Objects are nil.
func (o *Objects) With(c source.Change) (*Objects, ObjectFaults) {
	w := &objectChange{from: o, next: *o, changing: map[source.Key]bool{}}
	if w.collect(c); len(w.faults) > 0 {
		return nil, w.result()
	}
	w.next.known = true
	w.readBase()
	if len(w.faults) > 0 {
		return nil, w.result()
	}
	w.readCustomers()
	if len(w.faults) > 0 {
		return nil, w.result()
	}
	w.addQuotas()
	if len(w.faults) > 0 {
		return nil, w.result()
	}
	next := w.next // A pointer to the field would keep everything that the change has read.
	return &next, nil
}

// File returns the configuration of the file alone.
func (o *Objects) File() *Config { return o.file }

// Known reports whether the objects of the source are known: With was called.
func (o *Objects) Known() bool { return o.known }

// Config returns the whole configuration in force. Its Customers are those of the file; its Quotas have all.
func (o *Objects) Config() *Config {
	own := *o.base.config
	own.quotas, own.sourceKnown, own.customerSum = o.quotas, o.known, o.sum
	return &own
}

// SameRules reports whether both have the same rules and plans, so that they differ at most in customers.
func (o *Objects) SameRules(other *Objects) bool {
	return o.base == other.base && o.known == other.known
}

// Quotas returns the plans and customers as the guard has them; nil if no rule has a quota.
func (o *Objects) Quotas() *guard.Quotas { return o.quotas }

// Len returns the number of objects of the source of one kind.
func (o *Objects) Len(kind source.Kind) int {
	switch kind {
	case source.Rule:
		return len(o.rules)
	case source.Plan:
		return len(o.plans)
	default:
		return o.customers.size()
	}
}

// Get returns an object by its key.
func (o *Objects) Get(key source.Key) (Entry, bool) {
	if object, found := o.fromSource(key); found {
		return Entry{object, FromSource}, true
	}
	text, found := o.texts.get(key)
	return Entry{source.Object{Key: key, Text: text}, FromFile}, found
}

// fromSource returns an object of the source.
func (o *Objects) fromSource(key source.Key) (source.Object, bool) {
	switch key.Kind {
	case source.Rule:
		object, found := o.rules[key.Name]
		return object, found
	case source.Plan:
		object, found := o.plans[key.Name]
		return object, found
	case source.Customer:
		if entry, found := o.customers.get(key.Name); found {
			return entry.Object, true
		}
	case source.Mode: // It is no part of a configuration.
	}
	return source.Object{}, false
}

// Needs lists the objects of the source without which an object cannot be in force: the plan of a customer, and the default
// plan of a rule that counts a quota.
func (o *Objects) Needs(key source.Key) []source.Key {
	plan := ""
	switch key.Kind {
	case source.Customer:
		if entry, found := o.customers.get(key.Name); found {
			plan = entry.planOf(o.base)
		}
	case source.Rule:
		counts := func(r guard.Rule) bool { return r.Name == key.Name && r.Quota != "" }
		if slices.ContainsFunc(o.base.config.Rules, counts) {
			plan = o.base.config.DefaultPlan
		}
	case source.Plan, source.Mode: // They need no other object.
	}
	if _, found := o.plans[plan]; !found {
		return nil // It is in the file.
	}
	return []source.Key{{Kind: source.Plan, Name: plan}}
}

// IsApart reports whether a change that leads from former Objects to these, and sets a customer, is valid whatever changes of other
// customers come before it. Then the customer has only a plan and a note, no other customer can have its name for rules, and the source is
// below 99 % of its bounds. The limits of a plan count as soon as a customer has the plan.
func (o *Objects) IsApart(former *Objects, customer string) bool {
	entry, found := o.customers.get(customer)
	_, known := former.customers.get(customer)
	n := len(o.rules) + len(o.plans) + o.customers.size()
	const limits = check.MaxPolicies / 100 * 99
	return found && !entry.form.own && (known || !slices.ContainsFunc(o.base.facts.parts, rule.Part.HasSpellings)) &&
		n < source.MaxObjects/100*99 && o.size < source.MaxTotal/100*99 && o.base.limits+o.quotas.Limits(limits) < limits
}

// List returns at most n objects of a kind with names after a name, sorted by name. It looks at all of them.
func (o *Objects) List(kind source.Kind, after string, n int) []Entry {
	names := o.texts.names(kind)
	for object := range o.Sourced {
		if object.Kind == kind {
			names = append(names, object.Name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	slices.Sort(names)
	all := make([]Entry, 0, min(max(n, 0), len(names)))
	for _, name := range names[:cap(all)] {
		if entry, found := o.Get(source.Key{Kind: kind, Name: name}); found {
			all = append(all, entry)
		}
	}
	return all
}

// Sourced calls yield with each object of the source in force, in no order.
func (o *Objects) Sourced(yield func(source.Object) bool) {
	for _, all := range [...]map[string]source.Object{o.rules, o.plans} {
		for _, object := range all {
			if !yield(object) {
				return
			}
		}
	}
	for _, entry := range o.customers.all {
		if !yield(entry.Object) {
			return
		}
	}
}
