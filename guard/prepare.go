package guard

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/internal/refusals"
	"github.com/headgate/headgate/internal/tokens"
	"github.com/headgate/headgate/rule"
)

// set is the configuration of a Guard between two reloads. A set is immutable.
type set struct {
	guard       *Guard
	share       *sharing // nil without fair share
	claims      *claims
	index       *rule.Index
	trees       map[string]*tree // by their domains
	rules       []prepared
	independent bool
	stated      atomic.Int64 // the limits that requests stated
	grouped     bool         // one of the rules has a group
	parted      bool         // one of these is enforced for a part of the keys
	config      Config
	needs       rule.Needs
	logged      rule.Needs // of Config.Logged
	marks       []string
	stages      stages
	sent        *sentLimits     // the buckets that clients sent; nil without a store
	refusals    *refusals.Table // nil without one
	reader      *tokens.Reader  // of bodies; nil if no rule reads one
	bodies      *bodyRules      // nil if no rule reads bodies of requests
	reads       rule.Reads      // of the enforced rules: a rule in shadow refuses nothing
	quotas      *quotaSet       // nil without rules of quotas
	unknown     Rule            // the rule of refusals with WithoutState
	uncounted   window          // of decisions that no store counts
	// beyondQueries: an enforced rule for queries counts by more than descriptors.
	beyondQueries bool
	skips         bool // a rule has MissingSkip
	// keyed is what the keys of enforced rules, and of fair share, need from a front. Rules for queries are left out.
	keyed rule.Supply
	// parts are the names of these parts.
	parts []string
	// exempt are the requests that nothing decides; nil for none.
	exempt *rule.MatchSet
}

// prepared is a rule with its windows prepared in the store.
type prepared struct {
	*Rule

	number    int
	group     int // the number of its group; 0 without one
	needs     rule.Needs
	space     []byte // the namespace, with which every key begins
	limits    []window
	overrides *overrides    // nil without Overrides
	stated    *statedLimits // nil without LimitsFrom
	slots     *window       // nil without InFlight
	places    *places
	lease     *leaseRule    // nil without Lease
	operator  *operatorBans // nil if the rule's own ban, a quota or a lease decides
	quota     int           // the position of the quota in Quotas.names; with Quota
	effects   []*Rule       // the rule as each plan changes it; with Quota
	state     *State
	part      *sharePart      // nil without Switch.Percent
	learned   *tokens.Learned // nil without Estimate

	slotStores [2]headgate.SlotStore // the guard's store, and Local; with slots
	slotsPart  int64                 // this instance's part of InFlight in Local
}

// prepare makes the set of a Config. The error names the rule. After an error, no policy stays
// prepared.
func (g *Guard) prepare(c Config) (*set, error) {
	claimed := new(claims)
	s, err := g.prepareRules(c, claimed)
	if err != nil {
		claimed.releaseNow()
		return nil, err
	}
	return s, nil
}

func (g *Guard) prepareRules(c Config, claimed *claims) (*set, error) {
	c.Rules = slices.Clone(c.Rules) // The caller may change its slice for the next reload.
	if c.StoreTimeout < 0 {
		return nil, fmt.Errorf("guard: StoreTimeout is %v: give a time above 0, or 0 for decisions without a bound", c.StoreTimeout)
	}
	if c.RefusalsMemory < 0 {
		return nil, fmt.Errorf("guard: RefusalsMemory is %d: give a number of bytes, or 0 to remember nothing", c.RefusalsMemory)
	}
	if err := c.checkBounds(); err != nil {
		return nil, err
	}
	s := &set{
		guard: g, claims: claimed, independent: c.Independent, config: c, marks: spellings(FieldMark), needs: c.Folds.Needs(),
		unknown: SourceRule(),
	}
	for _, p := range c.Logged {
		s.logged |= p.Needs()
	}
	s.needs |= s.logged
	if err := s.decider(&c); err != nil {
		return nil, err
	}
	if err := cmp.Or(s.addExempt(&c), s.addShare(g, &c)); err != nil {
		return nil, err
	}
	if err := s.prepareStages(); err != nil {
		return nil, err
	}
	trees, err := g.prepareTrees(&c, claimed)
	if err != nil {
		return nil, err
	}
	s.trees, s.sent = trees, g.newSentBuckets(&c)
	if err := s.addQuotas(&c, claimed); err != nil {
		return nil, err
	}
	matching, err := s.addMatching(g, &c, claimed)
	if err != nil {
		return nil, err
	}
	if err := s.finishRules(); err != nil {
		return nil, err
	}
	index, err := rule.NewIndex(matching)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := s.addBodies(matching); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	s.index = index
	if err := s.supplied(g.fronts); err != nil {
		return nil, err
	}
	return s, nil
}

