package rule

import (
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// Index finds the rules that match a request without testing all rules. Index is
// immutable and safe for concurrent use.
//
// A lookup reads the rules of the request's path, of each prefix of the path, and of
// every path. Index then looks up the host, the address, the headers and the other fields, and
// starts with the attribute that separates the rules best. The cost grows with the
// number of different header and entry names in the rules of one path, because each
// name needs a lookup. The cost does not grow with the number of rules.
type Index struct {
	exact    map[string]node
	prefixes map[string]node // without their "/*"
	always   *node           // nil when no rule is for every path
	tree     *tree           // of templates and expressions; nil when there are none
	asked    []bool          // by position: the rule names a domain or descriptors
	// These limits bound the lookups for one request: no rule needs more.
	prefixSegments int // of the deepest prefix
	prefixLength   int // of the longest prefix
	hostDots       int // of the wildcard host with the most dots
}

// NewIndex checks the rules and returns their index. The index keeps only positions
// and texts of the rules. The error is a *RuleError. For several faults it joins the
// first 10,000 errors (errors.Join), and errors.As finds the first one.
func NewIndex(rules []Rule) (*Index, error) {
	if err := checkRules(rules); err != nil {
		return nil, err
	}
	return buildIndex(rules, networkSets{}), nil
}

// buildIndex is NewIndex for checked rules.
func buildIndex(rules []Rule, sets networkSets) *Index {
	x := &Index{asked: make([]bool, 0, len(rules))}
	var always []entry
	var templates treeBuilder
	rests := hostRests{}
	exact, prefixes := map[string][]entry{}, map[string][]entry{}
	for i := range rules {
		m := &rules[i].Match
		x.asked = append(x.asked, m.ForQueries())
		e := entry{i, newConditions(&rules[i], sets)}
		rests.share(e.rest)
		switch p, _ := compilePath(m.Path); p.form {
		case formAny:
			always = append(always, e)
		case formBelow:
			prefixes[p.text] = append(prefixes[p.text], e)
			x.prefixSegments = max(x.prefixSegments, strings.Count(p.text, "/"))
			x.prefixLength = max(x.prefixLength, len(p.text))
		case formLiteral:
			exact[p.text] = append(exact[p.text], e)
		default:
			templates.add(&p, m.Path, e)
		}
		x.boundHosts(e.rest)
	}
	x.tree = templates.build()
	if len(always) > 0 {
		n := newNode(always)
		x.always = &n
	}
	x.exact, x.prefixes = newNodes(exact), newNodes(prefixes)
	return x
}

func newNodes(groups map[string][]entry) map[string]node {
	nodes := make(map[string]node, len(groups))
	for path, entries := range groups {
		nodes[path] = newNode(entries)
	}
	return nodes
}

// boundHosts raises the limit of the index so that the ends of the hosts are within it.
func (x *Index) boundHosts(c *conditions) {
	if c == nil {
		return
	}
	for i := range c.hosts {
		if h := &c.hosts[i]; h.below {
			x.hostDots = max(x.hostDots, strings.Count(h.name, "."))
		}
	}
}

// Match appends the positions of the rules that match the request, in ascending order.
// Match allocates nothing if into has enough capacity.
func (x *Index) Match(req *headgate.Request, into []int) []int {
	var s search // Its fields are set one by one: a copy of a literal would wait for its own stores.
	s.index, s.req, s.found = x, req, into
	s.run()
	// The search may find a rule once for each of several hosts.
	fresh := s.found[len(into):]
	if req.Domain != "" {
		fresh = slices.DeleteFunc(fresh, func(i int) bool { return !x.asked[i] })
	}
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
	looked int  // number of tested entries, for the tests of the index
	single bool // One rule is enough, and its position does not matter.
	hit    bool // of a single search: a rule matches
}

func (s *search) run() {
	if s.index.always != nil {
		s.visit(*s.index.always)
	}
	s.visitNamed(s.index.exact, s.req.Path)
	s.visitPrefixes()
	if s.index.tree != nil {
		s.visitTree(s.index.tree)
	}
}

// visitPrefixes looks up the path up to each of its slashes, and the full path,
// because "/search/*" includes /search.
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

// visitNamed visits the node with the given name, if the map has one.
func (s *search) visitNamed(nodes map[string]node, name string) {
	if n, found := nodes[name]; found {
		s.visit(n)
	}
}

// visit tests the rules of a node, and then visits the child nodes for the host, the
// headers and the descriptor entries of the request.
func (s *search) visit(n node) {
	c := n.branch
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
	if c.networks != nil {
		s.visitNetworks(c.networks)
	}
	for i := range c.fields {
		s.visitField(&c.fields[i])
	}
}

// look tests the remaining conditions of a rule.
func (s *search) look(e entry) {
	s.looked++
	switch {
	case s.hit || !e.rest.match(s.req):
	case s.single:
		s.hit = true
	default:
		s.found = append(s.found, e.rule)
	}
}

func (s *search) visitField(f *fieldBranch) {
	value, present := f.lookup(s.req)
	if !present {
		return
	}
	s.visitNamed(f.values, value)
	if f.any != nil {
		s.visit(*f.any)
	}
}

// visitBelow looks up the ends of the host from the right, up to the largest number of
// dots in a pattern. visitBelow skips the full host, because "*.example.com" matches only
// names below example.com.
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
