package mode

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/sorting"
)

// override is a mode that was set at run time.
type override struct {
	config.ModeOverride

	since, until time.Time // until is zero without an end
	by           string
	everywhere   bool // The source has it, so that all instances have it.
}

// Ends implements overlay.Entry.
func (o override) Ends() time.Time { return o.until }

// overrides are the overrides by the names of their rules; "" is the one of all. A value of it does not change.
type overrides map[string]override

// with gives the overrides after a change. Without names, the change replaces all of them. A nil change ends overrides.
func (o overrides) with(names []string, change *override) overrides {
	next := overrides{}
	if len(names) > 0 {
		next = maps.Clone(o)
		if next == nil {
			next = overrides{}
		}
	} else {
		names = []string{""}
	}
	for _, name := range names {
		delete(next, name)
		if change != nil {
			next[name] = *change
		}
	}
	return next
}

// config gives the overrides for a configuration.
func (o overrides) config() config.ModeOverrides {
	c := config.ModeOverrides{Named: map[string]config.ModeOverride{}}
	for name, one := range o {
		if name == "" {
			all := one.ModeOverride
			c.All = &all
			continue
		}
		c.Named[name] = one.ModeOverride
	}
	return c
}

// list gives the overrides by name, that of all first.
func (o overrides) list() []admin.ModeOverride {
	all := make([]admin.ModeOverride, 0, len(o))
	for name, one := range o {
		shown := admin.ModeOverride{
			Rule: name, Mode: one.Mode.String(), Percent: one.Percent, KeepBans: one.KeepBans, Since: one.since.UTC(), By: one.by,
			Everywhere: one.everywhere,
		}
		if !one.until.IsZero() {
			until := one.until.UTC()
			shown.Until = &until
		}
		all = append(all, shown)
	}
	sorting.Func(all, func(a, b admin.ModeOverride) int { return strings.Compare(a.Rule, b.Rule) })
	return all
}

// text describes the overrides of some names in one line, for the audit.
func (o overrides) text(names []string) string {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(o))
	}
	var parts []string
	for _, name := range names {
		one, found := o[name]
		if !found {
			continue
		}
		text := cmp.Or(name, "all") + " " + one.Mode.String()
		if one.Mode == guard.Enforce && one.Percent > 0 {
			text += " " + percent(one.Percent)
		}
		if !one.until.IsZero() {
			text += " until " + one.until.UTC().Format(time.RFC3339)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "file"
	}
	return strings.Join(parts, ", ")
}
