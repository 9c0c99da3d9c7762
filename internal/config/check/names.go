package check

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/rule"
)

// Matching checks names, matches and keys with package rule. It skips rules whose entry in read is
// false, and fields that are blamed already.
func Matching(rules []guard.Rule, read []bool, blamed Blamed) []Finding {
	matching := make([]rule.Rule, len(rules))
	for i := range rules {
		matching[i] = rules[i].Rule
	}
	found := &findings{known: blamed}
	_, err := rule.NewIndex(matching)
	for _, err := range Unjoin(err) {
		bad, ok := errortype.As[*rule.RuleError](err)
		if !ok {
			found.add("rules", err.Error(), "")
			continue
		}
		path := fmt.Sprintf("rules[%d].%s", bad.Rule, bad.Field)
		if read[bad.Rule] && !found.blamed(outermost(path)) {
			found.add(path, bad.Problem, bad.Fix)
		}
	}
	return found.all
}

// Exempt checks the matches of requests that nothing decides.
func Exempt(matches []rule.Match, blamed Blamed) []Finding {
	found := &findings{known: blamed}
	for i := range matches {
		path, every := fmt.Sprintf("exempt[%d]", i), newComparison().within(&rule.Match{}, &matches[i])
		switch {
		case found.blamed(path) || !every:
		case matches[i].IsZero():
			found.add(path, "has no field, so that nothing would be decided", "write at least one, like {path: /healthz}")
		default:
			found.add(path+".path", fmt.Sprintf("%q is every path, so that nothing would be decided", matches[i].Path),
				"write a narrower one, like /healthz, or set mode: off in the rules")
		}
	}
	_, err := rule.NewMatchSet(matches)
	for _, err := range Unjoin(err) {
		if bad, ok := errortype.As[*rule.RuleError](err); ok {
			path := fmt.Sprintf("exempt[%d].%s", bad.Rule, strings.TrimPrefix(bad.Field, "match."))
			if !found.blamed(outermost(path)) {
				found.add(path, bad.Problem, bad.Fix)
			}
		}
	}
	return found.all
}

// outermost returns the path of the field of a rule that contains a value: rules[1].key for
// rules[1].key[0].
func outermost(path string) string {
	end := strings.IndexByte(path, ']') + 2
	if i := strings.IndexByte(path[min(end, len(path)):], '['); i >= 0 {
		return path[:end+i]
	}
	return path
}

// PolicyNames finds names that callers could not tell apart. Callers see the limits of a rule
// with several limits under the rule's name and the period: product-2s. They see a ban as
// product-ban, a hard limit as product-hard, and requests in flight as product-in-flight.
func PolicyNames(rules []guard.Rule) []Finding {
	var all []Finding
	numbers := make(map[string]int, len(rules))
	for i := range rules {
		numbers[rules[i].Name] = i
	}
	for i := range rules {
		one := &rules[i]
		taken := func(end, what string) {
			name := one.Name + "-" + end
			if other, found := numbers[name]; found {
				all = append(all, Finding{
					Path:    fmt.Sprintf("rules[%d].name", other),
					Problem: fmt.Sprintf("callers see the %s of rules[%d] under the name %q", what, i, name),
					Fix:     "use another name",
				})
			}
		}
		for _, set := range Sets(one) {
			if len(set) < 2 {
				continue
			}
			for _, p := range set {
				taken(p.Limit.Period(), "limit "+p.Limit.String())
			}
		}
		if one.Ban.For > 0 {
			taken("ban", "ban")
		}
		if one.Exceed.Hard.Limit.HasPeriod() {
			taken("hard", "hard limit")
		}
		if one.InFlight > 0 {
			taken("in-flight", "in_flight")
		}
	}
	return all
}
