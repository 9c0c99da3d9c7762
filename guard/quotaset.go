package guard

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/tokens"
)

// terms is what a customer has of a limit of a quota.
type terms struct {
	// included are the units before the plan's After, and includedPart is this instance's part of them, in
	// Local. Both count only with beyond.
	included, includedPart int64
	hard                   int64 // above which requests are refused; only with beyond
	soft                   uint8 // in percent
	after                  After
	ofQuota                bool // the window belongs to a quota
	beyond                 bool // requests pass above the included units
}

// quotaSet are the Quotas of a set, prepared in its stores.
type quotaSet struct {
	*Quotas

	// prepared has the windows of each list, by its number. needs are what they were prepared for.
	prepared blocks[preparedList]
	needs    map[string]quotaNeeds
	local    headgate.Store
	share    int
	// calendars are the calendar windows that the lists share, by calendarText and unit.
	calendars map[string]*calendar.Windows
	// kept is the number of calendars after the last removal of those without a list.
	kept int
}

// preparedList are the windows of a list. owner keeps what is prepared in the stores; nil for a list that no rule counts.
type preparedList struct {
	windows []window
	owner   *claims
}

// quotaNeeds is what the rules of one quota need of its windows.
type quotaNeeds struct {
	fallback Fallback
	settle   string
	bytes    Bytes
	// body and overdraft say what customers may owe.
	body      *tokens.Settle
	overdraft int64
}

// maxEffects bounds the copies of rules that plans change: one for each rule and plan, of about 400 bytes.
const maxEffects = 1 << 17

// prepareQuotas prepares the limits of all customers for the rules with a quota.
func (g *Guard) prepareQuotas(c *Config, claimed *claims) (*quotaSet, error) {
	needs := map[string]quotaNeeds{}
	rules := 0
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Quota == "" || r.Mode == Off {
			continue
		}
		rules++
		if err := checkQuotaRule(c, r); err != nil {
			return nil, fmt.Errorf("guard: rule %q: %w", r.Name, err)
		}
		n := needs[r.Quota]
		if r.Fallback == FallbackLocal {
			n.fallback = FallbackLocal
		}
		if r.Settle != "" {
			n.settle = r.Settle
		}
		n.bytes |= r.Bytes
		if r.SettleBody != nil {
			n.body = r.SettleBody
		}
		n.overdraft = max(n.overdraft, r.Overdraft)
		needs[r.Quota] = n
	}
	if rules == 0 {
		return nil, nil //nolint:nilnil // Without rules of quotas, there is no quotaSet.
	}
	if rules*len(c.Quotas.plans) > maxEffects {
		return nil, fmt.Errorf("guard: %d rules have a quota, and there are %d plans: the product is at most %d",
			rules, len(c.Quotas.plans), maxEffects)
	}
	q := &quotaSet{Quotas: c.Quotas, needs: needs, local: c.Local, share: c.LocalShare}
	if err := q.prepareLists(g, c, claimed); err != nil {
		return nil, err
	}
	return q, nil
}

// prepareLists prepares the limits of all lists, and keeps those that the set in effect has prepared.
func (q *quotaSet) prepareLists(g *Guard, c *Config, claimed *claims) error {
	former := g.quotasInEffect()
	if former != nil && (former.local != q.local || former.share != q.share || !maps.Equal(former.needs, q.needs)) {
		former = nil
	}
	if former == nil {
		former = &quotaSet{Quotas: new(Quotas)}
	}
	q.calendars, q.kept = maps.Clone(former.calendars), former.kept
	q.prepared = former.prepared.copied()
	q.prepared.resize(q.lists.n)
	for part := range q.lists.parts {
		if q.lists.sharesPart(&former.lists, part) {
			continue
		}
		for n := part * blockSize; n < min((part+1)*blockSize, q.lists.n); n++ {
			if err := q.prepareList(g, c, claimed, uint32(n), former); err != nil {
				return err
			}
		}
	}
	q.removeCalendars()
	return nil
}

// removeCalendars removes the calendars that no list has any more, when their number may have doubled: a look at all lists takes
// longer than most changes.
func (q *quotaSet) removeCalendars() {
	const few = 64
	if len(q.calendars) <= 2*q.kept+few {
		return
	}
	used := map[*calendar.Windows]bool{}
	for n := range uint32(q.lists.n) {
		windows := q.prepared.at(n).windows
		for i := range windows {
			used[windows[i].calendar] = true
		}
	}
	maps.DeleteFunc(q.calendars, func(_ string, w *calendar.Windows) bool { return !used[w] })
	q.kept = len(q.calendars)
}

// prepareList prepares list n, if the former set has another one.
func (q *quotaSet) prepareList(g *Guard, c *Config, claimed *claims, n uint32, former *quotaSet) error {
	l := q.lists.at(n).quotaList
	if int(n) < former.lists.n && former.lists.at(n).quotaList == l {
		return nil
	}
	to := q.prepared.change(n)
	if *to = (preparedList{}); l == nil {
		return nil
	}
	need, counted := q.needs[l.quota]
	if !counted {
		return nil
	}
	to.owner = new(claims)
	claimed.addPart(to.owner)
	windows, err := q.prepare(g, c, l, need, to.owner)
	if err != nil {
		return fmt.Errorf("guard: quota %q: %w", l.quota, err)
	}
	to.windows = windows
	return nil
}

