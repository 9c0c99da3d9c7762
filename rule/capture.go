package rule

import (
	"fmt"
	"slices"
	"strings"
)

// capture finds in a path or a host what a name of the rule's template stands for. It relies on the index, which has compared the
// request with the template: it counts segments, and compares only the segment that has a literal beside the variable. Its time is
// linear in the length of the text, and it allocates nothing.
type capture struct {
	separator byte
	skip      int // segments before the value: from the left of a path, from the right of a host
	rest      bool
	// part is the segment with a literal beside the variable; nil if the value is a whole segment.
	part *segment
	name string
	// next is the capture of the next host of the match, for a host that does not match pattern. It is nil if all hosts have the value
	// in one place.
	next    *capture
	pattern pattern
}

// find returns the value in the path or the host of a request that matches the rule.
func (c *capture) find(text string) (value string, ok bool) {
	for c.next != nil && !c.pattern.match(text) {
		c = c.next
	}
	if c.separator == '/' {
		text = strings.TrimPrefix(text, "/")
	}
	for range c.skip {
		_, rest, more := cutSegment(text, c.separator)
		if !more {
			return "", c.rest // A rest may be empty.
		}
		text = rest
	}
	if c.rest {
		return text, true
	}
	value, _, _ = cutSegment(text, c.separator)
	if c.part != nil {
		value, _ = c.part.walk(value, c.name)
	}
	return value, value != ""
}

// capturing returns the capture of a name of the pattern; nil if it has no such name.
func (p *pattern) capturing(name string) *capture {
	if p.form != formTemplate || name == "" || !p.hasName(name) {
		return nil
	}
	c := &capture{separator: p.separator, skip: len(p.segments), rest: p.restName == name, name: name, pattern: *p}
	for i := range p.segments {
		s := &p.segments[i]
		if !slices.ContainsFunc(s.variables, func(v variable) bool { return v.name == name }) {
			continue
		}
		if c.skip = i; s.first != "" || len(s.variables) > 1 || s.variables[0].next != "" {
			c.part = s
		}
	}
	return c
}

// example returns a path or a host in which find finds the value. It reports false if there is none.
func (c *capture) example(value string) (text string, found bool) {
	for at := c; at != nil; at = at.next {
		text = at.pattern.with(at.name, value)
		if own, has := c.find(text); has && own == value {
			return text, true
		}
	}
	return "", false
}

// with returns a text with the form of a template, in which the name stands for a value and each other variable for a letter.
func (p *pattern) with(name, value string) string {
	const other = "v"
	var segments []string
	for i := range p.segments {
		texts := []string{p.segments[i].first}
		for _, v := range p.segments[i].variables {
			own := other
			if v.name == name {
				own = value
			}
			texts = append(texts, own, v.next)
		}
		segments = append(segments, strings.Join(texts, ""))
	}
	switch {
	case p.rest != restNone && p.restName == name:
		segments = append(segments, value)
	case p.rest != restNone:
		segments = append(segments, p.restText+other)
	}
	if p.separator == '/' {
		return "/" + strings.Join(segments, "/")
	}
	slices.Reverse(segments)
	return strings.Join(segments, ".")
}

// isSame reports whether both find the value in one place of every text.
func (c *capture) isSame(other *capture) bool {
	return c.skip == other.skip && c.rest == other.rest && c.part == nil && other.part == nil
}

// capture returns what finds the value of a part path:{NAME} or host:{NAME}; nil if the match does not have the name.
func (m *Match) capture(p Part) *capture {
	if p.kind == partPathName {
		template, _ := compilePath(m.Path)
		return template.capturing(p.name)
	}
	var first, last *capture
	same := true
	for _, text := range m.Hosts {
		template, _ := compileHost(text)
		c := template.capturing(p.name)
		switch {
		case c == nil:
			return nil
		case first == nil:
			first = c
		default:
			last.next = c
			same = same && c.isSame(first)
		}
		last = c
	}
	if same && first != nil {
		first.next = nil
	}
	return first
}

