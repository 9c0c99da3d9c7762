package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// KeyLimit are limits that one value of a key's first part has at run time.
type KeyLimit struct {
	NewLimits

	Rule string
	// Value is written as rule.Override has it.
	Value     string
	Unlimited bool
}

// override gives the Override of the value.
func (k *KeyLimit) override(r *guard.Rule) (guard.Override, error) {
	o := guard.Override{Value: k.Value, Unlimited: k.Unlimited}
	if k.Unlimited {
		return o, nil
	}
	policies, err := k.Policies(r)
	o.Policies = policies
	return o, err
}

// CheckKeyLimit says why no value of a rule's key can have these limits.
func CheckKeyLimit(r *guard.Rule, k *KeyLimit) error {
	switch {
	case r.Mode == guard.Off:
		return fmt.Errorf("rule %s is off, and limits nothing: switch it to enforce or shadow first", r.Name)
	case r.Quota != "":
		return fmt.Errorf("rule %s has the quota %s: change the customer with headgate ctl quota set", r.Name, r.Quota)
	case r.Lease.Resource != "":
		return fmt.Errorf("rule %s has leases of %s, and no limits of single keys: change the capacity of the resource", r.Name,
			r.Lease.Resource)
	case k.Unlimited && (len(k.Limits) > 0 || k.Burst > 0):
		return fmt.Errorf("the key has limits and is unlimited: leave out one of them")
	}
	_, err := k.override(r)
	return err
}

// LimitsOfKey gives the limits that apply to the value of a request at a time: those of an override, or of the rule. from is the value of
// the override; "" is the rule.
func (c *Config) LimitsOfKey(r *guard.Rule, find *rule.NamedValue, now time.Time) (limits []string, from string) {
	o := r.OverrideAt(find.Request, now, c.Folds)
	switch {
	case o == nil:
		return LimitTexts(r.Policies), ""
	case o.Unlimited:
		return []string{"unlimited"}, o.Value
	default:
		return LimitTexts(o.Policies), o.Value
	}
}

// WithKeyLimits returns a copy of c in which values have limits of their own, in place of an override of the same value. A limit whose rule
// is gone, or does not take it any more, is left out: it must not keep a new configuration from its effect.
func (c *Config) WithKeyLimits(all []KeyLimit) *Config {
	if len(all) == 0 {
		return c
	}
	byRule := map[string][]*KeyLimit{}
	for i := range all {
		byRule[all[i].Rule] = append(byRule[all[i].Rule], &all[i])
	}
	own := *c
	own.Rules = slices.Clone(c.Rules)
	for i := range own.Rules {
		if limits := byRule[own.Rules[i].Name]; len(limits) > 0 {
			c.addKeyLimits(&own.Rules[i], limits)
		}
	}
	return &own
}

// addKeyLimits adds overrides to a copy of a rule.
func (c *Config) addKeyLimits(r *guard.Rule, limits []*KeyLimit) {
	entries := make([]rule.Override, len(r.Overrides))
	for i := range r.Overrides {
		entries[i] = c.Folds.Override(r.Key[0], rule.Override{Value: r.Overrides[i].Value, Many: r.Overrides[i].Many})
	}
	present, err := rule.NewManyOverrides(r.Key[0], entries)
	if err != nil {
		return // The configuration itself is faulty.
	}
	r.Overrides = slices.Clone(r.Overrides)
	for _, k := range limits {
		if CheckKeyLimit(r, k) != nil {
			continue
		}
		o, _ := k.override(r)
		named, err := c.Folds.OfOverride(&r.Rule, k.Value)
		if err != nil || slices.ContainsFunc(r.Overrides[len(entries):], func(b guard.Override) bool { return b.Value == o.Value }) {
			continue
		}
		if at, found := present.Find(named.Request); found && rule.SameOverride(r.Key[0], entries[at], named.Override) {
			r.Overrides[at] = o
			continue
		}
		r.Overrides = append(r.Overrides, o)
	}
}