// quotasInEffect gives the quotas of the set in effect; nil for none.
func (g *Guard) quotasInEffect() *quotaSet {
	if s := g.now(); s != nil {
		return s.quotas
	}
	return nil
}

// shareCalendar gives a window the calendar windows that others with its settings have.
func (q *quotaSet) shareCalendar(w *window, l *quotaList) {
	if w.calendar == nil {
		return
	}
	text := fmt.Sprint(w.limit.Calendar, calendarText(l.calendar))
	if known := q.calendars[text]; known != nil {
		w.calendar = known
		return
	}
	if q.calendars == nil {
		q.calendars = map[string]*calendar.Windows{}
	}
	q.calendars[text] = w.calendar
}

// prepare prepares one list of limits.
func (q *quotaSet) prepare(g *Guard, c *Config, l *quotaList, need quotaNeeds, claimed *claims) ([]window, error) {
	r := &Rule{
		Fallback: need.fallback, Settle: need.settle, Bytes: need.bytes, SettleBody: need.body, Overdraft: need.overdraft,
		Calendar: l.calendar,
	}
	r.Name = l.quota
	policies := make([]headgate.Policy, len(l.limits))
	for i := range policies {
		policies[i] = l.policy(i)
	}
	windows, err := g.windows(c, r, policies, claimed)
	if err != nil {
		return nil, err
	}
	for i := range windows {
		w := &windows[i]
		q.shareCalendar(w, l)
		w.quota = terms{ofQuota: true, soft: uint8(l.limits[i].Soft), after: l.after, beyond: l.beyond(i)}
		if !w.quota.beyond {
			continue
		}
		w.quota.included, w.quota.hard = l.limits[i].Policy.Limit.Count, l.limits[i].Hard
		w.limit.Count = w.quota.included
		if need.fallback == FallbackLocal {
			w.quota.includedPart = partOf(w.quota.included, c.LocalShare)
			w.part.Count = w.quota.includedPart
		}
	}
	return slices.Clip(windows), nil
}

// checkQuotaRule finds settings that a rule with a quota cannot have.
func checkQuotaRule(c *Config, r *Rule) error {
	switch {
	case c.Quotas == nil:
		return errors.New("it has a quota, and there are no plans: set Config.Quotas")
	case len(r.Key) != 1 || r.Key[0].String() == "all":
		return errors.New("its quota counts customers: use a key of one part, which names the customer")
	case len(r.Policies) > 0 || len(r.Overrides) > 0 || r.Soft > 0:
		return errors.New("its quota has the limits: leave out Policies, Overrides and Soft, and write them in plans and customers")
	case r.InFlight > 0 || r.Ban.For > 0:
		return errors.New("a quota has no ban and no bound of requests in flight: use another rule for them")
	case r.Exceed.Action == Delay || r.Exceed.Action == Degrade:
		return errors.New("the plan says what follows its units: use the action reject or redirect")
	}
	at, named := slices.BinarySearch(c.Quotas.names, r.Quota)
	if named && c.Quotas.lacking[at] == 0 {
		return nil
	}
	for n := range uint32(c.Quotas.variants.n) {
		v := c.Quotas.variants.at(n)
		if v.key == (textKey{}) || named && v.quotas[at] != noList || !c.Quotas.plans[v.plan].needsLimits() {
			continue
		}
		return fmt.Errorf("plan %q has no limits for its quota %q: add them", c.Quotas.plans[v.plan].Name, r.Quota)
	}
	return nil
}

// effects gives, for each plan, the rule as the plan changes it: its mode, and the mark of requests that pass
// above the included units. Plans that change nothing share the rule itself.
func effects(r *Rule, plans []Plan) []*Rule {
	type effect struct {
		mode          Mode
		header, value string
	}
	made := map[effect]*Rule{{mode: r.Mode}: r}
	all := make([]*Rule, len(plans))
	for i := range plans {
		e := effect{mode: max(r.Mode, plans[i].Mode)}
		if plans[i].After == AfterDegrade {
			e.header, e.value = plans[i].Header, plans[i].Value
		}
		rule := made[e]
		if rule == nil {
			rule = new(Rule)
			*rule = *r
			rule.Mode, rule.Exceed.Header, rule.Exceed.Value = e.mode, e.header, e.value
			made[e] = rule
		}
		all[i] = rule
	}
	return all
}

// addQuotas prepares the quotas, and adds the headers with which plans mark requests.
func (s *set) addQuotas(c *Config, claimed *claims) (err error) {
	if s.quotas, err = s.guard.prepareQuotas(c, claimed); err != nil || s.quotas == nil {
		return err
	}
	for i := range s.quotas.plans {
		if p := &s.quotas.plans[i]; p.After == AfterDegrade && !slices.Contains(s.marks, p.Header) {
			s.marks = append(s.marks, spellings(p.Header)...)
		}
	}
	return nil
}
