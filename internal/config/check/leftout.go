package check

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// LeftOut finds rules that never decide anything, because their not or their exempt leaves out every request of their match. LeftOut
// compares only rules with a true entry in read.
func LeftOut(rules []guard.Rule, read []bool, blamed Blamed) []Finding {
	found, c := &findings{known: blamed}, newComparison()
	for i := range rules {
		r, path := &rules[i], fmt.Sprintf("rules[%d]", i)
		if r.Mode == guard.Off || !read[i] || r.Match.Not == nil && len(r.Exempt) == 0 || found.blamed(path) {
			continue
		}
		const (
			problem = "leaves out every request of the rule's match, so that the rule never decides anything"
			fix     = "narrow it, or remove it"
		)
		if not := r.Match.Not; not != nil && c.within(&r.Match, not) {
			found.add(path+".match.not", problem, fix)
		}
		for j := range r.Exempt {
			if c.within(&r.Match, &r.Exempt[j]) {
				found.add(fmt.Sprintf("%s.exempt[%d]", path, j), problem, fix)
				break
			}
		}
	}
	return found.all
}

// Exempted calls yield for each rule that never decides anything, because an entry of exempt leaves out every request of its match.
func Exempted(rules []guard.Rule, exempt []rule.Match, yield func(r *guard.Rule, entry int)) {
	c := newComparison()
	for i := range rules {
		if r := &rules[i]; r.Mode != guard.Off {
			if j := slices.IndexFunc(exempt, func(e rule.Match) bool { return c.within(&r.Match, &e) }); j >= 0 {
				yield(r, j)
			}
		}
	}
}

// comparison compares matches. It finds nothing more after maxReachSteps.
type comparison struct{ steps int }

func newComparison() *comparison { return &comparison{maxReachSteps} }

// within reports whether every request of m is known to match wide: each field of wide contains the same field of m. A false answer
// says nothing.
func (c *comparison) within(m, wide *rule.Match) bool {
	c.steps -= 1 + len(m.Methods)*len(wide.Methods) + len(m.Hosts)*len(wide.Hosts) + len(m.Addresses)*len(wide.Addresses)
	return c.steps >= 0 && wide.Not == nil && pathWithin(m.Path, wide.Path) &&
		allWithin(m.Methods, wide.Methods, methodWithin) && allWithin(m.Hosts, wide.Hosts, hostWithin) &&
		allWithin(m.Addresses, wide.Addresses, networkWithin) &&
		pairsWithin(m.Headers, wide.Headers, http.CanonicalHeaderKey) && pairsWithin(m.Query, wide.Query, asWritten) &&
		pairsWithin(m.Descriptors, wide.Descriptors, asWritten) && pairsWithin(m.JSON, wide.JSON, asWritten) &&
		(wide.Model == "" || withoutMark(m.Model) == withoutMark(wide.Model)) &&
		(wide.Domain == "" || withoutMark(m.Domain) == withoutMark(wide.Domain))
}

// allWithin reports whether each entry of a list is within an entry of the wide one. An empty list stands for everything.
func allWithin[T any](list, wide []T, within func(one, wide T) bool) bool {
	return len(wide) == 0 || len(list) > 0 && !slices.ContainsFunc(list, func(one T) bool {
		return !slices.ContainsFunc(wide, func(other T) bool { return within(one, other) })
	})
}

// pathWithin compares the literal begin of a path with that of a prefix. Other patterns are within the same pattern alone.
func pathWithin(text, wide string) bool {
	path, below := splitPath(text)
	prefix, contains := splitPath(wide)
	switch {
	case contains && prefix == "" || path == prefix && below == contains:
		return true
	case !contains || strings.ContainsAny(prefix, "*{") || strings.HasPrefix(path, "re:"):
		return false
	default:
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
}

// methodWithin compares methods. GET includes HEAD.
func methodWithin(one, wide string) bool {
	one, wide = withoutMark(one), withoutMark(wide)
	return one == wide || one == http.MethodHead && wide == http.MethodGet
}

func hostWithin(one, wide string) bool {
	one, wide = strings.ToLower(withoutMark(one)), strings.ToLower(withoutMark(wide))
	if one == wide {
		return true
	}
	end, below := strings.CutPrefix(wide, "*.")
	return below && !strings.ContainsAny(end, "*{") && !strings.ContainsAny(one, "=*{:") && strings.HasSuffix(one, "."+end)
}

func networkWithin(one, wide netip.Prefix) bool {
	return wide.Bits() <= one.Bits() && wide.Contains(one.Addr())
}

// pairsWithin compares the values of names. Each value is also within any value.
func pairsWithin(pairs, wide map[string]string, name func(string) string) bool {
	for key, value := range wide {
		within := false
		for own, text := range pairs {
			within = within || name(own) == name(key) && (value == "*" || value == "**" || withoutMark(text) == withoutMark(value))
		}
		if !within {
			return false
		}
	}
	return true
}
