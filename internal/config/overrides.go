package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

const (
	// maxOverrides bounds the overrides of one rule, and maxAllOverrides those of one file. A
	// reload reads all of them.
	maxOverrides    = 10_000
	maxAllOverrides = 65_536
	// maxOverrideValue bounds the length of a value. Keys have a digest in place of a value longer than 128 bytes.
	maxOverrideValue = 1024
	// maxAllPatterns bounds the patterns of one file, which take some kilobytes each.
	maxAllPatterns = 1000
)

const overridesExample = `{customer-42: {limits: ["1000/s"]}}`

// overrides reads the limits for values of the key's first part. It returns the limits in the order of the file.
func (s *section) overrides(r *guard.Rule, sh shape) []limits {
	o := s.sub(s.declare("overrides", field.Taken, "Limits for values of the key's first part, also for networks like "+
		"10.0.0.0/8 and patterns like gold-*. They replace the rule's limits."),
		overridesExample)
	each := o.outline.each(maxOverrides)
	if o.self.node == nil {
		return nil
	}
	o.self = s.keyOf("overrides") // Faults about all overrides point at the field's name.
	if !o.countOverrides() {
		return nil
	}
	all := make([]limits, 0, len(o.names))
	var names []string
	for _, name := range o.names {
		if s.full {
			break
		}
		if len(name) > maxOverrideValue {
			s.fault(value{path: o.self.path, node: o.fields[name].key}, fmt.Sprintf("a value has %d bytes", len(name)),
				fmt.Sprintf("use at most %d", maxOverrideValue))
			continue
		}
		v, ok := o.valueOf(name)
		if !ok {
			continue
		}
		one := s.section(v, `write it like {limits: ["1000/s"]}`)
		one.outline = each
		if one.self.node == nil {
			continue
		}
		own := guard.Override{Value: name, Many: true}
		if l := one.override(&own, sh); !own.Unlimited {
			all = append(all, l)
		}
		r.Overrides, names = append(r.Overrides, own), append(names, name)
	}
	o.checkValues(r, names)
	return all
}

// override reads the limits of one override, and when it ends.
func (s *section) override(o *guard.Override, sh shape) limits {
	l := s.limits(sh)
	o.Policies = l.policies
	s.boolean(s.declare("unlimited", field.Taken, "true lets requests pass, in place of limits: the rule does not count them."),
		&o.Unlimited)
	s.outline.field("unlimited").dependent()
	s.declare("until", field.Taken, "When the override ends: a date, which includes that day in UTC, or a time. Default: never.")
	s.ending(&o.Until)
	s.requiredUnless("limits", limitsFix, "unlimited")
	if s.has("unlimited") && !o.Unlimited && !s.has("limits") {
		s.fault(s.keyOf("unlimited"), "has no limits beside it", limitsFix)
	}
	for _, name := range [...]string{"limits", "burst"} {
		if o.Unlimited && s.has(name) {
			s.fault(s.keyOf(name), "has no effect beside unlimited", "remove it, or remove unlimited")
		}
	}
	s.end()
	return l
}

// countOverrides reports false if there are too many overrides.
func (s *section) countOverrides() bool {
	n := len(s.names)
	s.overridden += n
	switch {
	case n > maxOverrides:
		s.fault(s.self, fmt.Sprintf("has %d values", n), fmt.Sprintf("use at most %d", maxOverrides))
	case s.overridden > maxAllOverrides && s.overridden-n <= maxAllOverrides:
		s.fault(s.self, fmt.Sprintf("the overrides of all rules have %d or more values", s.overridden),
			fmt.Sprintf("use at most %d in one file", maxAllOverrides))
	}
	return n <= maxOverrides && s.overridden <= maxAllOverrides
}

