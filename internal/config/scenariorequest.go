package config

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/headgate/headgate/rule"
)

// scenarioRequest reads what the requests of a group look like, as a front would pass them to the rules.
func (s *section) scenarioRequest(g *ScenarioClients) {
	g.Method, g.Path = http.MethodGet, "/"
	if at, ok := s.text("method", &g.Method); ok {
		if bad := strings.IndexFunc(g.Method, notOfToken); bad >= 0 || g.Method == "" {
			s.fault(at, quote(g.Method)+" is no method", "write one word, like method: POST")
		}
	}
	target := g.Path
	if at, ok := s.text("path", &target); ok {
		s.scenarioTarget(at, target, g)
	}
	if at, ok := s.text("host", &g.Host); ok {
		name, _, good := rule.ParseHost(g.Host)
		if !good || name == "" {
			s.fault(at, quote(g.Host)+" is no host", "write a name or an address, like host: api.example.com")
		}
		g.Host = name
	}
	g.Headers = s.scenarioHeaders()
}

func notOfToken(c rune) bool { return !strings.ContainsRune(tokenLetters, c) }

// scenarioTarget reads a path with an optional query. The path is decoded and cleaned, as the proxy does.
func (s *section) scenarioTarget(at value, target string, g *ScenarioClients) {
	sent, query, _ := strings.Cut(target, "?")
	if !strings.HasPrefix(sent, "/") {
		s.fault(at, quote(target)+" is no path", "begin it with /, like path: /v1/orders")
		return
	}
	decoded, err := url.PathUnescape(sent)
	if err != nil {
		s.fault(at, fmt.Sprintf("%s has a broken escape (%v)", quote(target), err),
			"write % and two hexadecimal digits, or %25 for a percent sign")
		return
	}
	if g.Path, err = rule.CleanPath(decoded, sent, true); err != nil {
		s.fault(at, quote(target)+" is a path that services read in different ways, and the proxy would answer 400",
			"write it without dot segments, empty segments, \\ and control characters")
		g.Path = "/"
	}
	g.Query = query
}

// scenarioHeaders reads the header fields of a group.
func (s *section) scenarioHeaders() (all [][2]string) {
	const example = `headers: {X-Client-Id: "{key}"}`
	v, ok := s.get("headers")
	if !ok {
		return nil
	}
	fields, known := s.section(v, example), map[string]string{}
	for i, name := range fields.names {
		at := fields.keyOf(name)
		var text string
		canonical, good := s.headerName(at, 0, name, example)
		written, ok := fields.text(name, &text)
		switch {
		case !good || !ok:
		case i >= mostScenarioHeaders:
			s.fault(at, "the group has more than 20 headers", "remove some")
			return all
		case canonical == "Host":
			s.fault(at, "no rule reads the host as a header", "write it as a field of the group, like host: a.example.com")
		case canonical == "Cookie":
			s.fault(at, "cookies are not simulated", "remove this header")
		case known[canonical] != "":
			s.fault(at, "is the same header as "+quote(known[canonical]), "remove one of them")
		case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			s.fault(written, quote(text)+" has a control character, which no header can have", "remove it; a value is one line")
		default:
			known[canonical] = name
			all = append(all, [2]string{canonical, text})
		}
	}
	fields.end()
	return all
}
