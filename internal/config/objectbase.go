package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/source"
)

// objectBase is what customers are checked against: the file with the rules and plans of the source. It does not change.
type objectBase struct {
	config *Config
	reader *reader
	facts  *quotaReading
	plans  map[string]*guard.Plan
	// named has the names of the file's customers, as rules find them.
	named map[string]bool
	// limits is the number of different limits of the rules.
	limits int
}

// readBase reads the file again with the rules and plans of the source, so that the checker of the file checks both.
func (o *Objects) readBase(complete bool) (*objectBase, ObjectFaults) {
	in := &objectTree{objects: o, documents: map[source.Key]*document{}}
	root, faults := in.tree()
	if len(faults) > 0 {
		return nil, faults
	}
	r := &reader{source: o.file.written.source, environment: o.file.written.environment, root: root, complete: complete}
	r.networks = o.file.written.networks.known()
	c := defaults()
	r.config(c)
	if err := r.result(); err != nil {
		return nil, in.located(r.faults)
	}
	own := *o.file
	own.Rules, own.own.rules, own.prefetch, own.LocalShare = c.Rules, c.own.rules, c.prefetch, c.LocalShare
	own.Plans, own.DefaultPlan, own.Customers = c.Plans, c.DefaultPlan, c.Customers
	b := &objectBase{config: &own, reader: r, facts: r.quotaFacts, plans: map[string]*guard.Plan{}, named: map[string]bool{}}
	for i := range own.Plans {
		b.plans[own.Plans[i].Name] = &own.Plans[i]
	}
	for i := range own.Customers {
		b.named[own.Customers[i].Name] = true
	}
	limits := map[headgate.Policy]struct{}{}
	for i := range own.Rules {
		for _, set := range check.Sets(&own.Rules[i]) {
			for _, p := range check.Counted(&own.Rules[i], set) {
				limits[p] = struct{}{}
			}
		}
	}
	b.limits = len(limits)
	return b, nil
}

func pathOfRule(i int) string { return fmt.Sprintf("rules[%d]", i) }

// sameQuestions reports whether customers that fit one base fit the other, as far as the rules are concerned.
func (b *objectBase) sameQuestions(other *objectBase) bool {
	return b.facts.faulty == other.facts.faulty && slices.Equal(b.facts.parts, other.facts.parts) &&
		maps.Equal(b.facts.local, other.facts.local) &&
		maps.EqualFunc(b.facts.counted, other.facts.counted, func(int, int) bool { return true }) &&
		b.config.DefaultPlan == other.config.DefaultPlan
}

// changedPlans returns the names of the plans that differ.
func (b *objectBase) changedPlans(former *objectBase) map[string]bool {
	changed := map[string]bool{}
	for name, p := range b.plans {
		if was := former.plans[name]; was == nil || !reflect.DeepEqual(p, was) {
			changed[name] = true
		}
	}
	for name := range former.plans {
		if b.plans[name] == nil {
			changed[name] = true
		}
	}
	return changed
}

// objectTree is the tree of the file with the rules and plans of the source.
type objectTree struct {
	objects   *Objects
	rules     []source.Key // in the order of the tree
	fileRules int
	documents map[source.Key]*document
}

func sortedNames(all map[string]source.Object) []string {
	return slices.Sorted(maps.Keys(all))
}

// tree adds the rules and plans of the source to the tree of the file.
func (t *objectTree) tree() (*yaml.Node, ObjectFaults) {
	root, bad := t.objects.file.written.source.tree()
	if bad != nil {
		return nil, ObjectFaults{{Fault: *bad}}
	}
	var faults ObjectFaults
	rules := &yaml.Node{Kind: yaml.SequenceNode}
	if known := fieldOf(root, source.Rule.Section()); known != nil {
		*rules = *known
	}
	rules.Content = slices.Clone(rules.Content)
	t.fileRules = len(rules.Content)
	for _, name := range sortedNames(t.objects.rules) {
		node, bad := t.node(t.objects.rules[name])
		if bad == nil {
			bad = nameRule(t.documents[source.Key{Kind: source.Rule, Name: name}], node, name)
		}
		if bad != nil {
			faults = append(faults, ObjectFault{Key: source.Key{Kind: source.Rule, Name: name}, Fault: *bad})
			continue
		}
		rules.Content = append(rules.Content, node)
		t.rules = append(t.rules, source.Key{Kind: source.Rule, Name: name})
	}
	plans := &yaml.Node{Kind: yaml.MappingNode}
	if known := fieldOf(root, source.Plan.Section()); known != nil {
		*plans = *known
	}
	plans.Content = slices.Clone(plans.Content)
	for _, name := range sortedNames(t.objects.plans) {
		node, bad := t.node(t.objects.plans[name])
		if bad != nil {
			faults = append(faults, ObjectFault{Key: source.Key{Kind: source.Plan, Name: name}, Fault: *bad})
			continue
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: name, Style: yaml.DoubleQuotedStyle, Line: node.Line, Column: node.Column}
		plans.Content = append(plans.Content, key, node)
	}
	if len(t.objects.rules) > 0 {
		root = withField(root, source.Rule.Section(), rules)
	}
	if len(t.objects.plans) > 0 {
		root = withField(root, source.Plan.Section(), plans)
	}
	return root, faults
}

