package guard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/rule"
)

// KeyName names one key that a guard counts under, without a request: of a rule, or of a domain.
type KeyName struct {
	// Rule is the name of a rule, and Values are the values of its key's parts, in their order; see rule.Rule.NameKey.
	Rule   string
	Values []string
	// Domain and Entries name a descriptor of a domain with a tree. Rule and Values are empty then.
	Domain  string
	Entries headgate.Descriptors
}

// KeyNameError says that a KeyName names no key that the store counts.
type KeyNameError struct {
	Problem, Fix string
	// Unknown reports that there is no such rule, domain or limit. Otherwise the values are invalid, or the key is counted
	// elsewhere.
	Unknown bool
}

// Error gives the problem and the fix in one sentence.
func (e *KeyNameError) Error() string { return "guard: " + e.Problem + ": " + e.Fix }

// namedKey is what counts a KeyName.
type namedKey struct {
	set     *set
	from    *prepared
	windows []window
	// key is the store's, and own is without the namespace.
	key, own string
	text     string
	override string // its value; "" without one
}

// named finds what counts a key in the rules of now.
func (g *Guard) named(name *KeyName) (*namedKey, error) {
	s := g.now()
	switch {
	case s == nil:
		return nil, headgate.ErrNotMade
	case name.Domain != "" && (name.Rule != "" || len(name.Values) > 0):
		return nil, &KeyNameError{Problem: "a key has both a rule and a domain", Fix: "name one of them"}
	case name.Domain != "":
		return s.namedInTree(name)
	default:
		return s.namedByRule(name)
	}
}

func (s *set) namedByRule(name *KeyName) (*namedKey, error) {
	i := slices.IndexFunc(s.rules, func(p prepared) bool { return p.Name == name.Rule })
	if i < 0 {
		return nil, s.unknownRule(name.Rule)
	}
	p := &s.rules[i]
	switch {
	case p.Quota != "":
		return nil, &KeyNameError{
			Problem: fmt.Sprintf("rule %s counts the quota %s of customers", p.Name, p.Quota),
			Fix:     "use the usage and the reset of quotas (headgate ctl quota usage CUSTOMER)",
		}
	case p.lease != nil:
		return nil, &KeyNameError{
			Problem: fmt.Sprintf("rule %s has leases of %s, and no key in the store", p.Name, p.Lease.Resource),
			Fix:     "look at the leases (headgate ctl leases)",
		}
	}
	named, err := s.config.Folds.NameKey(&p.Rule.Rule, name.Values)
	if err != nil {
		return nil, namesNoKey(err)
	}
	k := &namedKey{
		set: s, from: p, windows: p.limits, own: named.Key, key: string(p.space) + named.Key, text: named.Text,
	}
	if p.overrides != nil {
		if n, found := p.overrides.find(named.Request, s.guard); found {
			k.windows, k.override = p.overrides.windows[n], p.Overrides[n].Value
		}
	}
	return k, nil
}

// namesNoKey says what is wrong with the values of a key.
func namesNoKey(err error) error {
	if fault := new(rule.KeyError); errors.As(err, &fault) {
		return &KeyNameError{Problem: "the key " + fault.Problem, Fix: fault.Fix}
	}
	return err
}

// unknownRule says why no rule of a name counts, and which one is near.
func (s *set) unknownRule(name string) error {
	const shown = 64
	var names []string
	for i := range s.config.Rules {
		r := &s.config.Rules[i]
		if r.Name == name {
			return &KeyNameError{
				Problem: "rule " + name + " is off, and counts nothing", Fix: "switch it to enforce or shadow", Unknown: true,
			}
		}
		names = append(names, r.Name)
	}
	fix := "name a rule of the configuration"
	if near := rule.Nearest(name, names); near != "" {
		fix = "did you mean " + near + "?"
	}
	return &KeyNameError{Problem: fmt.Sprintf("no rule has the name %q", name[:min(len(name), shown)]), Fix: fix, Unknown: true}
}

func (s *set) namedInTree(name *KeyName) (*namedKey, error) {
	t := s.trees[name.Domain]
	if t == nil {
		return nil, &KeyNameError{
			Problem: fmt.Sprintf("no domain has limits under the name %q", name.Domain), Unknown: true,
			Fix: "name a domain of the configuration, or the rule that counts its descriptors",
		}
	}
	var m domain.Match
	found := t.index.Find(name.Entries, &m)
	if len(name.Entries) == 0 || !found || m.Leaf() == domain.NoLeaf || t.leaves[m.Leaf()].Unlimited {
		return nil, &KeyNameError{
			Problem: "the domain " + name.Domain + " has no limit for this descriptor", Unknown: true,
			Fix: "write all entries of the descriptor in their order, as NAME=VALUE",
		}
	}
	own := string(domain.AppendKey(nil, t.Name, name.Entries, &m))
	p := &t.leaves[m.Leaf()].counts
	return &namedKey{
		set: s, from: p, windows: p.limits, own: own, key: string(p.space) + own, text: domain.KeyText(t.Name, name.Entries, &m),
	}, nil
}

// stores lists the stores that count the key: the guard's, and the one of fallbacks.
func (k *namedKey) stores() []headgate.Store {
	stores := []headgate.Store{k.set.guard.store}
	if k.set.config.Local != nil {
		stores = append(stores, k.set.config.Local)
	}
	return stores
}

// banPolicy gives a limit that sees every ban of a key.
func (p *prepared) banPolicy(g *Guard) (headgate.PolicyID, error) {
	lists := [][]window{p.limits}
	if p.overrides != nil {
		lists = append(lists, p.overrides.windows...)
	}
	for _, windows := range lists {
		for i := range windows {
			if windows[i].kind == kindBan {
				return windows[i].id, nil
			}
		}
	}
	w, err := g.operatorLimits()
	if err != nil {
		return 0, err
	}
	return w.id, nil
}
