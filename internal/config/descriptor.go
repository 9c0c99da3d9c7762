package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

const maxReplaced = 1000

// readDescriptor reads one descriptor of the section domains.
func readDescriptor(s *section, d *guard.Descriptor, f guard.Fallback) {
	s.required("key", "write the key of the entry, like key: path")
	s.outline.field(s.declare("key", field.Taken, "Key of the entry.")).text("", "", 1, 0)
	if v, ok := s.textOf("key", &d.Key); ok {
		s.treeName(v, &d.Key)
	}
	if v, ok := s.text(s.declare("value", field.Taken, "Value of the entry. A * in it stands for any bytes, also for none. A text "+
		"behind = is taken as written. Default: every value."), &d.Value); ok {
		s.treeValue(v, d)
	}
	s.boolean(s.declare("share_threshold", field.Taken, "true counts all values that match the wildcard together."), &d.ShareThreshold)
	s.boolean(s.declare("detailed_metric", field.Taken, "true names metrics by the values of the request on all levels."),
		&d.DetailedMetric)
	s.boolean(s.declare("value_to_metric", field.Taken, "true names metrics by the value of the request on this level."), &d.ValueToMetric)
	var leaf guard.Leaf
	s.boolean(s.declare("unlimited", field.Taken, "true allows the descriptor without counting, and can replace other limits."),
		&leaf.Unlimited)
	leaf.Policies = s.leafLimits(f)
	s.text(s.declare("name", field.Taken, "Name of the limit, in answers and for replaces."), &leaf.Name)
	leaf.Replaces = s.texts(s.declare("replaces", field.Taken, "Names of limits that do not count when this descriptor is in the same "+
		"request."), "[basic]", maxReplaced)
	s.checkReplaces(leaf.Name, leaf.Replaces, func(i int) string { return s.pathOf(fmt.Sprintf("replaces[%d]", i)) })
	oneOf(s, s.declare("mode", field.Taken, "enforce refuses requests; shadow only reports decisions."), &leaf.Mode, []choice[guard.Mode]{
		{word: "enforce", value: guard.Enforce}, {word: "shadow", value: guard.Shadow},
	})
	s.boolean(s.declare("quota_mode", field.Taken, "true lets a request pass as long as one of its descriptors with quota_mode passes."),
		&leaf.QuotaMode)
	s.declare("metadata", field.Taken, "Fields that go with the answer to a request that this limit allows.")
	leaf.Metadata = s.metadata()
	s.refused("on_exceed", "has no effect: a decision server answers at once, and its caller acts on the answer")
	s.refused("delay", "has no effect: a decision server answers at once")
	if s.checkLeaf(&leaf) {
		d.Leaf = &leaf
	}
}

// treeName reads the name of a domain, or the key of an entry.
func (s *section) treeName(v value, into *string) {
	name, err := rule.ParseTreeName(v.text())
	if err != nil {
		s.parseFault(v, err)
		return
	}
	*into = name
}

// treeValue reads the value of a descriptor.
func (s *section) treeValue(v value, d *guard.Descriptor) {
	text, literal, err := rule.ParseTreeValue(v.text())
	if err != nil {
		s.parseFault(v, err)
		return
	}
	d.Value, d.Literal = text, literal
}

// refused rejects a known field that descriptors cannot have.
func (s *section) refused(name, problem string) {
	s.outline.field(name).refuse()
	if s.record(name); s.has(name) {
		s.fault(s.keyOf(name), problem, "remove it")
	}
}

// checkLeaf reports whether the descriptor has a limit. It notes fields that are only valid with one.
func (s *section) checkLeaf(l *guard.Leaf) bool {
	switch {
	case s.has("limits") && l.Unlimited:
		s.fault(s.keyOf("limits"), "has no effect beside unlimited", "remove one of them")
		return true
	case s.has("limits"):
		return true
	}
	only := []string{"algorithm", "burst"}
	if !l.Unlimited {
		only = append(only, "name", "replaces", "mode", "quota_mode", "metadata")
	}
	for _, name := range only {
		if s.has(name) && !s.blamed(s.pathOf(name)) {
			s.fault(s.keyOf(name), "has no effect without limits", "remove it, or write limits: 20/1m")
		}
	}
	return l.Unlimited
}