// node parses one object, which must be a mapping.
func (t *objectTree) node(object source.Object) (*yaml.Node, *Fault) {
	src, node, bad := objectNode(object)
	t.documents[object.Key] = src
	return node, bad
}

// objectNode parses one object, which must be a mapping.
func objectNode(object source.Object) (*document, *yaml.Node, *Fault) {
	path := object.Kind.Section() + "." + object.Name
	text := joinedSurrogates(object.Text)
	src, bad := newSource(object.Key.String(), []byte(text))
	if bad != nil {
		bad.Path = path
		return nil, nil, ofObject(bad)
	}
	root := jsonNode(text)
	if root == nil {
		root, bad = src.tree()
	}
	if bad == nil && root.Kind != yaml.MappingNode {
		f := src.fault(place{root.Line, root.Column}, "", "must be fields, not "+kindOf(root), "write it like "+objectExample(object.Kind))
		bad = &f
	}
	if bad != nil {
		if bad.Path = path; bad.Problem == problemEmpty {
			bad.Fix = "write it like " + objectExample(object.Kind)
		}
		return src, nil, ofObject(bad)
	}
	return src, root, nil
}

// ofObject words a fault of a text as a whole for an object, because the text is no file.
func ofObject(f *Fault) *Fault {
	if rest, found := strings.CutPrefix(f.Problem, "the file "); found {
		f.Problem = "the object " + rest
	}
	f.Fix = strings.Replace(f.Fix, "save the file", "save the object", 1)
	if f.Fix == fixDocument {
		f.Fix = "write one document to an object"
	}
	return f
}

func objectExample(kind source.Kind) string {
	switch kind {
	case source.Rule:
		return `{key: [ip], limits: ["500/2s"]}`
	case source.Plan:
		return planExample
	default:
		return customerExample
	}
}

// nameRule gives a rule the name of its object.
func nameRule(src *document, n *yaml.Node, name string) *Fault {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "name" {
			continue
		}
		if written := aliased(n.Content[i+1]); written.Value != name {
			f := src.fault(place{written.Line, written.Column}, source.Rule.Section()+"."+name+".name",
				"is "+quote(written.Value)+", and the object is called "+quote(name), "remove it: the object's name is that of the rule")
			return &f
		}
		return nil
	}
	at := yaml.Node{Kind: yaml.ScalarNode, Line: n.Line, Column: n.Column}
	key, value := at, at
	key.Value, value.Value, value.Style = "name", name, yaml.DoubleQuotedStyle
	n.Content = append([]*yaml.Node{&key, &value}, n.Content...)
	return nil
}

// located gives faults of the whole tree the objects that they are in.
func (t *objectTree) located(faults Faults) ObjectFaults {
	all := make(ObjectFaults, 0, len(faults))
	for _, f := range faults {
		one := ObjectFault{Fault: f}
		if key, rest, found := t.objectAt(f.Path); found {
			one.Key = key
			if src := t.documents[key]; src != nil {
				one.Fault = src.fault(place{f.Line, f.Column}, key.Kind.Section()+"."+key.Name+rest, f.Problem, f.Fix)
			}
		}
		all = append(all, one)
	}
	return all
}

// objectAt returns the object of the source at a path of the tree, and the path within it.
func (t *objectTree) objectAt(path string) (key source.Key, rest string, found bool) {
	for i, rule := range t.rules {
		if at := pathOfRule(t.fileRules + i); check.Within(path, at) {
			return rule, strings.TrimPrefix(path, at), true
		}
	}
	longest := -1
	for name := range t.objects.plans {
		if at := plansName + "." + name; check.Within(path, at) && len(name) > longest {
			longest, key = len(name), source.Key{Kind: source.Plan, Name: name}
			rest, found = strings.TrimPrefix(path, at), true
		}
	}
	return key, rest, found
}
