package rule

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// conditions are the checks that remain after the index has found a rule. A nil
// pointer means that no check remains.
type conditions struct {
	methods []string
	hosts   []hostPattern // any of these hosts; empty matches every host
	fields  []fieldPattern
	domain  string // "" matches every domain
}

// hostPattern is a host. With below set, the pattern is every host that ends in name,
// and name begins with a dot.
type hostPattern struct {
	name  string
	below bool
}

// newConditions returns the conditions of a checked match, without its path. newConditions copies
// all values, because the caller may change the rule later.
func newConditions(m *Match) *conditions {
	name, _ := cutLiteral(m.Domain)
	c := conditions{methods: withHead(m.Methods), domain: strings.Clone(name)}
	for _, text := range m.Hosts {
		c.hosts = append(c.hosts, newHostPattern(text))
	}
	c.fields = slices.Concat(newFieldPatterns(fieldHeader, m.Headers), newFieldPatterns(fieldQuery, m.Query),
		newFieldPatterns(fieldDescriptor, m.Descriptors))
	// A map has no order. Sorting gives equal rules an equal index.
	slices.SortFunc(c.fields, func(a, b fieldPattern) int { return a.compare(b.field) })
	return c.orNil()
}

// withHead copies methods and adds HEAD to GET. Services process HEAD like GET
// (RFC 9110, section 9.3.2).
func withHead(methods []string) []string {
	const get, head = "GET", "HEAD"
	copied := make([]string, len(methods), len(methods)+1)
	for i, text := range methods {
		copied[i], _ = cutLiteral(text)
	}
	if slices.Contains(copied, get) && !slices.Contains(copied, head) {
		copied = append(copied, head)
	}
	return copied
}

func newHostPattern(text string) hostPattern {
	text, _ = cutLiteral(strings.ToLower(text))
	if suffix, below := strings.CutPrefix(text, "*"); below {
		return hostPattern{suffix, true}
	}
	if ip, ok := parseHostIP(text); ok {
		return hostPattern{name: ip.String()}
	}
	return hostPattern{name: text}
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
	if len(c.methods) == 0 && len(c.hosts) == 0 && len(c.fields) == 0 && c.domain == "" {
		return nil
	}
	return c
}

// withoutHosts returns the conditions without the hosts, for a host that matched.
func (c *conditions) withoutHosts() *conditions {
	rest := *c
	rest.hosts = nil
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
	if len(c.methods) > 0 && !slices.Contains(c.methods, req.Method) {
		return false
	}
	if len(c.hosts) > 0 && !matchesHost(c.hosts, req.Host) {
		return false
	}
	if c.domain != "" && c.domain != req.Domain {
		return false
	}
	for i := range c.fields {
		if !c.fields[i].match(req) {
			return false
		}
	}
	return true
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
		return len(host) > len(p.name) && strings.HasSuffix(host, p.name)
	}
	return host == p.name
}