// BoundKey returns the key with its parts path:{NAME} and host:{NAME} bound to the templates of the rule's match. Without it, these
// parts have no value in any request. A guard binds the keys of its rules. Parts whose name the match does not have stay as they
// are: NewIndex refuses them. BoundKey returns a key without such parts as it is.
func (r *Rule) BoundKey() []Part {
	key := r.Key
	for i, p := range r.Key {
		if !p.kind.isVariable() {
			continue
		}
		if &key[0] == &r.Key[0] {
			key = slices.Clone(r.Key)
		}
		key[i].from = r.Match.capture(p)
	}
	return key
}

// unbound returns the part as ParsePart returns it.
func (p Part) unbound() Part {
	p.from = nil
	return p
}

// checkVariables checks that the match has the names of parts path:{NAME} and host:{NAME}.
func (c *checker) checkVariables(r *Rule) {
	for i, p := range r.Key {
		if !p.kind.isVariable() || i >= MaxParts {
			continue
		}
		faultOf := r.Match.hostsFault
		if p.kind == partPathName {
			faultOf = r.Match.pathFault
		}
		c.note(fmt.Sprintf("key[%d]", i), faultOf(p))
	}
}

// pathFault says why the path of a match does not have the name of a part.
func (m *Match) pathFault(p Part) fault {
	template, f := compilePath(m.Path)
	switch form := "/users/{" + p.name + "}"; {
	case f != (fault{}) || template.hasName(p.name):
		return fault{} // A faulty path has its own fault.
	case m.Path == "":
		return fault{p.String() + " needs a name in match.path, and the match has no path", "add match: {path: " + quote(form) + "}"}
	case template.form == formExpression:
		return fault{
			p.String() + " needs a name in match.path, and " + quote(m.Path) + " is an expression, which has no names",
			"write match.path as a template, like " + quote(form) + " or " + quote("/users/{"+p.name+":[0-9]+}"),
		}
	case len(template.names()) == 0:
		return fault{
			p.String() + " needs a name in match.path, and " + quote(m.Path) + " has none",
			"write {" + p.name + "} for the segment that counts, as in " + quote(form),
		}
	default:
		return p.unknownName("match.path "+quote(m.Path), template.names())
	}
}

// hostsFault says why the hosts of a match do not all have the name of a part.
func (m *Match) hostsFault(p Part) fault {
	form := "{" + p.name + "}.example.com"
	if len(m.Hosts) == 0 {
		return fault{
			p.String() + " needs a name in each host of match.hosts, and the match has no hosts",
			"add match: {hosts: [" + quote(form) + "]}",
		}
	}
	for i, text := range m.Hosts {
		template, f := compileHost(text)
		if f != (fault{}) || template.hasName(p.name) {
			continue
		}
		where := fmt.Sprintf("match.hosts[%d] %s", i, quote(text))
		if names := template.names(); len(names) > 0 {
			return p.unknownName(where, names)
		}
		fix := "write " + quote(form)
		if name, below := cutBelowHost(text); below && !isTemplated(name) {
			one, all := "{"+p.name+"}."+name, "{"+p.name+"...}."+name
			fix = "write " + quote(one) + " for one label, or " + quote(all) + " for every name below " + name
		}
		if len(m.Hosts) > 1 {
			fix += ", or give this host a rule of its own"
		}
		return fault{p.String() + " needs a name in each host of match.hosts, and " + where + " has none", fix}
	}
	return fault{}
}

// unknownName is the fault of a name that a template does not have.
func (p Part) unknownName(where string, names []string) fault {
	word := partTable[p.kind].word
	fix := "use "
	if near := Nearest(p.name, names); near != "" {
		fix = "did you mean " + word + ":{" + near + "}? Use "
	}
	forms := make([]string, len(names))
	for i, name := range names {
		forms[i] = word + ":{" + name + "}"
	}
	return fault{where + " has no name " + quote(p.name), fix + strings.Join(forms, " or ")}
}
