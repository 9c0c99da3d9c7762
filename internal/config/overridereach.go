package config

import (
	"net/url"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// checkReach rejects overrides that no request can reach. names are the values in the order of the file, and have no other fault.
func (s *section) checkReach(r *guard.Rule, names []string) {
	template := templateOf(r)
	for i, name := range names {
		v := value{path: s.pathOf(name), node: s.fields[name].key}
		switch first := hiding(r, names[:i], name); {
		case first != "":
			s.fault(v, quote(name)+" never applies: "+quote(first)+" stands before it, and the first pattern that matches applies",
				"write it before "+quote(first))
		case standsForMany(r, name):
		case template != nil && !template.has(name):
			s.fault(v, quote(name)+" never applies: no request that matches has this value for "+r.Key[0].String(),
				"write a value that the template of match can have, or remove it")
		case r.Key[0].Word() == "query":
			s.checkDecoded(v, name)
		}
	}
}

// overrideTemplate finds whether a template of a match has a value for the name of a key part.
type overrideTemplate struct {
	rule  rule.Rule
	index *rule.Index
}

// templateOf returns the template for the first key part of a rule; nil if the part has none, or if the match has a fault.
func templateOf(r *guard.Rule) *overrideTemplate {
	if !r.Key[0].OfMatch() {
		return nil
	}
	alone := rule.Rule{Name: r.Name, Match: rule.Match{Path: r.Match.Path}, Key: r.Key[:1]}
	if r.Key[0].Word() == "host" {
		alone.Match = rule.Match{Hosts: r.Match.Hosts}
	}
	alone.Key = alone.BoundKey()
	index, err := rule.NewIndex([]rule.Rule{alone})
	if err != nil {
		return nil // Another field has the fault.
	}
	return &overrideTemplate{rule: alone, index: index}
}

// has reports whether a request that matches can have the value.
func (t *overrideTemplate) has(name string) bool {
	text := strings.TrimPrefix(name, "=")
	if strings.HasPrefix(text, "(") || strings.HasPrefix(text, "sha256:") || strings.HasPrefix(text, `"`) || strings.Contains(text, "=") {
		return true // NameKey reads these in another way.
	}
	named, err := t.rule.NameKey([]string{text})
	return err == nil && (named.Request == nil || len(t.index.Match(named.Request, nil)) == 1)
}

// checkDecoded rejects the encoded form of a value of the query: rules compare decoded values.
func (s *section) checkDecoded(v value, name string) {
	if strings.HasPrefix(name, "=") || !strings.Contains(name, "%") {
		return
	}
	if decoded, err := url.QueryUnescape(name); err == nil && decoded != "" && decoded != name {
		s.fault(v, quote(name)+" is encoded, and values of the query are compared decoded",
			"write "+quote(decoded)+", or "+quote("="+name)+" for exactly this text")
	}
}

// hiding returns the first pattern before a pattern that matches each text of the pattern; "" if there is none. It knows patterns with one
// star at an end: gold-*, /api/* and *.example.com.
func hiding(r *guard.Rule, before []string, name string) string {
	if !standsForMany(r, name) {
		return "" // An exact value applies before patterns, and a long network before a short one.
	}
	switch r.Key[0].Word() {
	case "ip", "xff_ip", "user_ip":
		return ""
	}
	for i, first := range before {
		if r.Overrides[i].Until == 0 && covers(r.Key[0].String(), first, name) {
			return first
		}
	}
	return ""
}

// covers reports whether a pattern with one star at an end matches each text of another pattern. key is the key part.
func covers(key, first, name string) bool {
	if first == name || strings.Count(first, "*") != 1 || strings.ContainsAny(first, "{}") || strings.HasPrefix(first, "re:") ||
		strings.HasPrefix(first, "=") || strings.HasPrefix(name, "re:") {
		return false
	}
	switch key {
	case "method":
		return false
	case "path":
		prefix, found := strings.CutSuffix(first, "/*")
		return found && strings.HasPrefix(name, prefix+"/")
	case "host":
		end, found := strings.CutPrefix(first, "*")
		return found && strings.HasPrefix(end, ".") && strings.HasSuffix(strings.ToLower(name), strings.ToLower(end))
	default:
		prefix, found := strings.CutSuffix(first, "*")
		return found && strings.HasPrefix(name, prefix)
	}
}
