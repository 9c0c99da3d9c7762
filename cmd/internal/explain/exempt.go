package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// writeUndecided says which entry of exempt leaves out the request from everything.
func (e *explanation) writeUndecided(b *strings.Builder) {
	at, text, _ := e.ExemptEntry()
	fmt.Fprintf(b, "\nexempt[%d] matches: nothing decides the request, and nothing counts it\n", at)
	linef(b, "match", "%s", text)
}

// matchText writes the fields of a match like the configuration does.
func matchText(m *rule.Match) string {
	var fields []string
	add := func(name, text string) { fields = append(fields, name+": "+text) }
	if m.Path != "" {
		add("path", m.Path)
	}
	if len(m.Methods) > 0 {
		add("methods", some(m.Methods))
	}
	if len(m.Hosts) > 0 {
		add("hosts", some(m.Hosts))
	}
	for name, values := range map[string]map[string]string{
		"headers": m.Headers, "query": m.Query, "json": m.JSON, "descriptors": m.Descriptors,
	} {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(values)) {
			pairs = append(pairs, key+"="+values[key])
		}
		if len(pairs) > 0 {
			add(name, some(pairs))
		}
	}
	if m.Model != "" {
		add("model", m.Model)
	}
	if len(m.Addresses) > 0 {
		add("addresses", someNetworks(m.Addresses))
	}
	if m.Domain != "" {
		add("domain", m.Domain)
	}
	if m.Not != nil {
		add("not", "{"+matchText(m.Not)+"}")
	}
	slices.Sort(fields)
	return strings.Join(fields, "; ")
}

// someNetworks names the first few networks.
func someNetworks(networks []netip.Prefix) string {
	words := make([]string, len(networks))
	for i, network := range networks {
		words[i] = strings.TrimSuffix(network.String(), fmt.Sprintf("/%d", network.Addr().BitLen()))
	}
	return some(words)
}

// clientText says which address is compared with networks.
func clientText(req *headgate.Request) string {
	if !req.ClientIP.IsValid() {
		return ", and the client's address is not known"
	}
	return ", and the client's address is " + req.ClientIP.String()
}
