package guard

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// set is what a Guard guards with between two reloads. It is immutable.
type set struct {
	guard       *Guard
	index       *rule.Index
	rules       []prepared
	independent bool
	config      Config
	needs       rule.Needs
	marks       []string
}

// prepared is a rule with what its store calls its limits.
type prepared struct {
	*Rule

	number    int
	needs     rule.Needs
	limits    []window
	overrides *rule.Overrides
	special   [][]window // by the number that overrides gives
	waiting   *atomic.Int64
	state     *State
}

// kind says what a window is for.
type kind uint8

const (
	kindLimit kind = iota
	kindBan
	kindHard
)

// window is one counter of a rule: one of its limits, its ban, or its hard limit.
type window struct {
	id     headgate.PolicyID
	limit  headgate.Limit
	policy string // what callers see
	index  int    // among the limits
	number uint8  // what the store sees
	kind   kind
	mode   headgate.Mode
	// countsRejected says that what it counted of a refused request stays counted.
	countsRejected bool
}

const (
	// maxWindows bounds the limits of one rule: each is a state of its own for every key.
	maxWindows = 32
	// The numbers of windows that are no limits; those of limits are below.
	banWindow  = 255
	hardWindow = 254
	// windowNumbers is prime, so that periods of round numbers spread.
	windowNumbers = 251
)

// prepare makes the set of a Config. The error names the rule.
func (g *Guard) prepare(c Config) (*set, error) {
	c.Rules = slices.Clone(c.Rules) // The caller may go on with his for the next reload.
	s := &set{guard: g, independent: c.Independent, config: c, marks: spellings(FieldMark)}
	var matching []rule.Rule
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.Mode == Off {
			continue
		}
		p, err := g.prepareRule(r, i)
		if err != nil {
			return nil, fmt.Errorf("guard: rule %q: %w", r.Name, err)
		}
		s.rules = append(s.rules, p)
		s.needs |= p.needs
		if r.Exceed.Action == Degrade && !slices.Contains(s.marks, r.Exceed.Header) {
			s.marks = append(s.marks, spellings(r.Exceed.Header)...)
		}
		matching = append(matching, r.Rule)
	}
	index, err := rule.NewIndex(matching)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	s.index = index
	return s, nil
}

func (g *Guard) prepareRule(r *Rule, number int) (prepared, error) {
	p := prepared{Rule: r, number: number, needs: r.Needs(), waiting: g.state.waitersOf(r.Name), state: g.state}
	if err := checkRule(r); err != nil {
		return p, err
	}
	limits, err := g.windows(r, r.Policies)
	if err != nil {
		return p, err
	}
	p.limits = limits
	if len(r.Overrides) == 0 {
		return p, nil
	}
	values := make([]string, len(r.Overrides))
	for i, o := range r.Overrides {
		values[i] = o.Value
		special, err := g.windows(r, o.Policies)
		if err != nil {
			return p, fmt.Errorf("override %q: %w", o.Value, err)
		}
		p.special = append(p.special, special)
	}
	p.overrides, err = rule.NewOverrides(r.Key[0], values)
	return p, err
}

// windows prepares the counters for one list of limits of a rule.
func (g *Guard) windows(r *Rule, policies []headgate.Policy) ([]window, error) {
	if len(policies) == 0 || len(policies) > maxWindows {
		return nil, fmt.Errorf("it has %d limits: give it 1 to %d", len(policies), maxWindows)
	}
	numbers := windowsByPeriod(policies)
	var all []window
	for i, policy := range policies {
		w := window{limit: policy.Limit, policy: r.Name, index: i, number: numbers[i]}
		if len(policies) > 1 {
			w.policy += "-" + policy.Limit.Period()
		}
		if policy.Algorithm == headgate.Ban {
			return nil, errBanIsNoLimit
		}
		if r.Exceed.Action == Delay {
			if policy.Algorithm > headgate.LeakyBucket {
				return nil, fmt.Errorf("delay has no departures in %s: use token_bucket or leaky_bucket", policy.Algorithm)
			}
			w.mode, policy.MaxWait = headgate.Book, r.Exceed.MaxWait
		}
		if err := g.add(&all, w, policy); err != nil {
			return nil, err
		}
	}
	if r.Ban.For > 0 {
		after := r.Ban.After
		if after.Per == 0 {
			after = headgate.Limit{Count: policies[0].Limit.Count, Per: policies[0].Limit.Per}
		}
		policy := headgate.Policy{Algorithm: headgate.Ban, Limit: after, BanFor: r.Ban.For}
		if err := g.add(&all, window{limit: after, policy: r.Name + "-ban", number: banWindow, kind: kindBan}, policy); err != nil {
			return nil, err
		}
	}
	if hard := r.Exceed.Hard; r.Exceed.Action == Degrade && hard.Limit.Per != 0 {
		if hard.Algorithm == headgate.Ban {
			return nil, errBanIsNoLimit
		}
		if err := g.add(&all, window{limit: hard.Limit, policy: r.Name + "-hard", number: hardWindow, kind: kindHard}, hard); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (g *Guard) add(all *[]window, w window, policy headgate.Policy) error {
	id, err := g.store.Prepare(policy)
	if err != nil {
		return err
	}
	w.id, w.countsRejected = id, policy.CountRejected
	*all = append(*all, w)
	return nil
}

// windowsByPeriod numbers limits by their periods, so that a limit keeps its
// counters when others come, go or change places beside it. Of two periods that
// meet on one number the longer moves on.
func windowsByPeriod(policies []headgate.Policy) []uint8 {
	order := make([]int, len(policies))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(policies[a].Limit.Per, policies[b].Limit.Per) })
	numbers := make([]uint8, len(policies))
	var taken [windowNumbers]bool
	for _, i := range order {
		n := uint64(policies[i].Limit.Per) % windowNumbers
		for taken[n] {
			n = (n + 1) % windowNumbers
		}
		taken[n], numbers[i] = true, uint8(n)
	}
	return numbers
}