// checkReplaces notes names that are empty, and the name of the limit itself.
func (s *section) checkReplaces(name string, replaces []string, pathOf func(i int) string) {
	for i, other := range replaces {
		switch {
		case other == "":
			s.fault(s.find(pathOf(i)), "is an empty name", "write the name of another limit")
		case other == name:
			s.fault(s.find(pathOf(i)), "is the name of this limit", "write the name of another limit")
		}
	}
}

// leafLimits reads limits and algorithm of a descriptor.
func (s *section) leafLimits(f guard.Fallback) []headgate.Policy {
	algorithm, burst := s.leafAlgorithm()
	s.declare("limits", field.Taken, "Units per time, like 20/1m, or a list of limits; a request must pass every limit.")
	s.outline.field("limits").written("", limitPattern)
	s.outline.field("limits").entries().written("", limitPattern)
	s.outline.field("limits").list(1, maxLimits)
	var l limits
	for _, v := range s.oneOrMore("limits", "[20/1m, 500/1h]", maxLimits) {
		var one headgate.Limit
		if s.limit(v, &one) {
			one.Burst = burst
			l.policies, l.values = append(l.policies, guard.LeafPolicy(algorithm, one)), append(l.values, v)
		}
	}
	return s.checkedLeaf(l, f)
}

// leafAlgorithm reads the algorithm of a descriptor, and its burst.
func (s *section) leafAlgorithm() (headgate.Algorithm, int64) {
	algorithm := headgate.FixedWindow
	oneOf(s, s.declare("algorithm", field.Taken, "Algorithm that counts the units."), &algorithm, leafAlgorithms())
	return algorithm, s.leafBurst(algorithm)
}

// oneOrMore reads a single value, or a list of them.
func (s *section) oneOrMore(name, example string, most int) []value {
	f, found := s.fields[name]
	_, overridden := s.fromEnvironment(name)
	single := found && (f.value.Kind == yaml.ScalarNode || f.value.Kind == yaml.AliasNode && f.value.Alias.Kind == yaml.ScalarNode)
	if single && !overridden {
		v, ok := s.scalar(name, "one value")
		if !ok {
			return nil
		}
		return []value{v}
	}
	entries, _ := s.scalars(name, example, most)
	return entries
}

// checkedLeaf checks the limits of a descriptor. It returns no limits if one of their fields is at fault.
func (s *section) checkedLeaf(l limits, f guard.Fallback) []headgate.Policy {
	if s.blamedAny("algorithm", "burst") {
		return nil
	}
	s.compile(l)
	s.checkWindows(l)
	counted := guard.Rule{Policies: l.policies, Fallback: f}
	s.checkLocal(&counted, []limits{l})
	s.checkFits(&counted, []limits{l})
	return l.policies
}

func leafAlgorithms() []choice[headgate.Algorithm] {
	const why = "leaky_bucket makes requests wait, but a decision server answers at once"
	place := func(a headgate.Algorithm) int { return limit.TraitsOf(a).DescriptorPlace }
	algorithms := slices.DeleteFunc(headgate.Algorithms(), func(a headgate.Algorithm) bool { return place(a) == 0 })
	slices.SortFunc(algorithms, func(a, b headgate.Algorithm) int { return place(a) - place(b) })
	return append(algorithmChoices(algorithms), choice[headgate.Algorithm]{
		word: headgate.LeakyBucket.String(), why: why, instead: "use token_bucket with burst: 1",
	})
}

// leafBurst reads the burst, which only token_bucket has.
func (s *section) leafBurst(a headgate.Algorithm) (burst int64) {
	s.number(s.declare("burst", field.Taken, "token_bucket: units that may pass at once. Default: the limit's count."),
		&burst, 1, headgate.MaxUnits)
	s.outline.restrict("burst", "algorithm", headgate.TokenBucket.String())
	if s.has("burst") && a != headgate.TokenBucket && !s.blamedAny("burst", "algorithm") {
		s.fault(s.keyOf("burst"), "is not used by "+a.String(), "remove it, or use token_bucket")
	}
	return burst
}
