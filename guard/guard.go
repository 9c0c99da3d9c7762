package guard

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// Observer is told of every answer. It must not block, and keeps neither req nor a.
type Observer interface {
	Observe(req *headgate.Request, a *Answer)
}

// Config says what a Guard guards.
type Config struct {
	// Rules are looked at in this order. Rules that are Off are not looked at.
	Rules []Rule
	// Store counts for all of them.
	Store headgate.Store
	// Independent lets every rule count on its own. Otherwise the enforced rules
	// that match are all or nothing: a refusal by one takes nothing from the others.
	Independent bool
	// StoreTimeout is the budget of one decision, all rules together; 0 is none,
	// which is right for a store in memory.
	StoreTimeout time.Duration
	// Observer is told of every answer; nil is nobody.
	Observer Observer
}

// Guard identifies, matches, decides and reports. It is immutable but for its
// store, and safe for concurrent use.
type Guard struct {
	index       *rule.Index
	rules       []prepared
	store       headgate.Store
	independent bool
	timeout     time.Duration
	observer    Observer
	seed        maphash.Seed
}

// maxWindows bounds the limits of one rule: each is a state of its own for every key.
const maxWindows = 32

// prepared is a rule with what its store calls its limits.
type prepared struct {
	*Rule

	number   int
	ids      []headgate.PolicyID
	policies []string
}

// New prepares the rules' limits in the store. The error names the rule.
func New(c Config) (*Guard, error) {
	g := &Guard{
		store: c.Store, independent: c.Independent, timeout: c.StoreTimeout,
		observer: c.Observer, seed: maphash.MakeSeed(),
	}
	var matching []rule.Rule
	for i := range c.Rules {
		if c.Rules[i].Mode == Off {
			continue
		}
		p, err := g.prepare(&c.Rules[i], i)
		if err != nil {
			return nil, fmt.Errorf("guard: rule %q: %w", c.Rules[i].Name, err)
		}
		g.rules = append(g.rules, p)
		matching = append(matching, c.Rules[i].Rule)
	}
	index, err := rule.NewIndex(matching)
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	g.index = index
	return g, nil
}

func (g *Guard) prepare(r *Rule, number int) (prepared, error) {
	p := prepared{Rule: r, number: number}
	if len(r.Policies) == 0 || len(r.Policies) > maxWindows {
		return p, fmt.Errorf("it has %d limits: give it 1 to %d", len(r.Policies), maxWindows)
	}
	if r.Cost < 0 || r.Cost > headgate.MaxUnits {
		return p, headgate.ErrBadCost
	}
	for _, policy := range r.Policies {
		id, err := g.store.Prepare(policy)
		if err != nil {
			return p, err
		}
		name := r.Name
		if len(r.Policies) > 1 {
			name += "-" + policy.Limit.Period()
		}
		p.ids, p.policies = append(p.ids, id), append(p.policies, name)
	}
	return p, nil
}

// Decide fills a with what the rules say of req: identify, match, decide, report.
//
// It fails only for a cost that cannot be counted (headgate.ErrBadCost). A store
// that cannot answer leaves each rule to its fallback, with the reason
// StoreUnavailable.
func (g *Guard) Decide(ctx context.Context, req *headgate.Request, a *Answer) error {
	if req.Cost < 0 || req.Cost > headgate.MaxUnits {
		return headgate.ErrBadCost
	}
	a.reset()
	a.matched = g.index.Match(req, a.matched[:0])
	g.ask(req, a, Enforce)
	g.ask(req, a, Shadow)
	g.apply(ctx, a)
	a.judge()
	if g.observer != nil {
		g.observer.Observe(req, a)
	}
	return nil
}

// ask adds the Ops of the matching rules of one mode. Enforced rules stand
// together, so that they can be one group; every shadow rule is its own.
func (g *Guard) ask(req *headgate.Request, a *Answer, mode Mode) {
	for _, m := range a.matched {
		p := &g.rules[m]
		if p.Mode != mode {
			continue
		}
		from := len(a.keys)
		keys, shared := p.AppendKey(a.keys, req)
		a.keys = keys
		// The store reads the key during Apply only, and nothing writes to it until then.
		key := unsafe.String(unsafe.SliceData(keys[from:]), len(keys)-from) //nolint:gosec // A copy would be an allocation.
		if mode == Shadow || g.independent {
			a.group++
		}
		for w, id := range p.ids {
			a.ops = append(a.ops, headgate.Op{
				Key: key, Policy: id, Window: uint8(w), Group: a.group, Cost: cost(req, p.Rule),
			})
			a.Results = append(a.Results, Result{
				Rule: p.Rule, Window: w, Policy: p.policies[w], Number: p.number,
				Shared: shared, KeyHash: maphash.String(g.seed, key),
			})
		}
	}
}

func cost(req *headgate.Request, r *Rule) int64 {
	switch {
	case req.Cost > 0:
		return req.Cost
	case r.Cost > 0:
		return r.Cost
	default:
		return 1
	}
}

// apply lets the store decide, or the fallbacks if it cannot.
func (g *Guard) apply(ctx context.Context, a *Answer) {
	if len(a.ops) == 0 {
		return
	}
	if cap(a.decisions) < len(a.ops) {
		a.decisions = make([]headgate.Decision, len(a.ops))
	}
	a.decisions = a.decisions[:len(a.ops)]
	if g.timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, g.timeout)
		defer cancel()
		ctx = bounded
	}
	err := g.store.Apply(ctx, a.ops, a.decisions)
	for i := range a.Results {
		r := &a.Results[i]
		if err == nil {
			r.Decision = a.decisions[i]
		} else {
			r.Decision = fallback(r.Rule, r.Window)
		}
	}
	a.StoreError = err
}

// fallback is the decision of a rule whose store cannot answer.
func fallback(r *Rule, window int) headgate.Decision {
	verdict := headgate.Deny
	if r.Fallback == FallbackAllow {
		verdict = headgate.Allow
	}
	return headgate.Decision{Verdict: verdict, Reason: headgate.StoreUnavailable, Limit: r.Policies[window].Limit.Count}
}

// Cancel returns what the answer took, when its request will not be made: a
// client that went away while it waited for its departure.
func (g *Guard) Cancel(ctx context.Context, a *Answer) error {
	a.receipts = a.receipts[:0]
	for i := range a.Results {
		if r := &a.Results[i].Decision.Receipt; !r.Empty() {
			a.receipts = append(a.receipts, *r)
		}
	}
	if err := g.store.Return(ctx, a.receipts); err != nil {
		return fmt.Errorf("guard: what a cancelled request took stays counted: %w", err)
	}
	return nil
}
