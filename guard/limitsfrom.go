package guard

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// LimitsFrom lets requests state the limit of a rule, in place of its Policies. An Override of the request's value comes first. A limit is
// written as in a configuration, like 500/m, with the period of one of the Policies or of Most. A number alone has the period of the
// first of the Policies. Without a valid limit the Policies decide.
type LimitsFrom struct {
	// Value is where a request states the limit: a header or a claim. A header counts only from peers that Config.Identity
	// trusts. The zero Part is none.
	Value rule.Part
	// Most is the highest limit: a higher count in its period is lowered to it, and a limit with another period decides beside it.
	Most headgate.Policy
}

const (
	// MaxStatedLimits bounds the different limits that requests state for one rule, and maxAllStated those of all rules of a
	// Config. Each is a policy of the store while it is kept.
	MaxStatedLimits = 1024
	maxAllStated    = 4096
	// statedIdle is the time after which a new limit makes those leave that no request has stated.
	statedIdle = 10 * time.Minute
	// maxStatedText bounds the text of a limit.
	maxStatedText = 48
)

// Stated says which limit decided under a rule with LimitsFrom.
type Stated uint8

const (
	// NotStated is for rules without LimitsFrom, and for requests with an Override.
	NotStated Stated = iota
	// StatedUsed is the limit of the request, also if it was lowered to Most.
	StatedUsed
	// StatedAbsent is the limit of the rule, because the request states none.
	StatedAbsent
	// StatedInvalid is the limit of the rule, because the request states an invalid one.
	StatedInvalid
	// StatedBeyond is the limit of the rule, because the request states one of too many.
	StatedBeyond
)

// statedNames has the words of logs and metrics.
var statedNames = [...]string{"", "used", "absent", "invalid", "beyond"}

// String gives the word of logs and metrics.
func (s Stated) String() string { return statedNames[min(int(s), len(statedNames)-1)] }

// statedCounts counts the requests of one rule by their Stated, over reloads.
type statedCounts [len(statedNames)]atomic.Uint64

// Stated gives the number of requests of a rule that were decided by a kind of limit. The counts begin with the process, and survive
// reloads.
func (g *Guard) Stated(ruleName string, s Stated) uint64 {
	if g.now() == nil || int(s) >= len(statedNames) {
		return 0
	}
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	if p, known := g.state.places[ruleName]; known {
		return p.stated[s].Load()
	}
	return 0
}

// statedLimits are the limits that requests stated for one rule, each prepared in the store. A limit that leaves is released when the
// garbage collector finds that no Answer refers to its windows. Its counts stay in the store until they expire.
type statedLimits struct {
	guard   *Guard
	config  *Config
	rule    *Rule
	header  bool
	counts  *statedCounts
	all     *atomic.Int64 // the limits of all rules
	current atomic.Pointer[map[string]*statedLimit]

	mu    sync.Mutex
	swept headgate.Instant // guarded by mu
}

type statedLimit struct {
	windows []window
	recent  atomic.Bool // stated since the last sweep
}

// prepareStated prepares a rule for limits that requests state.
func (s *set) prepareStated(p *prepared) error {
	from := &p.LimitsFrom
	if from.Value == (rule.Part{}) {
		return nil
	}
	switch {
	case len(p.Policies) == 0 || p.Quota != "" || p.Lease.Resource != "":
		return errors.New("its LimitsFrom needs Policies for requests that state no limit: give it some")
	case !from.Most.Limit.HasPeriod():
		return errors.New("its LimitsFrom has no Most: give it the highest limit that a request may state")
	}
	p.stated = &statedLimits{
		guard: s.guard, config: &s.config, rule: p.Rule, header: from.Value.Word() == "header", counts: &p.places.stated, all: &s.stated,
		swept: s.guard.calendarNow(),
	}
	p.stated.current.Store(&map[string]*statedLimit{})
	p.needs |= from.Value.Needs()
	if p.stated.header {
		p.needs |= rule.NeedIP
	}
	s.needs |= p.needs
	if p.Mode == Enforce {
		s.reads.AddPart(from.Value)
	}
	claimed := new(claims)
	_, err := p.stated.windows(p.Policies[0].Limit, claimed) // Finds what the store cannot count.
	release(claimed.all)
	return err
}

// finishRules prepares what the rules have together.
func (s *set) finishRules() error {
	for i := range s.rules {
		if err := s.prepareStated(&s.rules[i]); err != nil {
			return fmt.Errorf("guard: rule %q: %w", s.rules[i].Name, err)
		}
	}
	return s.numberGroups()
}

// addStated is addWindows for a rule with LimitsFrom. own are the limits of the rule.
func (s *set) addStated(p *prepared, own []window, req *headgate.Request, a *Answer, key string, cost int64, shared bool) {
	windows, stated := p.stated.find(req, own)
	cost = p.cut(req, windows, cost)
	first := len(a.Results)
	s.addWindows(p, p.Rule, windows, req, a, key, cost, shared)
	for i := first; i < len(a.Results); i++ {
		a.Results[i].Stated = stated
	}
}

// find gives the limits that a request states, or those of the rule.
func (l *statedLimits) find(req *headgate.Request, own []window) (windows []window, stated Stated) {
	windows, stated = l.look(req)
	if !req.Peek {
		l.counts[stated].Add(1)
	}
	if stated != StatedUsed {
		windows = own
	}
	return windows, stated
}