// addMatching prepares the rules that are not off, and gives those of the index.
func (s *set) addMatching(g *Guard, c *Config, claimed *claims) (matching []rule.Rule, err error) {
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Mode == Off {
			continue
		}
		folded := r.Rule
		folded.Match, folded.Exempt = c.Folds.Match(folded.Match), c.Folds.Matches(folded.Exempt)
		r.Key = folded.BoundKey() // Decisions see folded paths.
		p, err := g.prepareSwitched(c, r, i, claimed)
		if err != nil {
			return nil, fmt.Errorf("guard: rule %q: %w", r.Name, err)
		}
		s.rules = append(s.rules, p)
		s.needs |= p.needs
		s.skips = s.skips || r.Missing == rule.MissingSkip
		s.readKey(r)
		s.readOutcome(r)
		if r.Exceed.Action == Degrade && !slices.Contains(s.marks, r.Exceed.Header) {
			s.marks = append(s.marks, spellings(r.Exceed.Header)...)
		}
		if r.Mode == Enforce {
			s.reads.AddRule(&r.Rule)
			s.reads.AddStated(r.CostHeader)
		}
		matching = append(matching, folded)
	}
	return matching, nil
}

// addExempt prepares the requests that nothing decides.
func (s *set) addExempt(c *Config) (err error) {
	if len(c.Exempt) == 0 {
		return nil
	}
	if len(c.Exempt) > rule.MaxExempt {
		return fmt.Errorf("guard: Config.Exempt has %d entries: use at most %d, with lists in their fields", len(c.Exempt), rule.MaxExempt)
	}
	for i := range c.Exempt {
		if c.Exempt[i].IsZero() {
			return fmt.Errorf("guard: Config.Exempt[%d] has no field, so that nothing would be decided: write at least one", i)
		}
	}
	if s.exempt, err = rule.NewMatchSet(c.Folds.Matches(c.Exempt)); err != nil {
		return fmt.Errorf("guard: Config.Exempt: %w", err)
	}
	all := rule.Rule{Exempt: c.Exempt}
	s.needs |= all.Needs()
	s.reads.AddRule(&all)
	return nil
}

// addShare prepares fair share.
func (s *set) addShare(g *Guard, c *Config) error {
	if c.FairShare == nil {
		return nil
	}
	share, err := g.prepareShare(*c.FairShare, c.Folds)
	if err != nil {
		return fmt.Errorf("guard: fair share: %w", err)
	}
	if s.share = share; share.Mode != Off {
		s.needs |= share.from.needs
	}
	if share.Mode == Enforce {
		s.addParts(share.Client)
		s.reads.AddRule(&rule.Rule{Match: share.Match, Key: []rule.Part{share.Client}})
		s.reads.AddStated(share.CostHeader)
		s.reads.AddStated(share.IDHeader)
	}
	return nil
}

// readOutcome adds the headers of answers that a rule reads.
func (s *set) readOutcome(r *Rule) {
	read := &s.stages.facts.Answer
	if r.Settle != "" && !slices.Contains(*read, r.Settle) {
		*read = append(*read, r.Settle)
	}
	for _, name := range [...]string{grpcStatus, contentType} {
		if len(r.Count) > 0 && !slices.Contains(*read, name) {
			*read = append(*read, name)
		}
	}
}

func (g *Guard) prepareRule(c *Config, r *Rule, number int, claimed *claims) (prepared, error) {
	p := prepared{
		Rule: r, number: number, needs: r.Needs(), places: g.state.placesOf(r.Name), state: g.state, space: namespaced(c.Namespace),
	}
	p.learned = g.state.learnedOf(p.places, r)
	if err := g.checkRule(c, r); err != nil {
		return p, err
	}
	if r.Lease.Resource != "" {
		err := p.prepareLease()
		return p, err
	}
	if r.Quota != "" {
		p.quota, _ = slices.BinarySearch(c.Quotas.names, r.Quota)
		p.effects = effects(r, c.Quotas.plans)
		return p, nil
	}
	if err := g.addSlots(c, &p); err != nil {
		return p, err
	}
	limits, err := g.windows(c, r, r.Policies, claimed)
	if err != nil {
		return p, err
	}
	p.limits = limits
	g.addOperatorBans(&p, markerOfRule+r.Name)
	p.overrides, err = g.prepareOverrides(c, r, claimed)
	return p, err
}
