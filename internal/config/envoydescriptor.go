package config

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

const (
	envoyExample   = "{key: path, rate_limit: " + envoyLimitText + "}"
	envoyLimitText = "{unit: minute, requests_per_unit: 20}"
)

// envoyForm is the format of descriptors in files of envoyproxy/ratelimit.
func envoyForm() treeForm { return treeForm{readEnvoyDescriptor, envoyExample} }

// readEnvoyDescriptor reads one descriptor. Modes and metadata without a limit have no effect.
func readEnvoyDescriptor(s *section, d *guard.Descriptor, f guard.Fallback) {
	s.required("key", "write the key of the entry, like key: path")
	s.text("key", &d.Key)
	s.text("value", &d.Value)
	limit := s.sub("rate_limit", envoyLimitText)
	var leaf guard.Leaf
	if limit.self.node != nil {
		limit.envoyLimit(&leaf, f)
		d.Leaf = &leaf
	}
	shadow := false
	s.flag("shadow_mode", &shadow)
	s.flag("quota_mode", &leaf.QuotaMode)
	s.flag("detailed_metric", &d.DetailedMetric)
	s.flag("value_to_metric", &d.ValueToMetric)
	s.flag("share_threshold", &d.ShareThreshold)
	if leaf.Metadata = s.metadata(); shadow {
		leaf.Mode = guard.Shadow
	}
}

// envoyLimit reads a rate_limit.
func (s *section) envoyLimit(l *guard.Leaf, f guard.Fallback) {
	s.flag("unlimited", &l.Unlimited)
	s.text("name", &l.Name)
	s.envoyReplaces(l)
	v, unit := s.get("unit")
	count := int64(0)
	s.number("requests_per_unit", &count, 0, math.MaxUint32)
	algorithm, burst := s.leafAlgorithm()
	own := s.sets("limits")
	switch {
	case unit && (l.Unlimited || own):
		s.fault(s.keyOf("unit"), "has no effect beside "+beside(own), "remove one of them")
	case own && l.Unlimited:
		s.fault(s.keyOf("limits"), "has no effect beside unlimited", "remove one of them")
	case own && s.sets("requests_per_unit"):
		s.fault(s.keyOf("requests_per_unit"), "has no effect beside limits", "remove one of them")
	case own:
		l.Policies = s.leafLimits(f)
	case unit:
		one := headgate.Limit{Count: count, Burst: burst}
		if s.envoyUnit(v, algorithm, &one) && !s.blamedAny("requests_per_unit") {
			l.Policies = s.checkedLeaf(limits{[]headgate.Policy{guard.LeafPolicy(algorithm, one)}, []value{v}}, f)
		}
	case !l.Unlimited && !s.blamedAny("unit", "unlimited"):
		s.missing("unit", "write unit: second, minute, hour, day, week, month or year")
	}
	s.record("limits")
	s.end()
}

func beside(own bool) string {
	if own {
		return "limits"
	}
	return "unlimited"
}

// envoyReplaces reads the names of other limits, each in a mapping of its own.
func (s *section) envoyReplaces(l *guard.Leaf) {
	entries, _ := s.list("replaces", "[{name: basic}]", 0, maxReplaced)
	for _, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like {name: basic}")
		if one.self.node == nil {
			continue
		}
		name := ""
		one.required("name", "write the name of another limit")
		one.text("name", &name)
		one.end()
		l.Replaces = append(l.Replaces, name)
		switch at := one.find(one.pathOf("name")); {
		case one.blamed(v.path):
		case name == "":
			one.fault(at, "is an empty name", "write the name of another limit")
		case name == l.Name:
			one.fault(at, "is the name of this limit", "write the name of another limit")
		}
	}
}

// sets reports whether the file has the field with a value.
func (s *section) sets(name string) bool {
	f, found := s.fields[name]
	return found && !isNull(f.value)
}

// envoyUnitsTable has the periods of the units.
var envoyUnitsTable = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": day,
	"week": 7 * day, "month": 30 * day, "year": 365 * day,
}

const day = 24 * time.Hour

// envoyUnit reads a unit: a word, or a period that begins with a number.
func (s *section) envoyUnit(v value, a headgate.Algorithm, into *headgate.Limit) bool {
	const fix = "use second, minute, hour, day, week, month or year, or a period like 90s"
	if v.node.Kind != yaml.ScalarNode {
		s.fault(v, "must be a unit, not "+kindOf(v.node), fix)
		return false
	}
	if word := strings.ToLower(v.text()); s.calendarMonths && word == headgate.Month.String() && a == headgate.FixedWindow {
		into.Calendar = headgate.Month
		return true
	}
	if per, found := envoyUnitsTable[strings.ToLower(v.text())]; found {
		into.Per = per
		return true
	}
	if first := v.text(); first != "" && (first[0] < '0' || first[0] > '9') {
		s.fault(v, quote(first)+" is not a unit", fix)
		return false
	}
	parsed, err := rule.ParseLimit("0/" + v.text())
	if err != nil {
		s.fault(v, quote(v.text())+" is not a period", fix)
		return false
	}
	into.Per = parsed.Per
	return true
}

// flag reads true or false, also in the further spellings of YAML 1.1.
func (s *section) flag(name string, into *bool) {
	v, ok := s.scalar(name, "true or false")
	if !ok || !s.unquoted(v, "true or false") {
		return
	}
	for i, words := range [...]string{"false False FALSE no No NO off Off OFF", "true True TRUE yes Yes YES on On ON"} {
		for word := range strings.FieldsSeq(words) {
			if v.text() == word {
				*into = i == 1
				return
			}
		}
	}
	s.fault(v, fmt.Sprintf("must be true or false, not %s", quote(v.text())), "write true or false")
}
