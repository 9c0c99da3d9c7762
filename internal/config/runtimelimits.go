package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

// NewLimits are limits that take the place of those of a rule at run time.
type NewLimits struct {
	// Limits are written like those of the configuration: 25/1s.
	Limits []string
	// Burst is the burst of all Limits; 0 is that of the rule.
	Burst int64
}

// Policies gives the policies of the limits for a rule, which count like the limits of the rule. The error says what to write.
func (n *NewLimits) Policies(r *guard.Rule) ([]headgate.Policy, error) {
	switch {
	case len(r.Policies) == 0:
		return nil, fmt.Errorf("rule %s has no limits of units that others could replace: name a rule with limits", r.Name)
	case len(n.Limits) == 0 || len(n.Limits) > maxLimits:
		return nil, fmt.Errorf("there are %d limits: write 1 to %d, like 25/1s", len(n.Limits), maxLimits)
	case n.Burst < 0 || n.Burst > headgate.MaxUnits:
		return nil, fmt.Errorf("burst is %d: write 1 or more, or leave it out", n.Burst)
	case n.Burst > 0 && !slices.Contains(limit.UsedBy("burst"), r.Policies[0].Algorithm):
		return nil, fmt.Errorf("burst is not used by %s, which counts rule %s: leave it out", r.Policies[0].Algorithm, r.Name)
	}
	policies := make([]headgate.Policy, len(n.Limits))
	for i, text := range n.Limits {
		parsed, err := rule.ParseLimit(text)
		if err != nil {
			return nil, err //nolint:wrapcheck // because it says which limit is wrong, and what to write.
		}
		p := r.Policies[0]
		if parsed.Burst = p.Limit.Burst; n.Burst > 0 {
			parsed.Burst = n.Burst
		}
		p.Limit = parsed
		if _, err := limit.Compile(p); err != nil {
			return nil, fmt.Errorf("limit %s: %w", text, err)
		}
		policies[i] = p
	}
	return policies, checkPeriods(policies)
}

// checkPeriods finds limits that never decide anything because of another one.
func checkPeriods(policies []headgate.Policy) error {
	for i, p := range policies {
		for j, other := range policies {
			switch {
			case i > j && p.Limit.Period() == other.Limit.Period():
				return fmt.Errorf("the period %s appears twice: remove the higher limit", p.Limit.Period())
			case i != j && p.Limit.Period() != other.Limit.Period() && check.Covers(other, p):
				return fmt.Errorf("%s is never reached: %s allows no more in a longer period: remove it", p.Limit, other.Limit)
			}
		}
	}
	return nil
}

// Trial are limits that are tried for a rule at run time.
type Trial struct {
	NewLimits

	Name, Rule string
}

var errTrialNeedsLimits = errors.New("try other limits of a rule that counts units for keys")

// CheckTrial says why a rule cannot have a trial with these limits. After a change of the configuration, a rule may lose its trial.
func CheckTrial(r *guard.Rule, n *NewLimits) ([]headgate.Policy, error) {
	switch {
	case r.Mode == guard.Off:
		return nil, fmt.Errorf("rule %s is off, and decides on no request: switch it to enforce or shadow first", r.Name)
	case r.Quota != "":
		return nil, fmt.Errorf("rule %s has the quota %s, whose limits depend on the plans of customers: %w", r.Name, r.Quota,
			errTrialNeedsLimits)
	case r.Lease.Resource != "":
		return nil, fmt.Errorf("rule %s has leases of %s: %w", r.Name, r.Lease.Resource, errTrialNeedsLimits)
	case r.LimitsFrom != guard.LimitsFrom{}:
		return nil, fmt.Errorf("requests of rule %s may state their limit (limits_from): %w", r.Name, errTrialNeedsLimits)
	}
	return n.Policies(r)
}

// TrialLeavesOut lists the fields of a rule that its trials do without.
func TrialLeavesOut(r *guard.Rule) (fields []string) {
	if r.Ban.For > 0 {
		fields = append(fields, "ban")
	}
	if r.InFlight > 0 {
		fields = append(fields, "in_flight")
	}
	if r.Exceed.Action == guard.Degrade {
		fields = append(fields, "on_exceed")
	}
	return fields
}

// trialRule is the rule of a trial. It counts under its own name, and a store that does not answer is no refusal of it.
func trialRule(r *guard.Rule, t *Trial) (guard.Rule, error) {
	policies, err := CheckTrial(r, &t.NewLimits)
	twin := *r
	twin.Name, twin.TrialOf, twin.Policies = t.Name, r.Name, policies
	twin.Mode, twin.Switch, twin.Fallback = guard.Shadow, nil, guard.FallbackAllow
	twin.Ban, twin.InFlight, twin.Soft = guard.Ban{}, 0, 0
	if r.Exceed.Action != guard.Delay {
		twin.Exceed = guard.Exceed{}
	}
	return twin, err
}

// WithTrials returns a copy of c with a rule in shadow for each trial, behind its own rule. A trial whose rule is gone, or does not
// take its limits any more, is left out: it must not keep a new configuration from its effect.
func (c *Config) WithTrials(trials []Trial) *Config {
	if len(trials) == 0 {
		return c
	}
	own := *c
	own.Rules = make([]guard.Rule, 0, len(c.Rules)+len(trials))
	for i := range c.Rules {
		r := &c.Rules[i]
		own.Rules = append(own.Rules, *r)
		for j := range trials {
			if trials[j].Rule != r.Name || c.hasRule(trials[j].Name) {
				continue
			}
			if twin, err := trialRule(r, &trials[j]); err == nil {
				own.Rules = append(own.Rules, twin)
			}
		}
	}
	return &own
}

func (c *Config) hasRule(name string) bool {
	return slices.ContainsFunc(c.Rules, func(r guard.Rule) bool { return r.Name == name })
}

// LimitTexts gives limits as the configuration writes them.
func LimitTexts(policies []headgate.Policy) []string {
	texts := make([]string, len(policies))
	for i, p := range policies {
		texts[i] = field.FormatLimit(p)
	}
	return texts
}

// TrialName makes the name of a trial of a rule: equal trials have one name, so that those of instances with one store count together.
func TrialName(ruleName string, n *NewLimits) string {
	const most = 64 // of the name of a rule
	name := ruleName + ".trial"
	for _, text := range n.Limits {
		name += "-" + strings.ReplaceAll(text, "/", "-")
	}
	if n.Burst > 0 {
		name += fmt.Sprintf("-burst-%d", n.Burst)
	}
	if len(name) > most {
		sum := sha256.Sum256([]byte(name))
		name = "trial-" + hex.EncodeToString(sum[:8])
	}
	return name
}
