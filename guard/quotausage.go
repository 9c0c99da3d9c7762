package guard

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// QuotaUse is what a customer has used of one limit of a quota, at a time of the store's clock.
type QuotaUse struct {
	Quota     string
	Algorithm headgate.Algorithm
	// Limit has the number of included units.
	Limit headgate.Limit
	// Used are the counted units. In a fixed window, they can be above every limit, for example after a limit was
	// lowered. The other algorithms count at most what the limit admits at once.
	Used int64
	// Soft is the part of the included units, in percent, above which requests are AboveSoft; 0 for none.
	Soft int
	// Hard is the number of units above which requests are refused. It is that of Limit if nothing follows
	// the included units.
	Hard int64
	// After says what follows the included units.
	After After
	// Start and End are those of the present window. A sliding window ends at At. A bucket has no window: both
	// are 0.
	Start, End headgate.Instant
	At         headgate.Instant
	// Carried reports that some of Used can be from before Start: the settings of the calendar have changed, and the count
	// knows no times.
	Carried bool
}

// UnknownQuotaError says that a customer has no such limits. It names those that the customer has.
type UnknownQuotaError struct {
	// Quota and Period are what was looked for; "" stands for all.
	Quota, Period string
	Known         []string
}

// Error gives the problem and the fix in one sentence.
func (e *UnknownQuotaError) Error() string {
	if len(e.Known) == 0 {
		return "guard: rules count no quota of this customer's plan: write quota: NAME in a rule, or look at the mode of the plan"
	}
	what := fmt.Sprintf("quota %q", e.Quota)
	if e.Period != "" {
		what = fmt.Sprintf("period %q", e.Period)
	}
	return fmt.Sprintf("guard: the customer has no limit of the %s: use one of %s", what, strings.Join(e.Known, ", "))
}

// Usage reads what a customer has used of all quotas that rules count, by the names of the quotas. It takes no units.
// All limits are read at one time, as far as the store decides a group at one time. customer is a value of the
// part of the rules' keys. The error is one of the store, a *rule.OverrideError for a value that the part cannot
// have, or a *UnknownQuotaError.
func (g *Guard) Usage(ctx context.Context, customer string) ([]QuotaUse, error) {
	return g.UsageOf(ctx, customer, "", "")
}

// UsageOf is Usage for some limits: those that ResetUsage with these arguments would reset.
func (g *Guard) UsageOf(ctx context.Context, customer, quota, period string) ([]QuotaUse, error) {
	u, err := g.usageOf(customer, quota, period)
	if err != nil {
		return nil, err
	}
	defer u.end()
	all, err := u.read(ctx)
	return u.shown(all), err
}

// usage reads or resets the counters of one customer.
type usage struct {
	guard   *Guard
	set     *set
	counted []countedLimit
	ids     []headgate.PolicyID // by the position in counted
	ops     []headgate.Op
	decided []headgate.Decision
	release []headgate.PolicyID
}

// countedLimit is one counter of the customer.
type countedLimit struct {
	window *window
	key    string
	name   string // of the customer, within key
	quota  string
	limit  QuotaLimit
	counts headgate.Policy // under which the store counts limit
	after  After
	// billed: the limit is the fixed window with the longest period. shadow: all rules that count it are in shadow, or the plan is.
	billed, shadow bool
	group          uint8
}

// usageOf finds the counters of a customer. quota and period select some of them.
func (g *Guard) usageOf(customer, quota, period string) (*usage, error) {
	s := g.now()
	if s == nil {
		return nil, headgate.ErrNotMade
	}
	u := &usage{guard: g, set: s}
	if err := u.find(customer, quota); err != nil {
		return nil, err
	}
	if err := u.choose(period); err != nil {
		return nil, err
	}
	if err := u.prepare(); err != nil {
		return nil, err
	}
	return u, nil
}

