package rule

import (
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// Index finds the rules that match a request without looking at the others. It is
// immutable and may be used by many goroutines at once.
//
// A lookup goes to the rules of the request's path, of each prefix of the path,
// and of every path. Among those it goes by host, headers and descriptor entries,
// by whichever tells the rules apart best. What it costs grows with the number of
// different names of headers and entries that rules of one path ask for, since a
// request can be asked for those by name only, and not with the number of rules.
type Index struct {
	exact    map[string]node
	prefixes map[string]node // without their "/*"
	always   *node           // nil when no rule is for every path
	// The bounds of what a request is looked at: beyond them no rule can be.
	prefixSegments int // of the deepest prefix
	prefixLength   int // of the longest prefix
	hostDots       int // of the wildcard host with the most
}

// NewIndex checks the rules and makes their index. It holds nothing of the rules
// but their positions and texts. The error is a *RuleError or, for several
// faults, joins the first 10,000 of them (errors.Join); errors.As finds the first.
func NewIndex(rules []Rule) (*Index, error) {
	if err := checkRules(rules); err != nil {
		return nil, err
	}
	x := &Index{}
	var always []entry
	exact, prefixes := map[string][]entry{}, map[string][]entry{}
	for i := range rules {
		m := &rules[i].Match
		e := entry{i, newConditions(m)}
		switch path, kind := splitPath(m.Path); kind {
		case pathAlways:
			always = append(always, e)
		case pathPrefix:
			prefixes[path] = append(prefixes[path], e)
		case pathExact:
			exact[path] = append(exact[path], e)
		}
		x.bound(m)
	}
	if len(always) > 0 {
		n := newNode(always)
		x.always = &n
	}
	x.exact, x.prefixes = newNodes(exact), newNodes(prefixes)
	return x, nil
}

func newNodes(groups map[string][]entry) map[string]node {
	nodes := make(map[string]node, len(groups))
	for path, entries := range groups {
		nodes[path] = newNode(entries)
	}
	return nodes
}

// bound widens the bounds so that the match lies within them.
func (x *Index) bound(m *Match) {
	if path, kind := splitPath(m.Path); kind == pathPrefix {
		x.prefixSegments = max(x.prefixSegments, strings.Count(path, "/"))
		x.prefixLength = max(x.prefixLength, len(path))
	}
	for _, host := range m.Hosts {
		if newHostPattern(host).below {
			x.hostDots = max(x.hostDots, strings.Count(host, "."))
		}
	}
}

// Match appends the positions of the rules that match the request, in ascending
// order, and allocates nothing when into has room.
func (x *Index) Match(req *headgate.Request, into []int) []int {
	s := search{index: x, req: req, found: into}
	s.run()
	// A rule of several hosts may have been found by more than one of them.
	fresh := s.found[len(into):]
	if len(fresh) > 1 {
		slices.Sort(fresh)
		fresh = slices.Compact(fresh)
	}
	return s.found[:len(into)+len(fresh)]
}

// search is one lookup.
type search struct {
	index  *Index
	req    *headgate.Request
	found  []int
	looked int // entries looked at: what the index saves, for its tests
}

func (s *search) run() {
	if s.index.always != nil {
		s.visit(*s.index.always)
	}
	s.visitNamed(s.index.exact, s.req.Path)
	s.visitPrefixes()
}

// visitPrefixes looks up the path as far as each of its slashes, and the whole
// path: "/search/*" is /search too.
func (s *search) visitPrefixes() {
	path := s.req.Path
	for end, segments := 0, 0; end < len(path) && segments < s.index.prefixSegments; segments++ {
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			end = len(path)
		} else {
			end += 1 + next
		}
		if end > s.index.prefixLength {
			return
		}
		s.visitNamed(s.index.prefixes, path[:end])
	}
}

// visitNamed visits the node that a map has under a name, if any.
func (s *search) visitNamed(nodes map[string]node, name string) {
	if n, found := nodes[name]; found {
		s.visit(n)
	}
}

// visit looks at the rules of a node, and at those below it that the request's
// host, headers and descriptor entries lead to.
func (s *search) visit(n node) {
	c := n.crowd
	if c == nil {
		s.look(n.one)
		return
	}
	for _, e := range c.here {
		s.look(e)
	}
	s.visitNamed(c.hosts, s.req.Host)
	if c.below != nil {
		s.visitBelow(c.below)
	}
	for i := range c.fields {
		s.visitField(&c.fields[i])
	}
}

// look checks what is left to check of a rule.
func (s *search) look(e entry) {
	s.looked++
	if e.rest.match(s.req) {
		s.found = append(s.found, e.rule)
	}
}

func (s *search) visitField(f *fieldCrowd) {
	value, present := f.lookup(s.req)
	if !present {
		return
	}
	s.visitNamed(f.values, value)
	if f.any != nil {
		s.visit(*f.any)
	}
}

// visitBelow looks up the ends of the host, from the right, as far as patterns
// have dots. An end is never the whole host: "*.example.com" asks for a name below.
func (s *search) visitBelow(below map[string]node) {
	host := s.req.Host
	end := len(host)
	for range s.index.hostDots {
		end = strings.LastIndexByte(host[:end], '.')
		if end <= 0 {
			return
		}
		s.visitNamed(below, host[end:])
	}
}
