package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/sorting"
)

// objectChange is one call of Objects.With.
type objectChange struct {
	from *Objects
	next Objects
	// set are the objects with another text, touched those with only another revision, and deleted those that are gone.
	set     []source.Object
	touched []source.Object
	deleted []source.Key
	// changing has the keys of set.
	changing map[source.Key]bool
	// rulesOrPlans is set if the change has a rule or a plan.
	rulesOrPlans bool
	// all is set if all customers are read.
	all    bool
	read   *customerReading
	again  map[string]*customerEntry // the customers that are read, and their new entries
	faults ObjectFaults
}

func (w *objectChange) fault(key source.Key, f Fault) {
	w.faults = append(w.faults, ObjectFault{Key: key, Fault: f})
}

// result gives the faults by key and place.
func (w *objectChange) result() ObjectFaults {
	sorting.StableFunc(w.faults, func(a, b ObjectFault) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), strings.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column))
	})
	return w.faults
}

// collect finds what changes, and checks the bounds.
func (w *objectChange) collect(c source.Change) {
	present := map[source.Key]bool{}
	for _, object := range c.Objects {
		if present[object.Key] {
			w.fault(object.Key, *nameFault(object.Key, "is twice in a change", "write each object once"))
			continue
		}
		present[object.Key] = true
		w.collectOne(object)
	}
	deleted := c.Deleted
	if c.All {
		deleted = nil
		for object := range w.from.Sourced {
			if !present[object.Key] {
				deleted = append(deleted, object.Key)
			}
		}
	}
	for _, key := range deleted {
		if _, known := w.from.fromSource(key); known && !present[key] {
			w.deleted = append(w.deleted, key)
			w.rulesOrPlans = w.rulesOrPlans || key.Kind != source.Customer
		}
	}
	sorting.Func(w.set, func(a, b source.Object) int { return strings.Compare(a.Name, b.Name) })
	w.bound(source.MaxTotal)
	if len(w.faults) == 0 {
		w.replaceRulesAndPlans()
	}
}

// collectOne takes one object.
func (w *objectChange) collectOne(object source.Object) {
	was, known := w.from.fromSource(object.Key)
	switch {
	case object.Kind < source.Rule || object.Kind > source.Customer:
		w.fault(object.Key, *nameFault(object.Key, fmt.Sprintf("has the kind %d", object.Kind), "use rules, plans or customers"))
	case source.CheckName(object.Name) != nil:
		w.fault(object.Key, *nameFault(object.Key, "has a name that is empty, too long or not printable",
			fmt.Sprintf("use 1 to %d bytes of printable UTF-8", source.MaxName)))
	case len(object.Text) > source.MaxText:
		w.fault(object.Key, *nameFault(object.Key, "is larger than "+field.FormatSize(source.MaxText), "write a shorter text"))
	case known && was.Text == object.Text:
		if was.Revision != object.Revision {
			w.touched = append(w.touched, object)
		}
	default:
		w.set, w.changing[object.Key] = append(w.set, object), true
		w.rulesOrPlans = w.rulesOrPlans || object.Kind != source.Customer
		if !known && w.from.inFile(object.Key) {
			w.fault(object.Key, *nameFault(object.Key, "is also in the file "+w.from.file.written.source.name,
				"remove it from the source, or from the file"))
		}
	}
}

// inFile reports whether the file has an object of the name.
func (o *Objects) inFile(key source.Key) bool {
	switch key.Kind {
	case source.Rule:
		return slices.ContainsFunc(o.file.Rules, func(r guard.Rule) bool { return r.Name == key.Name })
	case source.Plan:
		return slices.ContainsFunc(o.file.Plans, func(p guard.Plan) bool { return p.Name == key.Name })
	default:
		return false // Rules find customers by other names: see addNames.
	}
}