// find adds the counters of a customer, by the names of the quotas. Rules of one quota may find customers by different parts, which
// read a value in different ways: a host is in lower case. Each name has its own counters.
func (u *usage) find(customer, quota string) error {
	var seen []counter
	var known []string
	var added []countedLimit
	var invalid error
	for i := range u.set.rules {
		p := &u.set.rules[i]
		if p.Quota == "" || p.Mode == Off {
			continue
		}
		name, err := rule.CustomerName(p.Key[0], customer)
		if err != nil {
			invalid = err // Another rule may find the customer.
			continue
		}
		if c := (counter{p.Quota, name}); slices.Contains(seen, c) {
			u.enforces(p, added, c)
		} else {
			seen = append(seen, c)
			all := u.countersOf(p, name)
			if len(all) > 0 && !slices.Contains(known, p.Quota) {
				known = append(known, p.Quota)
			}
			if quota == "" || quota == p.Quota {
				added = append(added, all...)
			}
		}
	}
	if len(added) == 0 && len(known) == 0 && invalid != nil {
		return invalid //nolint:wrapcheck // It names the value and the part.
	}
	if len(added) == 0 {
		slices.Sort(known)
		return &UnknownQuotaError{Quota: quota, Known: known}
	}
	sorting.StableFunc(added, func(a, b countedLimit) int { return strings.Compare(a.quota, b.quota) })
	u.counted = append(u.counted, added...)
	return nil
}

// enforces notes that a further rule counts a counter. A reset of the counter is in shadow only if all its rules are.
func (u *usage) enforces(p *prepared, added []countedLimit, c counter) {
	_, plan := u.set.quotas.find(c.name, u.guard)
	for i := range added {
		if a := &added[i]; a.quota == c.quota && a.name == c.name {
			a.shadow = a.shadow && p.effects[plan].Mode != Enforce
		}
	}
}

// countersOf gives the counters that a rule counts for a customer's name.
func (u *usage) countersOf(p *prepared, name string) []countedLimit {
	q := u.set.quotas
	n, plan := q.find(name, u.guard)
	at := q.variants.at(n).quotas[p.quota]
	if at == noList {
		return nil
	}
	list, key := q.lists.at(at), string(rule.AppendKeyOfCustomer(slices.Clone(p.space), p.Quota, name))
	all := make([]countedLimit, len(list.limits))
	longest, longestPer := -1, time.Duration(0)
	for i := range all {
		all[i] = countedLimit{
			window: &q.prepared.at(at).windows[i], key: key, name: name, quota: p.Quota, limit: list.limits[i], counts: list.policy(i),
			after: list.after, shadow: p.effects[plan].Mode != Enforce,
		}
		per := list.limits[i].Policy.Limit.Per
		if c := all[i].window.calendar; c != nil {
			per = c.Length(u.guard.calendarNow())
		}
		if list.limits[i].Policy.Algorithm == headgate.FixedWindow && per > longestPer {
			longest, longestPer = i, per
		}
	}
	if longest >= 0 {
		all[longest].billed = true
	}
	return all
}

// choose keeps the counters of a period.
func (u *usage) choose(period string) error {
	if period == "" {
		return nil
	}
	var known []string
	var kept []countedLimit
	for _, c := range u.counted {
		if counted := c.limit.Policy.Limit.Period(); counted == period {
			kept = append(kept, c)
		} else if !slices.Contains(known, counted) {
			known = append(known, counted)
		}
	}
	if u.counted = kept; len(kept) == 0 {
		return &UnknownQuotaError{Period: period, Known: known}
	}
	return nil
}

// commonCount bounds the limits that every store counts in one place with lower limits. Memcached has another form
// of counter above it.
const commonCount = 1 << 31

// prepare prepares the versions of the limits that read the counters. A fixed window is read by a version with a high
// limit: its remaining units tell how many are used, also above the limit of the customer. All versions share
// one counter.
func (u *usage) prepare() error {
	u.ids = make([]headgate.PolicyID, len(u.counted))
	for i := range u.counted {
		w := u.counted[i].window
		if w.algorithm != headgate.FixedWindow {
			u.ids[i] = w.id
			continue
		}
		high := u.counted[i].counts
		if high.Limit.Count <= commonCount {
			high.Limit.Count = commonCount
		} else {
			high.Limit.Count = headgate.MaxUnits
		}
		high.Limit.Burst = 0
		id, err := u.guard.store.Prepare(high)
		if err != nil {
			u.end()
			return fmt.Errorf("guard: the counter of %s cannot be read: %w", u.counted[i].quota, err)
		}
		u.ids[i], u.release = id, append(u.release, id)
	}
	return nil
}

// end releases what prepare has prepared. Until then, the set keeps its own limits prepared.
func (u *usage) end() {
	for _, id := range u.release {
		u.guard.store.Release(id)
	}
	runtime.KeepAlive(u.set)
}

