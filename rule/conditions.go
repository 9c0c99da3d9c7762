package rule

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// conditions are what an index has still to check of a rule when it has found it:
// all that the way to the rule has not established. nil is no condition.
type conditions struct {
	methods []string
	hosts   []hostPattern // one of them; empty is every host
	headers []headerPattern
}

// hostPattern is a host, or with below set every host that ends in name, which
// then begins with a dot.
type hostPattern struct {
	name  string
	below bool
}

// headerPattern is a header with one value or, with any set, with any value.
type headerPattern struct {
	name, value string
	any         bool
}

// newConditions makes the conditions of a checked match, its path left out.
// What they hold is copied: the index outlives changes to the rule.
func newConditions(m *Match) *conditions {
	c := conditions{methods: slices.Clone(m.Methods)}
	for _, text := range m.Hosts {
		c.hosts = append(c.hosts, newHostPattern(text))
	}
	for name, value := range m.Headers {
		c.headers = append(c.headers, headerPattern{canonicalHeader(name), value, value == "*"})
	}
	// A map has no order; the index is the same for the same rules.
	slices.SortFunc(c.headers, func(a, b headerPattern) int { return strings.Compare(a.name, b.name) })
	return c.orNil()
}

func newHostPattern(text string) hostPattern {
	text = strings.ToLower(text)
	if suffix, below := strings.CutPrefix(text, "*"); below {
		return hostPattern{suffix, true}
	}
	if ip, ok := parseHostIP(text); ok {
		return hostPattern{name: ip.String()}
	}
	return hostPattern{name: text}
}

// parseHostIP reads an IPv6 address as a host, with brackets or without.
func parseHostIP(text string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = strings.TrimSuffix(inner, "]")
	}
	ip, err := netip.ParseAddr(text)
	return ip, err == nil && ip.Is6() && ip.Zone() == ""
}

// orNil gives nil when nothing is left to check.
func (c *conditions) orNil() *conditions {
	if len(c.methods) == 0 && len(c.hosts) == 0 && len(c.headers) == 0 {
		return nil
	}
	return c
}

// withoutHosts gives the conditions that remain when the host is known to fit.
func (c *conditions) withoutHosts() *conditions {
	rest := *c
	rest.hosts = nil
	return rest.orNil()
}

// withoutHeader gives the conditions that remain when header i is known to fit.
func (c *conditions) withoutHeader(i int) *conditions {
	rest := *c
	rest.headers = slices.Delete(slices.Clone(c.headers), i, i+1)
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
	for i := range c.headers {
		if !c.headers[i].match(req.Header) {
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

func (p *headerPattern) match(headers headgate.Values) bool {
	value, present := lookup(headers, p.name)
	return present && (p.any || value == p.value)
}
