package config

import (
	"slices"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config/field"
)

// ownModes are the modes that the file writes at the rules, the fair share and the throttle, without the mode of the top level.
type ownModes struct {
	rules           []guard.Mode // in the order of Config.Rules
	share, throttle guard.Mode
}

// ofRule gives the mode of a rule, or its present one in a Config that no file gave.
func (o *ownModes) ofRule(i int, present guard.Mode) guard.Mode {
	if i < len(o.rules) {
		return o.rules[i]
	}
	return present
}

// mode reads the mode of the top level. The weaker mode wins: a rule that is in shadow or off by its own mode stays so.
func (s *section) mode(c *Config) {
	oneOf(s, s.declare("mode", field.Taken, "Mode of all rules, limits of domains, fair share and throttle together: shadow and off "+
		"weaken "+
		"all of them, and enforce changes nothing."), &c.Mode, choicesOf([]guard.Mode{guard.Enforce, guard.Shadow, guard.Off}))
	c.own = ownModes{rules: make([]guard.Mode, len(c.Rules))}
	for i := range c.Rules {
		r := &c.Rules[i]
		c.own.rules[i], r.Mode = r.Mode, max(r.Mode, c.Mode)
	}
	if f := c.FairShare; f != nil {
		c.own.share, f.Mode = f.Mode, max(f.Mode, c.Mode)
	}
	if t := c.Throttle; t != nil {
		c.own.throttle, t.Mode = t.Mode, max(t.Mode, c.Mode)
	}
	c.domainsMode = c.Mode
}

// ModeOverride is a mode that an operator has set at run time, in place of those of the file.
type ModeOverride struct {
	// Mode is guard.Enforce or guard.Shadow.
	Mode guard.Mode
	// Percent is the part of the keys that guard.Enforce applies to; 0 means all.
	Percent  int
	KeepBans bool
}

// ModeOverrides are the overrides in effect. Named has those of rules, of guard.FairShareName and throttler.Name, which come
// before All; nil is none.
type ModeOverrides struct {
	All   *ModeOverride
	Named map[string]ModeOverride
}

// of gives the override for a name. named says that an operator has named it.
func (o *ModeOverrides) of(name string) (override ModeOverride, named, found bool) {
	if override, named = o.Named[name]; named || o.All == nil {
		return override, named, named
	}
	return *o.All, false, true
}

// mode gives the mode of a rule or a stage: effective without overrides, and own is that of the file without the mode of the top
// level. A rule that is off stays off. Enforce for all ends no shadow that the rule itself has.
func (o *ModeOverrides) mode(name string, effective, own guard.Mode) (guard.Mode, ModeOverride) {
	override, named, found := o.of(name)
	if !found || effective == guard.Off || override.Mode == guard.Enforce && !named && own != guard.Enforce {
		return effective, ModeOverride{}
	}
	return override.Mode, override
}

// WithModes returns a copy of c with overrides. Fair share and the throttle have no keys that a part could be taken of, and domains
// have no names here: a part of all keys changes neither.
func (c *Config) WithModes(o ModeOverrides) *Config {
	if o.All == nil && len(o.Named) == 0 {
		return c
	}
	own := *c
	own.Rules = slices.Clone(c.Rules)
	for i := range own.Rules {
		r := &own.Rules[i]
		mode, by := o.mode(r.Name, r.Mode, c.own.ofRule(i, r.Mode))
		if mode != r.Mode || by.Percent > 0 {
			r.Switch = &guard.Switch{From: r.Mode, Percent: by.Percent, KeepBans: by.KeepBans}
			r.Mode = mode
		}
	}
	if c.FairShare != nil {
		share := *c.FairShare
		if mode, by := o.mode(guard.FairShareName, share.Mode, c.own.share); by.Percent == 0 {
			share.Mode = mode
		}
		own.FairShare = &share
	}
	if c.Throttle != nil {
		stage := *c.Throttle
		if mode, by := o.mode(throttler.Name, stage.Mode, c.own.throttle); by.Percent == 0 {
			stage.Mode = mode
		}
		own.Throttle = &stage
	}
	if o.All != nil && o.All.Percent == 0 && c.domainsMode != guard.Off {
		own.domainsMode = o.All.Mode
	}
	return &own
}