// add adds an Op on counter i. Each Refund is a group of its own.
func (u *usage) add(i int, id headgate.PolicyID, kind headgate.OpKind, cost int64, local bool) {
	c := &u.counted[i]
	group := c.group
	if kind == headgate.Refund {
		group = uint8(len(u.ops)) // Groups are neighbors with one number, so it may come back.
	}
	u.ops = append(u.ops, headgate.Op{
		Key: c.key, Policy: id, Window: c.window.number, Group: group, Kind: kind, Cost: cost, Edges: c.window.edges(u.guard, local),
	})
}

// maxTogether bounds the Ops of one call of the store. It is above maxWindows, so that a group is not divided.
const maxTogether = 256

func (u *usage) apply(ctx context.Context, store headgate.Store) error {
	u.decided = slices.Grow(u.decided[:0], len(u.ops))[:len(u.ops)]
	for from := 0; from < len(u.ops); {
		to := min(from+maxTogether, len(u.ops))
		for to < len(u.ops) && u.ops[to].Group == u.ops[to-1].Group {
			to--
		}
		if err := store.Apply(ctx, u.ops[from:to], u.decided[from:to]); err != nil {
			return fmt.Errorf("guard: the counting store: %w", err)
		}
		from = to
	}
	return nil
}

// read reads all counters. The Ops with one key are one group.
func (u *usage) read(ctx context.Context) ([]QuotaUse, error) {
	for i := range u.counted {
		if i > 0 {
			u.counted[i].group = u.counted[i-1].group
			if u.counted[i].key != u.counted[i-1].key {
				u.counted[i].group++
			}
		}
		u.add(i, u.ids[i], headgate.Peek, 0, false)
	}
	if err := u.apply(ctx, u.guard.store); err != nil {
		return nil, err
	}
	all := make([]QuotaUse, len(u.counted))
	for i := range all {
		all[i] = u.counted[i].use(&u.decided[i])
	}
	return all, nil
}

// shown leaves out counters of another name of the customer that have no units: usually, only one name of a value is in use.
func (u *usage) shown(all []QuotaUse) []QuotaUse {
	kept := make([]QuotaUse, 0, len(all))
	for i := range all {
		others := func(used bool) bool {
			for j := range all {
				same := u.counted[i].quota == u.counted[j].quota && u.counted[i].key != u.counted[j].key
				if same && (used && all[j].Used > 0 || !used && j < i) {
					return true
				}
			}
			return false
		}
		if all[i].Used > 0 || !others(true) && !others(false) {
			kept = append(kept, all[i])
		}
	}
	return kept
}

// use reads the decision on a Peek.
func (c *countedLimit) use(d *headgate.Decision) QuotaUse {
	policy := c.limit.Policy
	use := QuotaUse{
		Quota: c.quota, Algorithm: policy.Algorithm, Limit: policy.Limit, Used: max(0, d.Limit-d.Remaining), Soft: c.limit.Soft,
		Hard: limit.Room(policy), After: c.after, At: d.At, Carried: d.Carried,
	}
	if c.window.quota.beyond {
		use.Hard = c.limit.Hard
	}
	switch per := headgate.Instant(policy.Limit.Per); {
	case c.window.calendar != nil:
		use.Start, use.End, _ = c.window.calendar.Edges(d.At).Window(d.At)
	case policy.Algorithm == headgate.FixedWindow:
		use.Start = d.At - d.At%per
		use.End = use.Start + per
	case policy.Algorithm == headgate.SlidingLog || policy.Algorithm == headgate.SlidingWindow:
		use.Start, use.End = d.At-per, d.At
	}
	return use
}

// PlanOf gives the name of the plan that a customer has now. entry reports that the configuration has an entry for
// the customer, and raised that a raise applies. plan is "" if no rule counts a quota, or for a value that no customer can have.
func (g *Guard) PlanOf(customer string) (plan string, entry, raised bool) {
	s := g.now()
	if s == nil || s.quotas == nil {
		return "", false, false
	}
	for i := range s.rules {
		if s.rules[i].Quota == "" {
			continue
		}
		name, err := rule.CustomerName(s.rules[i].Key[0], customer)
		if err != nil {
			continue // Another rule may find the customer.
		}
		plan, entry, raised := s.quotas.PlanOf(name, g.calendarNow())
		return plan.Name, entry, raised
	}
	return "", false, false
}
