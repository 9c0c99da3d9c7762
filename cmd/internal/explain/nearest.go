package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// maxNearest bounds the listed rules when no rule matches.
const maxNearest = 5

// miss has the reasons why a rule does not match a request.
type miss struct {
	rule    *guard.Rule
	path    bool // The path is one of the reasons.
	common  int  // The length of the common prefix of pattern and path.
	reasons []string
}

// writeNearest lists the rules that nearly match, for a request that no rule matches.
func (e *explanation) writeNearest(b *strings.Builder) {
	if len(e.Config.Rules) == 0 {
		b.WriteString("\nno rule matches: the configuration has no rules\n")
		return
	}
	misses, more := e.Nearest(maxNearest)
	counted := "and nothing is counted; "
	if len(e.Answer.Results) > 0 {
		counted = "only fair share counts; "
	}
	b.WriteString("\nno rule matches, " + counted + "the nearest rules are\n")
	for _, m := range misses {
		fmt.Fprintf(b, "  %s: %s\n", m.Rule, strings.Join(m.Reasons, "; "))
	}
	if more > 0 {
		fmt.Fprintf(b, "  and %d more\n", more)
	}
}

// missOf tests each condition of a match by itself.
func missOf(r *guard.Rule, req *headgate.Request, folds rule.Folds) miss {
	m, match := miss{rule: r}, &r.Match
	if r.Mode == guard.Off {
		m.reasons = append(m.reasons, "it is in mode off")
	}
	if pattern := folds.Pattern(match.Path); !fits(r, rule.Match{Path: pattern}, req) {
		m.path, m.common = true, commonLength(pattern, req.Path)
		m.reasons = append(m.reasons, "its path is "+match.Path)
	}
	if !fits(r, rule.Match{Methods: match.Methods}, req) {
		m.reasons = append(m.reasons, "its methods are "+some(match.Methods))
	}
	if !fits(r, rule.Match{Hosts: match.Hosts}, req) {
		m.reasons = append(m.reasons, "its hosts are "+some(match.Hosts)+hostHint(match.Hosts, req))
	}
	for _, name := range slices.Sorted(maps.Keys(match.Headers)) {
		if want := match.Headers[name]; !fits(r, rule.Match{Headers: map[string]string{name: want}}, req) {
			m.reasons = append(m.reasons, headerReason(name, want))
		}
	}
	if !fits(r, rule.Match{Addresses: match.Addresses}, req) {
		m.reasons = append(m.reasons, "its addresses are "+someNetworks(match.Addresses)+clientText(req))
	}
	if match.Not != nil && !fits(r, rule.Match{Not: folds.Match(rule.Match{Not: match.Not}).Not}, req) {
		m.reasons = append(m.reasons, "its not leaves out the request: "+matchText(match.Not))
	}
	for i := range r.Exempt {
		if fits(r, folds.Match(r.Exempt[i]), req) {
			m.reasons = append(m.reasons, fmt.Sprintf("its exempt[%d] leaves out the request: %s", i, matchText(&r.Exempt[i])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(match.Query)) {
		if want := match.Query[name]; !fits(r, rule.Match{Query: map[string]string{name: want}}, req) {
			m.reasons = append(m.reasons, queryReason(name, want))
		}
	}
	m.reasons = append(m.reasons, bodyReasons(r, match, req)...)
	if len(match.Descriptors) > 0 || match.Domain != "" {
		m.reasons = append(m.reasons, "it matches a domain or descriptors, which only decision requests have")
	}
	if len(m.reasons) == 0 && r.Group != "" {
		m.reasons = append(m.reasons, "a rule before it in group "+r.Group+" decides")
	}
	if len(m.reasons) == 0 {
		m.reasons = append(m.reasons, "it matches every path except health checks and reflection of gRPC")
	}
	return m
}

func commonLength(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// hostHint says how to add a host to a request without a host.
func hostHint(hosts []string, req *headgate.Request) string {
	if req.Host != "" {
		return ""
	}
	return fmt.Sprintf(" (say which with -H 'Host: %s')", hostVariable(strings.Replace(hosts[0], "*", "www", 1)))
}

// hostVariable puts a name in place of the variable of a host.
func hostVariable(host string) string {
	before, rest, open := strings.Cut(host, "{")
	if _, after, closed := strings.Cut(rest, "}"); open && closed {
		return before + "www" + after
	}
	return host
}

func headerReason(name, want string) string {
	if want == "*" {
		return "it needs a header " + name
	}
	return fmt.Sprintf("it needs the header %s: %s", name, want)
}

// bodyReasons tests the conditions on the body of the request.
func bodyReasons(r *guard.Rule, match *rule.Match, req *headgate.Request) (reasons []string) {
	hint := ""
	if req.Body == nil {
		hint = ", and the request has no body here"
	}
	if match.Model != "" && !fits(r, rule.Match{Model: match.Model}, req) {
		reasons = append(reasons, "its model is "+match.Model+hint)
	}
	for _, path := range slices.Sorted(maps.Keys(match.JSON)) {
		if want := match.JSON[path]; !fits(r, rule.Match{JSON: map[string]string{path: want}}, req) {
			reasons = append(reasons, bodyReason(path, want)+hint)
		}
	}
	return reasons
}

func bodyReason(path, want string) string {
	if want == "*" {
		return "it needs " + path + " in the JSON body"
	}
	return fmt.Sprintf("it needs %s: %s in the JSON body", path, want)
}

func queryReason(name, want string) string {
	if want == "*" {
		return "it needs a value " + name + " in the query"
	}
	return fmt.Sprintf("it needs %s=%s in the query", name, want)
}

// fits reports whether a request meets one condition of a match.
func fits(r *guard.Rule, part rule.Match, req *headgate.Request) bool {
	all, _ := rule.ParsePart("all") // The key of the rule may need another part of the match.
	index, err := rule.NewIndex([]rule.Rule{{Name: r.Name, Key: []rule.Part{all}, Match: part}})
	return err == nil && len(index.Match(req, nil)) > 0
}

// some lists the first few of many words.
func some(words []string) string {
	const few = 4
	if len(words) <= few {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:few], ", "), len(words)-few)
}
