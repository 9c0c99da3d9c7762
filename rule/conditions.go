package rule

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/sorting"
)

// conditions are the checks that remain after the index has found a rule. A nil
// pointer means that no check remains.
type conditions struct {
	methods []string
	hosts   []hostPattern // any of these hosts; empty matches every host
	fields  []fieldPattern
	other   *patternConditions
}

// patternConditions are the checks that most rules do not have: of patterns, of addresses, and of what a rule leaves out. They are
// apart, so that the others cost the same with and without them.
type patternConditions struct {
	networks *networkSet // nil matches every address
	except   *Index      // nil leaves out no request
	methods  []pattern   // beside the methods of conditions
	domain   *pattern    // nil matches every domain
	host     *hostRest   // of a host that the index has found by its end
}

// hostRest is the pattern of the labels before the end of a host. Hosts of one form share it, so that it stays in the processor's caches.
type hostRest struct {
	pattern pattern
	end     int // the length of the end, with its first dot
	// alone are the conditions of a rule without others.
	alone *conditions
}

func (r *hostRest) match(host string) bool {
	return len(host) > r.end && r.pattern.match(host[:len(host)-r.end])
}

// hostRests has the rests of one index, by their texts.
type hostRests map[string]*hostRest

// share puts one hostRest in place of those with the same meaning.
func (h hostRests) share(c *conditions) {
	if c == nil {
		return
	}
	for i := range c.hosts {
		p := &c.hosts[i]
		if p.rest == nil {
			continue
		}
		key := fmt.Sprint(p.rest.end, p.rest.pattern.form, " ", p.rest.pattern.key())
		if h[key] == nil {
			h[key] = p.rest
		}
		p.rest = h[key]
	}
}

// hostPattern is a host. With below set, the pattern is every host that ends in name,
// and name begins with a dot. With a rest, name is the end of the hosts that match, or "" if it is not known.
type hostPattern struct {
	name  string
	below bool
	rest  *hostRest
}

// newConditions returns the conditions of a checked rule, without its path. newConditions copies
// all values, because the caller may change the rule later.
func newConditions(r *Rule, sets networkSets) *conditions {
	var c conditions
	m, other := &r.Match, patternConditions{except: newExcept(r, sets)}
	if len(m.Addresses) > 0 {
		other.networks = sets.set(m.Addresses)
	}
	c.methods, other.methods = newMethods(m.Methods)
	for _, text := range m.Hosts {
		c.hosts = append(c.hosts, newHostPattern(text))
	}
	c.fields = slices.Concat(newFieldPatterns(fieldHeader, m.Headers), newFieldPatterns(fieldQuery, m.Query),
		newFieldPatterns(fieldDescriptor, m.Descriptors), newBodyPatterns(m))
	// A map has no order. Sorting gives equal rules an equal index.
	sorting.Func(c.fields, func(a, b fieldPattern) int { return a.compare(b.field) })
	if m.Domain != "" {
		p, _ := compileValue(m.Domain)
		other.domain = &p
	}
	c.other = other.orNil()
	return c.orNil()
}

// orNil returns nil when no check is left.
func (c *patternConditions) orNil() *patternConditions {
	if len(c.methods) == 0 && c.domain == nil && c.host == nil && c.networks == nil && c.except == nil {
		return nil
	}
	return c
}

// newMethods compiles methods, and adds HEAD to GET. Services process HEAD like GET
// (RFC 9110, section 9.3.2).
func newMethods(texts []string) (literals []string, patterns []pattern) {
	const get, head = "GET", "HEAD"
	literals = make([]string, 0, len(texts)+1)
	readsGet := false
	for _, text := range texts {
		p, _ := compileMethod(text)
		readsGet = readsGet || p.match(get)
		if literal, one := p.literal(); one {
			literals = append(literals, literal)
		} else {
			patterns = append(patterns, p)
		}
	}
	if readsGet && !slices.Contains(literals, head) {
		literals = append(literals, head)
	}
	return literals, patterns
}