// checkValues checks the names of the overrides with package rule.
func (s *section) checkValues(r *guard.Rule, names []string) {
	if len(r.Key) == 0 || len(names) == 0 {
		return
	}
	if r.Key[0].String() == "all" {
		s.fault(s.self, "key all has only one value", "remove overrides, or use another key")
		return
	}
	entries := make([]rule.Override, len(names))
	for i, name := range names {
		entries[i] = rule.Override{Value: name, Many: true}
	}
	index, err := rule.NewManyOverrides(r.Key[0], entries)
	for _, err := range check.Unjoin(err) {
		if bad, found := errortype.As[*rule.OverrideError](err); found {
			name := names[bad.Index]
			v := value{path: s.pathOf(name), node: s.fields[name].key}
			if problem := bad.Problem; name != "" {
				s.fault(v, problem, bad.Fix)
			} else {
				v.path = s.self.path
				s.fault(v, "a value "+problem, bad.Fix)
			}
		}
	}
	if err == nil {
		s.checkReach(r, names)
	}
	if n := index.Patterns(); n > 0 {
		if s.patterned += n; s.patterned > maxAllPatterns && s.patterned-n <= maxAllPatterns {
			s.fault(s.self, fmt.Sprintf("the overrides of all rules have %d or more patterns", s.patterned),
				fmt.Sprintf("use at most %d in one file", maxAllPatterns))
		}
	}
}

// mostOverrides bounds the overrides that a summary lists for each rule.
const mostOverrides = 10

// writeOverrides lists the overrides for many values, without limits, and with an end. Writing to a strings.Builder never fails.
func (c *Config) writeOverrides(b *strings.Builder) {
	for i := range c.Rules {
		r, listed := &c.Rules[i], 0
		for j := range r.Overrides {
			o := &r.Overrides[j]
			if !o.Unlimited && o.Until == 0 && !standsForMany(r, o.Value) && !hasBurst(r.Policies) && !hasBurst(o.Policies) {
				continue
			}
			switch listed++; {
			case listed == 1:
				fmt.Fprintf(b, "\noverrides of %s\n", r.Name)
				fallthrough
			case listed <= mostOverrides:
				fmt.Fprintf(b, "  %s: %s\n", quote(o.Value), overrideText(o, hasBurst(r.Policies)))
			}
		}
		if listed > mostOverrides {
			fmt.Fprintf(b, "  and %d more\n", listed-mostOverrides)
		}
	}
}

// standsForMany reports whether the value of an override is a network of many addresses, or a pattern.
func standsForMany(r *guard.Rule, value string) bool {
	switch r.Key[0].Word() {
	case "ip", "xff_ip", "user_ip":
		network, err := netip.ParsePrefix(value)
		return err == nil && network.Bits() < min(network.Addr().BitLen(), 64)
	default:
		return strings.ContainsAny(value, "*{") && !strings.HasPrefix(value, "=") || strings.HasPrefix(value, "re:")
	}
}

func hasBurst(policies []headgate.Policy) bool {
	return slices.ContainsFunc(policies, func(p headgate.Policy) bool { return p.Limit.Burst > 0 })
}

// overrideText says what an override allows. An override has no burst of the rule, which bursts says that it has.
func overrideText(o *guard.Override, bursts bool) string {
	text := "unlimited"
	if !o.Unlimited {
		texts := make([]string, len(o.Policies))
		for i, p := range o.Policies {
			texts[i] = field.FormatLimit(p)
		}
		text = strings.Join(texts, " ")
		if bursts && !hasBurst(o.Policies) {
			text += ", without the rule's burst"
		}
	}
	if o.Until != 0 {
		text += ", until " + o.Until.Time().UTC().Format(time.RFC3339)
	}
	return text
}

// EndedOverrides lists the overrides of a rule that have ended at a time, with their ends. It lists the first few, and the number of
// the others.
func EndedOverrides(r *guard.Rule, now time.Time) []string {
	var ended []string
	n := 0
	for i := range r.Overrides {
		if o := &r.Overrides[i]; o.Ended(headgate.Instant(now.UnixNano())) {
			if n++; n <= mostNames {
				ended = append(ended, quote(o.Value)+" at "+o.Until.Time().UTC().Format(time.RFC3339))
			}
		}
	}
	if n > mostNames {
		ended = append(ended, fmt.Sprintf("and %d more", n-mostNames))
	}
	return ended
}

// OverrideWarnings tells which overrides have ended at a time, so that they have no effect. A file stays valid when their time is
// over. There is at most one text for each rule.
func (c *Config) OverrideWarnings(now time.Time) []string {
	var warnings []string
	for i := range c.Rules {
		if ended := EndedOverrides(&c.Rules[i], now); len(ended) > 0 {
			warnings = append(warnings, fmt.Sprintf("rule %s: these overrides have ended, and have no effect: %s: remove them, or set a "+
				"later until",
				c.Rules[i].Name, strings.Join(ended, ", ")))
		}
	}
	return warnings
}