// bound refuses too many objects, and too much text.
func (w *objectChange) bound(most int) {
	n := len(w.from.rules) + len(w.from.plans) + w.from.customers.size() - len(w.deleted)
	w.next.size = w.from.size
	for _, key := range w.deleted {
		was, _ := w.from.fromSource(key)
		w.next.size -= len(was.Text)
	}
	var last, longer source.Key
	for _, object := range w.set {
		was, known := w.from.fromSource(object.Key)
		if !known {
			n, last = n+1, object.Key
		}
		if w.next.size += len(object.Text) - len(was.Text); len(object.Text) > len(was.Text) {
			longer = object.Key
		}
	}
	if n > source.MaxObjects && last != (source.Key{}) {
		w.fault(last, *nameFault(last, fmt.Sprintf("the source would have %d objects", n),
			fmt.Sprintf("use at most %d", source.MaxObjects)))
	}
	if w.next.size > most && longer != (source.Key{}) {
		w.fault(longer, *nameFault(longer, fmt.Sprintf("the objects of the source would have %d bytes", w.next.size),
			"use at most "+field.FormatSize(int64(most))+" in total"))
	}
}

// replaceRulesAndPlans makes the rules and plans of the next Objects.
func (w *objectChange) replaceRulesAndPlans() {
	n := &w.next
	n.rules, n.plans = maps.Clone(n.rules), maps.Clone(n.plans)
	named := map[source.Kind]map[string]source.Object{source.Rule: n.rules, source.Plan: n.plans}
	for _, key := range w.deleted {
		delete(named[key.Kind], key.Name)
	}
	for _, all := range [...][]source.Object{w.set, w.touched} {
		for _, object := range all {
			if object.Kind != source.Customer {
				named[object.Kind][object.Name] = object
			}
		}
	}
}

// readBase reads the rules and plans again if they change.
func (w *objectChange) readBase() {
	if !w.rulesOrPlans && w.from.known {
		return
	}
	base, faults := w.next.readBase(true)
	if w.faults = append(w.faults, faults...); len(faults) == 0 {
		w.next.base = base
	}
}

// customersAgain lists the customers to read, by name.
func (w *objectChange) customersAgain() []source.Object {
	var again []source.Object
	changed := map[string]bool{}
	for _, object := range w.set {
		if object.Kind == source.Customer {
			again, changed[object.Name] = append(again, object), true
		}
	}
	base, former := w.next.base, w.from.base
	if base == former {
		return again
	}
	for _, key := range w.deleted {
		changed[key.Name] = changed[key.Name] || key.Kind == source.Customer
	}
	w.all = !w.from.known || !base.sameQuestions(former)
	plans := base.changedPlans(former)
	if !w.all && len(plans) == 0 {
		return again
	}
	for name, entry := range w.from.customers.all {
		plan := entry.planOf(base)
		switch {
		case changed[name]:
		case base.plans[plan] == nil && former.plans[plan] != nil:
			w.faultOfPlan(plan, fmt.Sprintf("is the plan of customer %s", quote(name)))
		case w.all || entry.form.own && plans[plan]:
			again = append(again, entry.Object)
		}
	}
	sorting.Func(again, func(a, b source.Object) int { return strings.Compare(a.Name, b.Name) })
	return again
}

// faultOfPlan notes once that a plan is missing.
func (w *objectChange) faultOfPlan(plan, problem string) {
	key := source.Key{Kind: source.Plan, Name: plan}
	if !slices.ContainsFunc(w.faults, func(f ObjectFault) bool { return f.Key == key }) {
		w.fault(key, *nameFault(key, problem, "keep the plan, or move its customers first"))
	}
}

// blame notes the faults of a customer. If only another object changes, that is at fault.
func (w *objectChange) blame(object source.Object, faults Faults) {
	const most = 3 // A text has as many faults as it has fields, and the first ones are enough to correct it.
	key := object.Key
	if w.changing[key] {
		for _, f := range faults[:min(most, len(faults))] {
			w.fault(key, f)
		}
		return
	}
	blamed := source.Key{}
	if was, known := w.from.customers.get(object.Name); known {
		blamed = w.changedKey(source.Key{Kind: source.Plan, Name: was.planOf(w.next.base)})
	}
	f := faults[0]
	w.fault(blamed, Fault{
		File: w.fileOf(blamed), Path: f.Path,
		Problem: "the customer no longer fits: " + f.Problem, Fix: f.Fix,
	})
}

