package guard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// Quotas are the plans and the customers of a guard. Quotas is immutable and safe for concurrent use:
// With makes changed ones.
//
// Customers with equal entries share one variant, and variants with equal limits share these. A customer
// therefore takes little more memory than its name.
type Quotas struct {
	plans     []Plan // by name
	standard  string // the name of the default plan
	customers *rule.Customers
	variants  blocks[variant]
	known     numbers  // the number of each variant in use
	free      uint32   // the first free variant; 0 for none
	names     []string // of the quotas, sorted
	lacking   []int    // by the position of the quota, the variants in use without limits of the quota, although their plan is not off
	// lists are the limits by their numbers. listNumbers has the numbers by text. Changes of customers keep the numbers, so that
	// a guard keeps what it has prepared.
	lists       blocks[numberedList]
	listNumbers numbers
	freeList    uint32 // 1 more than the first free number; 0 for none
	atMost      int    // the number of limits of all lists, equal ones included
}

// numberedList is a list, and how many variants have it. Without a list, the number is free, and next is 1 more than the
// next free number.
type numberedList struct {
	*quotaList

	uses, next uint32
}

// variant is what customers with equal entries have. A variant without customers is free for another
// one. Variant 0 is that of customers without an entry.
type variant struct {
	key    textKey // names the variant in known; zero is free
	entry  variantEntry
	uses   int
	plan   int      // the position of its plan
	quotas []uint32 // by the position of the quota, the position of its list; noList for none
	next   uint32   // the next free variant, if this one is free
}

// variantEntry is the part of a Customer that decides its limits.
type variantEntry struct {
	Plan     string
	Quotas   []QuotaLimits
	Spending []Spending
	Calendar *Calendar
}

// quotaList are the limits of a quota as they count. A quotaList does not change.
type quotaList struct {
	key    textKey // names the list in listNumbers
	quota  string
	after  After
	limits []QuotaLimit
	// calendar is zero without a limit with a calendar period.
	calendar Calendar
}

// textKey is the start of the SHA-256 of a text: it takes less memory than the text, and no two texts share one.
type textKey [16]byte

func keyOf(text string) textKey {
	sum := sha256.Sum256([]byte(text))
	return textKey(sum[:len(textKey{})])
}

const (
	noList = ^uint32(0)
	// MaxQuotaPolicies bounds the different limits of all plans and customers. A store keeps twice as many,
	// for those of two configurations during a reload.
	MaxQuotaPolicies = 1<<15 - 1
)

// QuotaChange is a change of Quotas.
type QuotaChange struct {
	// Plans replace all plans; nil keeps them.
	Plans []Plan
	// Default is the name of the plan for customers without an entry; "" keeps it.
	Default string
	// Customers are added, or replace those with their names. Deleted are the names of customers whose entries
	// are removed. A name in both is added.
	Customers []Customer
	Deleted   []string
}

// PlansInUseError says that plans are missing that customers have, or that are the default plan.
type PlansInUseError struct {
	// Plans are the names of the missing plans, sorted. Customer is one that has the first of them; "" if
	// the first is the default plan.
	Plans    []string
	Customer string
}

// Error gives the problem and the fix in one sentence.
func (e *PlansInUseError) Error() string {
	who := "the default plan"
	if e.Customer != "" {
		who = fmt.Sprintf("the plan of customer %q", e.Customer)
	}
	return fmt.Sprintf("guard: plan %s is missing, and is %s: add the plan, or move its customers first",
		strings.Join(e.Plans, ", "), who)
}

// TooManyLimitsError says that plans and customers have more different limits than a store can have.
type TooManyLimitsError struct{ Limits int }

// Error gives the problem and the fix in one sentence.
func (e *TooManyLimitsError) Error() string {
	return fmt.Sprintf("guard: plans and customers have %d different limits, and %d are possible, because a reload keeps those of "+
		"two configurations: give more customers the same limits", e.Limits, MaxQuotaPolicies)
}

// NewQuotas gives the Quotas of plans and customers. standard is the name of the default plan. The error names what
// is at fault. It may be a *PlansInUseError or a *TooManyLimitsError.
func NewQuotas(plans []Plan, standard string, customers []Customer) (*Quotas, error) {
	if standard == "" {
		return nil, errors.New("guard: there is no default plan: name the plan of customers without an entry")
	}
	return new(Quotas).With(QuotaChange{Plans: plans, Default: standard, Customers: customers})
}

// With gives Quotas with a change. It costs time for each changed customer. A change of plans also costs time for each
// plan, and each different entry of customers. After an error, nothing has changed. A change of a plan keeps what customers have
// used, where the limits keep algorithm and period.
func (q *Quotas) With(c QuotaChange) (*Quotas, error) {
	next := &Quotas{plans: q.plans, standard: q.standard, variants: q.variants.copied(), known: q.known.copied(), free: q.free}
	anew := c.Plans != nil || c.Default != "" || q.variants.n == 0
	if !anew {
		next.keepLists(q)
	}
	if c.Plans != nil {
		next.plans = slices.Clone(c.Plans)
		sorting.Func(next.plans, func(a, b Plan) int { return strings.Compare(a.Name, b.Name) })
	}
	if c.Default != "" {
		next.standard = c.Default
	}
	if err := next.checkPlans(); err != nil {
		return nil, err
	}
	if next.variants.n == 0 {
		next.variants.add(variant{key: textKey{1}, uses: 1}) // No text has this key.
	}
	changed, fresh, err := next.number(c.Customers)
	if err != nil {
		return nil, err
	}
	next.drop(q.customers, changed, c.Deleted)
	next.customers = q.customers.With(changed, c.Deleted)
	if anew {
		err = next.resolve()
	} else {
		err = next.resolveSome(fresh)
	}
	if err != nil {
		return nil, err
	}
	if err := next.countLimits(); err != nil {
		return nil, err
	}
	return next, nil
}