func (l *statedLimits) look(req *headgate.Request) ([]window, Stated) {
	if l.header && !l.config.Identity.Trusts(req.IP) {
		return nil, StatedAbsent
	}
	text, present := l.rule.LimitsFrom.Value.Text(req)
	switch {
	case !present || text == "":
		return nil, StatedAbsent
	case len(text) > maxStatedText || l.header && severalLines(req, l.rule.LimitsFrom.Value.Name()):
		return nil, StatedInvalid
	}
	if known, found := (*l.current.Load())[text]; found {
		if !req.Peek && !known.recent.Load() {
			known.recent.Store(true)
		}
		return known.windows, StatedUsed
	}
	limit, ok := l.read(text)
	if !ok {
		return nil, StatedInvalid
	}
	windows := l.add(text, limit, req.Peek)
	if windows == nil {
		return nil, StatedBeyond
	}
	return windows, StatedUsed
}

// severalLines reports whether a request has several lines of a header, which could be read in two ways.
func severalLines(req *headgate.Request, name string) bool {
	all, ok := req.Header.(headgate.Lines)
	return ok && len(all.Lines(name)) > 1
}

// read parses a limit, and lowers it to Most.
func (l *statedLimits) read(text string) (headgate.Limit, bool) {
	most := l.rule.LimitsFrom.Most.Limit
	limit, err := rule.ParseLimit(text)
	if err != nil {
		own := l.rule.Policies[0].Limit
		if limit, err = rule.ParseLimit(text + "/s"); err != nil {
			return limit, false
		}
		limit.Per, limit.Calendar = own.Per, own.Calendar
	}
	samePeriod := func(other headgate.Limit) bool { return limit.Per == other.Per && limit.Calendar == other.Calendar }
	switch {
	case samePeriod(most):
		limit.Count = min(limit.Count, most.Count)
	case slices.ContainsFunc(l.rule.Policies, func(p headgate.Policy) bool { return samePeriod(p.Limit) }):
		limit.Count = min(limit.Count, mostStated(l.rule.LimitsFrom.Most, limit))
	default:
		return limit, false
	}
	return limit, true
}

// mostStated gives the highest count of a limit that decides beside most: more units never pass in its period.
func mostStated(most headgate.Policy, limit headgate.Limit) int64 {
	periods := int64(limit.Length()/most.Limit.Length()) + 2
	if most.Limit.Count > headgate.MaxUnits/2/periods {
		return headgate.MaxUnits / 2
	}
	return most.Limit.Count * periods
}

// StatedAtMost lists the highest limits that requests may state: for each period those of one key. It is empty without LimitsFrom.
func (r *Rule) StatedAtMost() [][]headgate.Policy {
	most := r.LimitsFrom.Most
	if !most.Limit.HasPeriod() {
		return nil
	}
	lists := [][]headgate.Policy{{most}}
	for _, p := range r.Policies {
		if p.Limit.Per != most.Limit.Per || p.Limit.Calendar != most.Limit.Calendar {
			stated := most
			stated.Limit = headgate.Limit{Count: mostStated(most, p.Limit), Per: p.Limit.Per, Calendar: p.Limit.Calendar}
			lists = append(lists, []headgate.Policy{stated, most})
		}
	}
	return lists
}

// windows prepares a limit, beside Most if that has another period.
func (l *statedLimits) windows(limit headgate.Limit, claimed *claims) ([]window, error) {
	policy := l.rule.LimitsFrom.Most
	policies := []headgate.Policy{policy}
	if policy.Limit.Per != limit.Per || policy.Limit.Calendar != limit.Calendar {
		policies = append(policies, policy)
	}
	policies[0].Limit = limit
	for i := range policies {
		policies[i].Named = true
	}
	windows, err := l.guard.windows(l.config, l.rule, policies, claimed)
	if err != nil {
		release(claimed.all)
		claimed.all = nil
	}
	return slices.Clip(windows), err
}

// add keeps a new limit, unless peeks says that it is only for one Answer. It gives nil if there are too many.
func (l *statedLimits) add(text string, limit headgate.Limit, peeks bool) []window {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := *l.current.Load()
	if other, found := known[text]; found {
		return other.windows
	}
	if now := l.guard.calendarNow(); !peeks && now.Sub(l.swept) >= statedIdle {
		l.swept = now
		known = l.sweep(known)
	}
	if len(known) >= MaxStatedLimits || l.all.Load() >= maxAllStated {
		return nil
	}
	claimed := new(claims)
	windows, err := l.windows(limit, claimed)
	if err != nil {
		return nil // headgate.ErrTooManyPolicies, or a count that the store does not take.
	}
	runtime.AddCleanup(&windows[0], release, claimed.all)
	if peeks {
		return windows
	}
	l.all.Add(1)
	next := make(map[string]*statedLimit, len(known)+1)
	maps.Copy(next, known)
	kept := &statedLimit{windows: windows}
	kept.recent.Store(true)
	next[strings.Clone(text)] = kept // The request owns its text.
	l.current.Store(&next)
	return windows
}

// sweep drops the limits that no request has stated since the last sweep. mu is locked.
func (l *statedLimits) sweep(known map[string]*statedLimit) map[string]*statedLimit {
	kept := make(map[string]*statedLimit, len(known))
	for text, one := range known {
		if one.recent.Swap(false) {
			kept[text] = one
		} else {
			l.all.Add(-1)
		}
	}
	l.current.Store(&kept)
	return kept
}
