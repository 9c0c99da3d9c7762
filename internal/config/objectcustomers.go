package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// customerEntry is a customer of the source.
type customerEntry struct {
	source.Object

	form *customerForm
	// other is the name under which rules find it; nil if it is that of the object.
	other *string
}

func newCustomerEntry(object source.Object, form *customerForm, name string) *customerEntry {
	if name == object.Name {
		return &customerEntry{object, form, nil}
	}
	return &customerEntry{object, form, &name}
}

// found is the name under which rules find the customer.
func (e *customerEntry) found() string {
	if e.other != nil {
		return *e.other
	}
	return e.Name
}

// customerForm is what a text says. Customers with one text share it.
type customerForm struct {
	plan string
	// own is set if the customer has more than a plan and a note, so that its plan matters for it.
	own  bool
	used []limitUse
}

// periodUse is what the limits of customers with one quota and period have, and their number.
type periodUse struct {
	algorithm headgate.Algorithm
	number    uint8
	n         int
}

// customerReading reads customers of a source against one base.
type customerReading struct {
	base   *objectBase
	facts  quotaReading
	zones  map[string]*time.Location
	forms  map[string]*customerForm
	values map[*customerForm]guard.Customer
	parsed *parsedObjects
	// votes counts the customers with a limit, also those with faults. added has the limits that a customer of this reading
	// was the first to have.
	votes map[limitUse]int
	added map[quotaPeriod]limitUse
}

// newCustomerReading begins to read customers. periods are the limits of the customers that are not read.
func newCustomerReading(
	base *objectBase, objects []source.Object, periods map[quotaPeriod]periodUse, holder func(quotaPeriod) string,
) *customerReading {
	r := &customerReading{
		base: base, facts: *base.facts, zones: map[string]*time.Location{}, forms: map[string]*customerForm{},
		values: map[*customerForm]guard.Customer{}, parsed: &parsedObjects{rest: objects},
		votes: map[limitUse]int{}, added: map[quotaPeriod]limitUse{},
	}
	f := &r.facts
	f.interned = newInterned()
	f.policies, f.holder = map[headgate.Policy]struct{}{}, holder
	f.algorithms = make(map[quotaPeriod]firstAlgorithm, len(base.facts.algorithms)+len(periods))
	f.numbers = make(map[quotaNumber]firstPeriod, len(base.facts.numbers)+len(periods))
	for at, use := range periods {
		f.algorithms[at] = firstAlgorithm{use.algorithm, ""}
		f.numbers[quotaNumber{at.quota, use.number}] = firstPeriod{at.period, ""}
	}
	maps.Copy(f.algorithms, base.facts.algorithms)
	maps.Copy(f.numbers, base.facts.numbers)
	return r
}

// read reads one customer. The result is shared by customers with one text.
func (r *customerReading) read(object source.Object) (*customerEntry, Faults) {
	name, fault := r.name(object)
	if fault != nil {
		return nil, Faults{*fault}
	}
	if form, known := r.forms[object.Text]; known {
		r.vote(form.used)
		return newCustomerEntry(object, form, name), nil
	}
	parsed := r.parsed.next(object, r.known)
	if parsed.fault != nil {
		return nil, Faults{*parsed.fault}
	}
	node := parsed.node
	customer, used, faults := r.parse(parsed.document, node, object.Name)
	r.vote(used)
	if len(faults) > 0 {
		return nil, faults
	}
	form := &customerForm{plan: customer.Plan, own: ownFields(node), used: slices.Clip(used)}
	customer.Name = ""
	r.forms[object.Text], r.values[form] = form, customer
	return newCustomerEntry(object, form, name), nil
}

// known reports whether a text was read.
func (r *customerReading) known(text string) bool { return r.forms[text] != nil }

// parse reads the fields of one customer.
func (r *customerReading) parse(src *document, node *yaml.Node, name string) (guard.Customer, []limitUse, Faults) {
	reading := &reader{
		source: src, environment: func(string) (string, bool) { return "", false }, root: node, zones: r.zones,
		counting: r.base.reader.counting, complete: true,
	}
	one := r.facts
	one.root, one.used, one.added = &section{reader: reading}, nil, nil
	s := reading.section(value{path: customersName + "." + name, node: node}, "write it like "+customerExample)
	customer := one.customer(s, name, r.base.config)
	if err := reading.result(); err != nil {
		one.forget(one.added) // Otherwise a faulty customer would decide what the others may have.
		return customer, one.used, reading.faults
	}
	for _, use := range one.added {
		r.added[use.at] = use
	}
	return customer, one.used, nil
}

func (r *customerReading) vote(used []limitUse) {
	for _, use := range used {
		r.votes[use]++
	}
}

// majority gives the limits of which another algorithm came first, although more customers have this one.
func (r *customerReading) majority() map[quotaPeriod]limitUse {
	most := map[quotaPeriod]limitUse{}
	for use, n := range r.votes {
		first, added := r.added[use.at]
		if !added || n <= r.votes[first] {
			continue
		}
		if other, known := most[use.at]; !known || n > r.votes[other] || n == r.votes[other] && use.algorithm < other.algorithm {
			most[use.at] = use
		}
	}
	return most
}

// ownFields reports whether a customer has more than a plan and a note.
func ownFields(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if name := n.Content[i].Value; name != "plan" && name != "note" {
			return true
		}
	}
	return false
}

// name gives the name under which rules find a customer.
func (r *customerReading) name(object source.Object) (string, *Fault) {
	parts := r.facts.parts
	if len(parts) == 0 {
		return object.Name, nil
	}
	name := ""
	for i, part := range parts {
		one, err := rule.CustomerName(part, object.Name)
		if bad, found := errortype.As[*rule.OverrideError](err); found {
			return "", nameFault(object.Key, "for key "+part.String()+": "+bad.Problem, bad.Fix)
		}
		if i == 0 {
			name = one
		}
		if one != name {
			return "", nameFault(object.Key, fmt.Sprintf("is %s by key %s, and %s by key %s", name, parts[0], one, part),
				"let the rules of quotas find customers by parts of one form")
		}
	}
	return name, nil
}

// nameFault is a fault of an object as a whole.
func nameFault(key source.Key, problem, fix string) *Fault {
	name := key.String()
	return &Fault{File: name, Path: strings.Replace(name, "/", ".", 1), Problem: withoutTokens(problem), Fix: withoutTokens(fix)}
}

// planOf gives the name of the plan of a customer.
func (e *customerEntry) planOf(b *objectBase) string {
	return cmp.Or(e.form.plan, b.config.DefaultPlan)
}

// limitName gives the name under which callers see a limit of several.
func (at quotaPeriod) limitName() string { return at.quota + "-" + at.period }

// ruleNamed returns the first rule whose name callers also see for a limit of a quota, and reports whether there is one.
func (b *objectBase) ruleNamed(at quotaPeriod) (string, bool) {
	i := slices.IndexFunc(b.config.Rules, func(r guard.Rule) bool {
		return strings.HasPrefix(r.Name, at.quota) && r.Name == at.limitName()
	})
	if i < 0 {
		return "", false
	}
	return b.config.Rules[i].Name, true
}