// number gives the customers the numbers of their variants. fresh are the variants that are new.
func (q *Quotas) number(customers []Customer) (changed map[string]rule.Customer, fresh []uint32, err error) {
	changed = make(map[string]rule.Customer, len(customers))
	use := func(entry Customer) uint32 {
		n, isFresh := q.use(entry)
		if isFresh {
			fresh = append(fresh, n)
		}
		return n
	}
	for i := range customers {
		c := &customers[i]
		if _, twice := changed[c.Name]; twice || c.Name == "" {
			return nil, nil, fmt.Errorf("guard: customer %q is twice in a change, or has no name: give each a name of its own", c.Name)
		}
		if err := c.check(); err != nil {
			return nil, nil, err
		}
		customer := rule.Customer{Limits: use(Customer{Plan: c.Plan, Quotas: c.Quotas, Spending: c.Spending, Calendar: c.Calendar})}
		customer.Raised = customer.Limits
		if c.Raise != nil {
			customer.Until = c.Raise.Until
			customer.Raised = use(c.raised())
		}
		changed[c.Name] = customer
	}
	return changed, fresh, nil
}

// raised gives the entry of a customer during its raise.
func (c *Customer) raised() Customer {
	in := func(quota string) bool {
		return slices.ContainsFunc(c.Raise.Quotas, func(l QuotaLimits) bool { return l.Quota == quota })
	}
	return Customer{
		Plan: c.Plan, Calendar: c.Calendar,
		Quotas: append(slices.DeleteFunc(slices.Clone(c.Quotas), func(l QuotaLimits) bool { return in(l.Quota) }),
			c.Raise.Quotas...),
		Spending: slices.DeleteFunc(slices.Clone(c.Spending), func(s Spending) bool { return in(s.Quota) }),
	}
}

// use gives the number of the variant of an entry, and reports whether it is new.
func (q *Quotas) use(entry Customer) (n uint32, fresh bool) {
	if entry.Plan == "" && len(entry.Quotas) == 0 && len(entry.Spending) == 0 && entry.Calendar == nil {
		return 0, false
	}
	key := keyOf(entry.text())
	if n, known := q.known.get(key); known {
		q.variants.change(n).uses++
		return n, false
	}
	v := variant{key: key, entry: variantEntry{entry.Plan, entry.Quotas, entry.Spending, entry.Calendar}, uses: 1}
	if n = q.free; n > 0 {
		to := q.variants.change(n)
		q.free, *to = to.next, v
	} else {
		n = q.variants.add(v)
	}
	q.known.set(key, n)
	return n, true
}

// text gives the same text for entries with the same meaning.
func (c *Customer) text() string {
	quotas, spending := slices.Clone(c.Quotas), slices.Clone(c.Spending)
	sorting.Func(quotas, func(a, b QuotaLimits) int { return strings.Compare(a.Quota, b.Quota) })
	sorting.Func(spending, func(a, b Spending) int { return strings.Compare(a.Quota, b.Quota) })
	var b strings.Builder
	fmt.Fprintf(&b, "%q %v %v", c.Plan, quotas, spending)
	for i := range quotas {
		b.WriteString(burstsText(quotas[i].Limits))
	}
	if c.Calendar != nil {
		b.WriteString(calendarText(*c.Calendar))
	}
	return b.String()
}

// burstsText gives the bursts of limits, which headgate.Limit leaves out of its text.
func burstsText(limits []QuotaLimit) string {
	bursts := make([]int64, len(limits))
	for i := range limits {
		bursts[i] = limits[i].Policy.Limit.Burst
	}
	return fmt.Sprint(bursts)
}

// calendarText gives the same text for settings with the same meaning.
func calendarText(s Calendar) string {
	return fmt.Sprint(" ", s.Zone, " ", s.WeekStarts, " ", s.MonthStarts)
}

// drop ends the former uses of variants.
func (q *Quotas) drop(former *rule.Customers, changed map[string]rule.Customer, deleted []string) {
	dropped := make(map[string]bool, len(changed)+len(deleted))
	end := func(n uint32) {
		v := q.variants.change(n)
		if v.uses--; n > 0 && v.uses == 0 {
			q.known.remove(v.key)
			q.endLists(v)
			*v = variant{next: q.free}
			q.free = n
		}
	}
	one := func(name string) {
		if customer, known := former.By(name); known && !dropped[name] {
			dropped[name] = true
			if end(customer.Limits); customer.Until != 0 {
				end(customer.Raised)
			}
		}
	}
	for name := range changed {
		one(name)
	}
	for _, name := range deleted {
		one(name)
	}
}

// plan gives the position of a plan; "" is the default plan.
func (q *Quotas) plan(name string) (int, bool) {
	if name == "" {
		name = q.standard
	}
	return slices.BinarySearchFunc(q.plans, name, func(p Plan, name string) int { return strings.Compare(p.Name, name) })
}

// Len gives the number of customers with an entry.
func (q *Quotas) Len() int {
	if q == nil {
		return 0
	}
	return q.customers.Len()
}

// PlanOf gives the plan that a customer has at a time. Customers without an entry have the default plan. raised reports
// that a raise applies.
func (q *Quotas) PlanOf(name string, now headgate.Instant) (plan *Plan, entry, raised bool) {
	customer, known := q.customers.By(name)
	n := customer.At(now)
	return &q.plans[q.variants.at(n).plan], known, known && n != customer.Limits
}