// fileOf gives what stands for the file in a fault of an object, or of the file itself.
func (w *objectChange) fileOf(key source.Key) string {
	if key == (source.Key{}) {
		return w.from.file.written.source.name
	}
	return key.String()
}

// changedKey gives the key if the change has it, else the first rule or plan of the change.
func (w *objectChange) changedKey(key source.Key) source.Key {
	var first source.Key
	value := func(k source.Key) bool {
		if first == (source.Key{}) && k.Kind != source.Customer {
			first = k
		}
		return k == key
	}
	for i := range w.set {
		if value(w.set[i].Key) {
			return key
		}
	}
	if slices.ContainsFunc(w.deleted, value) {
		return key
	}
	return first
}

// holder finds the customer that has a limit with a quota and period, for messages.
func (w *objectChange) holder(at quotaPeriod) string {
	has := func(e *customerEntry) bool {
		return slices.ContainsFunc(e.form.used, func(u limitUse) bool { return u.at == at })
	}
	for name, entry := range w.again {
		if has(entry) {
			return customersName + "." + name
		}
	}
	for name, entry := range w.from.customers.all {
		if has(entry) {
			return customersName + "." + name
		}
	}
	return "another limit"
}

// checkPeriods finds limits of customers that do not change and no longer agree with those of plans.
func (w *objectChange) checkPeriods(periods map[quotaPeriod]periodUse) {
	base := w.next.base
	if base == w.from.base {
		return
	}
	for at, use := range periods {
		first, known := base.facts.algorithms[at]
		number, numbered := base.facts.numbers[quotaNumber{at.quota, use.number}]
		var problem, path string
		switch {
		case known && first.algorithm != use.algorithm:
			problem, path = fmt.Sprintf("counts %s in %s by %s, but %s counts by %s", at.quota, at.period, first.algorithm, w.holder(at),
				use.algorithm), first.path
		case !known && numbered && number.period != at.period:
			problem, path = fmt.Sprintf("the period %s has the same number in stores as %s of %s", number.period, at.period, w.holder(at)),
				number.path
		default:
			continue
		}
		plan, _, _ := strings.Cut(strings.TrimPrefix(path, plansName+"."), ".")
		key := w.changedKey(source.Key{Kind: source.Plan, Name: plan})
		w.fault(key, Fault{
			File: w.fileOf(key), Path: path, Problem: problem,
			Fix: "use one algorithm for a quota and period, and periods with different numbers",
		})
	}
}

// checkLimitNames finds rules with the names of limits.
func (w *objectChange) checkLimitNames() {
	anew := w.next.base != w.from.base
	for at := range w.next.periods {
		if _, known := w.from.periods[at]; known && !anew {
			continue
		}
		name, found := w.next.base.ruleNamed(at)
		if !found {
			continue
		}
		key := w.changedKey(source.Key{Kind: source.Rule, Name: name})
		for customer, entry := range w.again {
			if slices.ContainsFunc(entry.form.used, func(u limitUse) bool { return u.at == at }) {
				key = source.Key{Kind: source.Customer, Name: customer}
				break
			}
		}
		problem := fmt.Sprintf("callers see the quota %s under the name %q, which is also that of a rule", at.quota, name)
		w.fault(key, *nameFault(key, problem, "give the rule another name"))
	}
}

