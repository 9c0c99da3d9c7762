package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/errortype"
)

const (
	domainsName = "domains"
	// maxDomains bounds the domains of one file, and maxSiblings the descriptors of one list.
	maxDomains  = 10_000
	maxSiblings = 65_536
)

const (
	domainExample     = "{descriptors: [" + descriptorExample + "]}"
	descriptorExample = `{key: path, value: /search*, limits: 20/1m}`
)

// domains reads the trees of limits for the domains of a decision server.
func (s *section) domains(c *Config) {
	all := s.sub(s.declare(domainsName, field.Taken, "Limits of a decision server, for each domain that its requests name."),
		"{shop: "+domainExample+"}")
	all.settable = false // Variables cannot set the fields of a domain.
	each := all.outline.each(maxDomains)
	if n := len(all.names); n > maxDomains {
		s.fault(s.keyOf(domainsName), fmt.Sprintf("has %d domains", n), fmt.Sprintf("use at most %d", maxDomains))
		return
	}
	var names []string
	for _, name := range all.names {
		if s.full {
			return
		}
		if name == "" {
			s.fault(value{path: all.self.path, node: all.fields[name].key}, "a domain has an empty name", "write its name before the colon")
			continue
		}
		v, ok := all.valueOf(name)
		if !ok {
			continue
		}
		one := s.section(v, "write it like "+domainExample)
		one.outline = each
		if one.self.node == nil {
			continue
		}
		plain, key := name, value{path: all.self.path, node: all.fields[name].key}
		all.treeName(key, &plain)
		if other := slices.Index(names, plain); other >= 0 {
			s.fault(key, quote(name)+" is the domain "+quote(all.names[other])+" again", "remove one of them")
		}
		names = append(names, plain)
		c.Domains = append(c.Domains, one.domain(plain))
	}
}

// domain reads one domain.
func (s *section) domain(name string) guard.Domain {
	d := guard.Domain{Name: name, Fallback: guard.FallbackError}
	s.declare("fallback", field.Taken, "Answer of the domain when the store fails: error tells the caller that nothing was decided.")
	oneOf(s, "fallback", &d.Fallback, choicesOf(guard.Fallbacks()))
	s.required("descriptors", "write at least one, or descriptors: [] to limit nothing")
	d.Descriptors = s.descriptors(ownForm(), d.Fallback, 0)
	s.end()
	s.checkTree(&d)
	return d
}

// treeForm is a format of descriptors.
type treeForm struct {
	// read reads the fields of a descriptor, except for descriptors.
	read func(s *section, d *guard.Descriptor, f guard.Fallback)
	// example is a correct descriptor.
	example string
}

// ownForm is the format of the section domains.
func ownForm() treeForm { return treeForm{readDescriptor, descriptorExample} }

// descriptors reads one level of a tree, and the levels below. A descriptor at fault stays in the
// list, so that the other ones keep their index.
func (s *section) descriptors(form treeForm, f guard.Fallback, depth int) []guard.Descriptor {
	s.declare("descriptors", field.Taken, "The next level of the tree: descriptors with one more entry. Of several that match an entry, "+
		"the exact value comes first, then the first wildcard, then the one without a value.")
	if depth > 0 && s.outline != nil { // The schema refers to the first level, which has the same form.
		s.outline.field("descriptors").form(nil, map[string]any{
			"$ref": "#/properties/" + domainsName + "/additionalProperties/properties/descriptors",
		})
		defer func(o *outline) { s.outline = o }(s.outline)
		s.outline = nil
	}
	entries, _ := s.list("descriptors", "["+form.example+"]", 0, maxSiblings)
	if len(entries) == 0 {
		return nil
	}
	if depth == domain.MaxDepth {
		s.fault(s.keyOf("descriptors"), fmt.Sprintf("is the level %d", depth+1), fmt.Sprintf("use at most %d levels", domain.MaxDepth))
		return nil
	}
	all := make([]guard.Descriptor, len(entries))
	for i, v := range entries {
		if v.node == nil || s.full {
			continue
		}
		one := s.section(v, "write it like "+form.example)
		if one.self.node == nil {
			continue
		}
		one.outline = s.outline.field("descriptors").entries()
		form.read(one, &all[i], f)
		all[i].Descriptors = one.descriptors(form, f, depth+1)
		one.end()
	}
	return all
}

// checkTree notes the faults of a tree that its index finds. Its path in the file is that of s.
func (s *section) checkTree(d *guard.Domain) {
	_, _, err := d.Index()
	for _, err := range check.Unjoin(err) {
		bad, found := errortype.As[*domain.NodeError](err)
		if !found || s.full {
			return
		}
		s.nodeFault(bad, bad.At[0])
	}
}

// nodeFault notes a fault of a node. first is the position of its first level in this file.
func (s *section) nodeFault(bad *domain.NodeError, first int) {
	steps := []string{fmt.Sprintf("descriptors[%d]", first)}
	for _, i := range bad.At[1:] {
		steps = append(steps, fmt.Sprintf("descriptors[%d]", i))
	}
	path := s.pathOf(strings.Join(steps, "."))
	if s.blamedAt(path) || s.blamed(path+"."+bad.Field) {
		return
	}
	v := s.find(path + "." + bad.Field)
	s.fault(v, bad.Problem, bad.Fix)
}
