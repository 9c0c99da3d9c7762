package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/sorting"
	"github.com/headgate/headgate/rule"
)

// Reading says why a guard has decided a request as it did: which rules match, which nearly match, and what each one counts. The
// explanation of a configuration and that of a running instance are both made of it.
type Reading struct {
	// Config is the configuration that decided, and Guard the guard that has it.
	Config *config.Config
	Guard  *guard.Guard
	// Request is the request as the guard got it, and Answer its decision.
	Request *headgate.Request
	Answer  *guard.Answer
	Now     time.Time
}

// Seen returns the request as the rules see it.
func (r *Reading) Seen() *headgate.Request {
	seen := *r.Request
	seen.Path = r.Config.Folds.Path(seen.Path)
	return &seen
}

// Miss says why a rule does not match the request.
type Miss struct {
	Rule    string
	Reasons []string
}

// scanned bounds the rules whose conditions are tested one by one. Those with the longest common prefix of the path come first.
const scanned = 500

// Nearest returns the rules that nearly match, the nearest first: at most the given number of those that do not decide. more is the number
// of the others.
func (r *Reading) Nearest(most int) (nearest []Miss, more int) {
	misses := r.misses()
	for _, m := range misses[:min(len(misses), most)] {
		nearest = append(nearest, Miss{m.rule.Name, m.reasons})
	}
	return nearest, max(0, len(misses)-most)
}

// misses tests the rules that do not decide. If some fail for other reasons than their path, only these are returned.
func (r *Reading) misses() []miss {
	seen, deciding := r.Seen(), r.Answer.Matched()
	misses := make([]miss, 0, len(r.Config.Rules))
	for i := range r.Config.Rules {
		one := &r.Config.Rules[i]
		if !slices.ContainsFunc(deciding, func(d *guard.Rule) bool { return d.Name == one.Name }) {
			misses = append(misses, miss{rule: one, common: commonLength(r.Config.Folds.Pattern(one.Match.Path), seen.Path)})
		}
	}
	if len(misses) > scanned {
		sorting.StableFunc(misses, func(a, b miss) int { return cmp.Compare(b.common, a.common) })
		misses = misses[:scanned]
	}
	for i := range misses {
		misses[i] = missOf(misses[i].rule, seen, r.Config.Folds)
	}
	if slices.ContainsFunc(misses, func(m miss) bool { return !m.path }) {
		misses = slices.DeleteFunc(misses, func(m miss) bool { return m.path })
	}
	sorting.StableFunc(misses, func(a, b miss) int {
		return cmp.Or(cmp.Compare(b.common, a.common), cmp.Compare(len(a.reasons), len(b.reasons)))
	})
	return misses
}

// Skipped is a rule that matches and does not apply, because the request lacks a part of its key, and missing is skip.
type Skipped struct {
	Rule *guard.Rule
	Part rule.Part
}

// Skipped returns the rules that do not apply without a part of their key.
func (r *Reading) Skipped() (all []Skipped) {
	seen := r.Seen()
	for i := range r.Config.Rules {
		one := &r.Config.Rules[i]
		if one.Missing != rule.MissingSkip || one.Mode == guard.Off {
			continue
		}
		if part, lacks := one.Lacks(seen); lacks && fits(one, r.folded(one), seen) {
			all = append(all, Skipped{one, one.Key[part]})
		}
	}
	return all
}

// folded returns the match of a rule with its path as the rules see paths.
func (r *Reading) folded(one *guard.Rule) rule.Match {
	match := one.Match
	match.Path = r.Config.Folds.Pattern(match.Path)
	return match
}

// PassedOver is a rule that matches and does not decide, because the rule By of its group does.
type PassedOver struct {
	Rule *guard.Rule
	By   string
}

// PassedOver returns the rules in whose place another rule of their group decides.
func (r *Reading) PassedOver() (all []PassedOver) {
	decided := map[string]string{} // the enforced rule of a group, or else that in shadow
	deciding := r.Answer.Matched()
	for _, one := range deciding {
		if one.Group != "" && (decided[one.Group] == "" || one.Mode == guard.Enforce) {
			decided[one.Group] = one.Name
		}
	}
	if len(decided) == 0 {
		return nil
	}
	seen := r.Seen()
	for i := range r.Config.Rules {
		one := &r.Config.Rules[i]
		by := decided[one.Group]
		if by == "" || one.Mode == guard.Off || slices.ContainsFunc(deciding, func(d *guard.Rule) bool { return d.Name == one.Name }) {
			continue
		}
		if fits(one, r.folded(one), seen) {
			all = append(all, PassedOver{one, by})
		}
	}
	return all
}

// Override returns the override of a rule that applies to the request; nil for none.
func (r *Reading) Override(of *guard.Rule) *guard.Override {
	return of.OverrideAt(r.Seen(), r.Now, r.Config.Folds)
}

// Uncounted returns the rules that match and do not count the request, because an override is unlimited.
func (r *Reading) Uncounted() (all []*guard.Rule) {
	for _, one := range r.Answer.Matched() {
		if o := r.Override(one); o != nil && o.Unlimited {
			all = append(all, one)
		}
	}
	return all
}

// ExemptEntry returns the position of the entry of exempt that leaves out the request from everything, and its text. ok is false for a
// request that none matches.
func (r *Reading) ExemptEntry() (at int, text string, ok bool) {
	if !r.Answer.Exempt {
		return 0, "", false
	}
	set, err := rule.NewMatchSet(r.Config.Folds.Matches(r.Config.Exempt))
	if err != nil {
		return 0, "", false // The guard has accepted the same matches.
	}
	at = set.First(r.Seen())
	return at, matchText(&r.Config.Exempt[at]), true
}