// addNames makes the customers of the next Objects, and finds names that are one to rules.
func (w *objectChange) addNames() {
	n := &w.next
	gone := make([]string, 0, len(w.deleted))
	var goneNames []string
	for _, key := range w.deleted {
		if was, known := w.from.customers.get(key.Name); known && key.Kind == source.Customer {
			gone, goneNames = append(gone, key.Name), append(goneNames, was.found())
		}
	}
	if !w.all {
		for name := range w.again {
			if was, known := w.from.customers.get(name); known {
				goneNames = append(goneNames, was.found())
			}
		}
	}
	names := make(map[string]string, len(w.again))
	free := map[string]bool{}
	for _, name := range goneNames {
		free[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.again)) {
		found := w.again[name].found()
		key := source.Key{Kind: source.Customer, Name: name}
		other, twice := names[found]
		if !twice && !w.all && !free[found] {
			other, twice = w.from.customerFound(found)
		}
		switch {
		case n.base.named[found]:
			w.fault(key, *nameFault(key, "is also in the file "+w.from.file.written.source.name,
				"remove it from the source, or from the file"))
		case twice:
			w.fault(key, *nameFault(key, quote(name)+" duplicates "+quote(other), "remove one of them"))
		}
		names[found] = name
	}
	n.names = w.otherNames(names, goneNames)
	set := maps.Clone(w.again)
	for _, object := range w.touched {
		if object.Kind != source.Customer || set[object.Name] != nil {
			continue
		}
		was, _ := w.from.customers.get(object.Name)
		own := *was
		own.Object = object
		set[object.Name] = &own
	}
	for _, name := range gone {
		was, _ := w.from.customers.get(name)
		n.sum.change(was, nil)
	}
	for name, is := range set {
		was, _ := w.from.customers.get(name)
		n.sum.change(was, is)
	}
	n.customers = n.customers.with(set, gone)
}

// otherNames are the names of the next Objects under which rules find customers, where they are not those of the objects.
func (w *objectChange) otherNames(names map[string]string, gone []string) *shards[string] {
	maps.DeleteFunc(names, func(found, name string) bool { return found == name })
	former := w.from.names
	if w.all {
		former, gone = nil, nil
	}
	if len(names) == 0 && former.size() == 0 {
		return nil
	}
	return former.with(names, gone)
}

// customerFound gives the customer of the source that rules find under a name.
func (o *Objects) customerFound(found string) (name string, known bool) {
	if name, known = o.names.get(found); known {
		return name, true
	}
	entry, known := o.customers.get(found)
	return found, known && entry.other == nil
}

// addQuotas makes the plans and customers of the guard.
func (w *objectChange) addQuotas() {
	n := &w.next
	c := n.base.config
	if !slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Quota != "" }) {
		n.quotas = nil
		return
	}
	change := guard.QuotaChange{Customers: make([]guard.Customer, 0, len(w.again))}
	for _, entry := range w.again {
		customer := w.read.values[entry.form]
		customer.Name = entry.found()
		change.Customers = append(change.Customers, customer)
	}
	from := w.from.quotas
	if w.all || from == nil {
		from = new(guard.Quotas)
	} else {
		change.Deleted = w.goneNames()
	}
	if n.base != w.from.base || from != w.from.quotas {
		change.Plans, change.Default = c.Plans, c.DefaultPlan
		change.Customers = append(change.Customers, c.Customers...)
	}
	quotas, err := from.With(change)
	if err == nil {
		n.quotas = quotas
		err = w.countLimits()
	}
	if err != nil {
		w.fault(w.firstKey(), Fault{File: w.from.file.written.source.name, Problem: strings.TrimPrefix(err.Error(), "guard: ")})
	}
}

// goneNames are the names under which rules no longer find a customer.
func (w *objectChange) goneNames() []string {
	var gone []string
	for _, key := range w.deleted {
		if was, known := w.from.customers.get(key.Name); known && key.Kind == source.Customer {
			gone = append(gone, was.found())
		}
	}
	return gone
}

// firstKey gives an object of the change, for faults that belong to none.
func (w *objectChange) firstKey() source.Key {
	switch {
	case len(w.set) > 0:
		return w.set[0].Key
	case len(w.deleted) > 0:
		return w.deleted[0]
	default:
		return source.Key{}
	}
}

// countLimits refuses more different limits than a store can have.
func (w *objectChange) countLimits() error {
	if n := w.next.base.limits + w.next.quotas.Limits(check.MaxPolicies-w.next.base.limits); n > check.MaxPolicies {
		return fmt.Errorf("the rules, plans and customers have %d different limits: give more customers the same limits: at most %d "+
			"are possible, because a reload keeps those of two configurations", n, check.MaxPolicies)
	}
	return nil
}