func newHostPattern(text string) hostPattern {
	p, _ := compileHost(text)
	switch p.form {
	case formLiteral:
		return hostPattern{name: p.text}
	case formBelow:
		return hostPattern{name: p.text, below: true}
	default:
		var end string
		for len(p.segments) > 0 && len(p.segments[0].variables) == 0 {
			end, p.segments = "."+p.segments[0].first+end, p.segments[1:]
		}
		rest := &hostRest{pattern: p, end: len(end)}
		rest.alone = &conditions{other: &patternConditions{host: rest}}
		return hostPattern{name: end, below: true, rest: rest}
	}
}

// parseHostIP parses an IPv6 address as a host, with or without brackets.
func parseHostIP(text string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = strings.TrimSuffix(inner, "]")
	}
	return parseIPv6Host(text)
}

// orNil returns nil when no check remains.
func (c *conditions) orNil() *conditions {
	if len(c.methods) == 0 && len(c.hosts) == 0 && len(c.fields) == 0 && c.other == nil {
		return nil
	}
	return c
}

// withoutHosts returns the conditions without the hosts, for a host that matched. The pattern of a host found by its end remains.
func (c *conditions) withoutHosts(found *hostPattern) *conditions {
	rest := *c
	rest.hosts = nil
	if found.rest == nil {
		return rest.orNil()
	}
	if rest.orNil() == nil {
		return found.rest.alone
	}
	var other patternConditions
	if c.other != nil {
		other = *c.other
	}
	other.host = found.rest
	rest.other = &other
	return &rest
}

// networks returns the networks that the index can look up; nil without them.
func (c *conditions) networks() []netip.Prefix {
	if c.other == nil || c.other.networks == nil || len(c.other.networks.all) > mostIndexedNetworks {
		return nil
	}
	return c.other.networks.all
}

// withoutNetworks returns the conditions without the networks, for one that has the address.
func (c *conditions) withoutNetworks() *conditions {
	rest, other := *c, *c.other
	other.networks = nil
	rest.other = other.orNil()
	return rest.orNil()
}

// withoutField returns the conditions without field i, for a field that matched.
func (c *conditions) withoutField(i int) *conditions {
	rest := *c
	rest.fields = slices.Delete(slices.Clone(c.fields), i, i+1)
	return rest.orNil()
}

func (c *conditions) match(req *headgate.Request) bool {
	if c == nil {
		return true
	}
	if len(c.methods) > 0 && !slices.Contains(c.methods, req.Method) && (c.other == nil || !matchesAny(c.other.methods, req.Method)) {
		return false
	}
	if len(c.hosts) > 0 && !matchesHost(c.hosts, req.Host) {
		return false
	}
	for i := range c.fields {
		if !c.fields[i].match(req) {
			return false
		}
	}
	return c.other == nil || c.other.match(req, len(c.methods))
}

// match tests the patterns. literals is the number of methods that the rule names without a pattern.
func (c *patternConditions) match(req *headgate.Request, literals int) bool {
	return (literals > 0 || len(c.methods) == 0 || matchesAny(c.methods, req.Method)) &&
		(c.domain == nil || c.domain.match(req.Domain)) && (c.host == nil || c.host.match(req.Host)) &&
		(c.networks == nil || c.networks.contains(req.ClientIP)) && (c.except == nil || !c.except.any(req))
}

func matchesAny(patterns []pattern, text string) bool {
	for i := range patterns {
		if patterns[i].match(text) {
			return true
		}
	}
	return false
}

func matchesHost(patterns []hostPattern, host string) bool {
	for i := range patterns {
		if patterns[i].match(host) {
			return true
		}
	}
	return false
}

func (p *hostPattern) match(host string) bool {
	if p.below {
		return len(host) > len(p.name) && strings.HasSuffix(host, p.name) && (p.rest == nil || p.rest.match(host))
	}
	return host == p.name
}
