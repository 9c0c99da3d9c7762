package rule

import "strings"

// pattern is a compiled text of a match or an override. docs/reference/patterns.md defines the language. A pattern is
// immutable and safe for concurrent use. match allocates nothing, and its time is linear in the length of
// the text that a client sends.
type pattern struct {
	form patternForm
	// text is the literal, or what a below pattern contains: the path without "/*", or the end of a host with its first dot.
	text      string
	separator byte // between segments: '/' of paths, '.' of hosts, 0 for a text of one segment
	// segments are those of a template. The segments of a host go from right to left, because its rest is on the left.
	segments []segment
	rest     restForm
	restName string // of {name...}
	restText string // of restGlued: the text before **

	expression *expression
}

// patternForm says how a pattern is compared.
type patternForm uint8

const (
	formLiteral    patternForm = iota
	formAny                    // every path, or every value that is not empty
	formBelow                  // a path and all paths below it, or every name below a host
	formTemplate               // segments with variables
	formExpression             // re:
)

// restForm says what may follow the segments of a template.
type restForm uint8

const (
	restNone  restForm = iota
	restBelow          // any further segments
	restGlued          // a segment that begins with restText, and any text behind it
)

// compilePattern compiles a text of a configuration. A text without a meaning is a fault.
func compilePattern(kind textKind, text string) (pattern, fault) {
	switch kind {
	case textPath:
		return compilePath(text)
	case textHost:
		return compileHost(text)
	case textMethod:
		return compileMethod(text)
	default:
		return compileValue(text)
	}
}

// literal returns the only text that the pattern matches, if there is only one.
func (p *pattern) literal() (text string, ok bool) { return p.text, p.form == formLiteral }

// match reports whether the pattern matches the whole text.
func (p *pattern) match(text string) bool {
	switch p.form {
	case formLiteral:
		return text == p.text
	case formAny:
		return p.separator != 0 || text != ""
	case formBelow:
		return p.isBelow(text)
	case formExpression:
		return p.expression.match(text)
	default:
		return p.walk(text)
	}
}

// isBelow reports whether text is in what a below pattern contains. "*.example.com" does not contain example.com.
func (p *pattern) isBelow(text string) bool {
	if p.separator == '.' {
		return len(text) > len(p.text) && strings.HasSuffix(text, p.text)
	}
	return strings.HasPrefix(text, p.text) && (len(text) == len(p.text) || text[len(p.text)] == '/')
}

// names lists the names of a pattern, in the order of the text that requests have.
func (p *pattern) names() []string {
	var names []string
	for i := range p.segments {
		for _, v := range p.segments[i].variables {
			if v.name != "" {
				names = append(names, v.name)
			}
		}
	}
	if p.restName != "" {
		names = append(names, p.restName)
	}
	return names
}

// size returns the instructions of all expressions of the pattern.
func (p *pattern) size() int {
	n := 0
	if p.expression != nil {
		n = p.expression.size
	}
	for i := range p.segments {
		for j := range p.segments[i].variables {
			if e := p.segments[i].variables[j].expression; e != nil {
				n += e.size
			}
		}
	}
	return n
}

func (p *pattern) hasName(name string) bool {
	for i := range p.segments {
		for j := range p.segments[i].variables {
			if p.segments[i].variables[j].name == name {
				return true
			}
		}
	}
	return p.restName == name
}

// walk compares a text with a template.
func (p *pattern) walk(text string) bool {
	rest, more := text, true
	if p.separator == '/' {
		if rest, more = strings.CutPrefix(text, "/"); !more {
			return false
		}
	}
	return p.walkSegments(rest, more)
}

// walkSegments compares the segments of a template. more says whether rest begins a segment, which may be empty.
func (p *pattern) walkSegments(rest string, more bool) bool {
	for i := range p.segments {
		if !more {
			return false
		}
		var own string
		own, rest, more = cutSegment(rest, p.separator)
		if _, matches := p.segments[i].walk(own, ""); !matches {
			return false
		}
	}
	switch p.rest {
	case restBelow:
		return p.separator == '/' || rest != "" // "**.example.com" has at least one name.
	case restGlued:
		return more && strings.HasPrefix(rest, p.restText)
	default:
		return !more
	}
}

// cutSegment cuts the next segment from a text: the first one of a path, the last one of a host.
func cutSegment(text string, separator byte) (segment, rest string, more bool) {
	switch separator {
	case '/':
		return strings.Cut(text, "/")
	case '.':
		if at := strings.LastIndexByte(text, '.'); at >= 0 {
			return text[at+1:], text[:at], true
		}
	}
	return text, "", false
}

// segment is one segment of a template: a literal, and then variables with a literal behind each.
type segment struct {
	first     string
	variables []variable
}

// variable is a * or a {name} in a segment.
type variable struct {
	name       string      // "" for *
	least      int         // the smallest number of bytes
	expression *expression // of {name:expression}; nil for any text
	next       string      // the literal behind the variable; empty only behind the last one
}

// whole reports whether a segment is one variable for any text, so that every segment of a request but an empty one matches.
func (s *segment) whole() bool {
	return s.first == "" && len(s.variables) == 1 && s.variables[0].next == "" && s.variables[0].expression == nil
}

// walk compares a segment. Each variable takes the shortest text before its literal, and the last one takes what is left.
// Without expressions, a longer text for one of them never lets another segment match.
func (s *segment) walk(text, name string) (value string, ok bool) {
	if len(s.variables) == 0 {
		return "", text == s.first
	}
	rest, ok := strings.CutPrefix(text, s.first)
	if !ok {
		return "", false
	}
	for i := range s.variables {
		v := &s.variables[i]
		if len(rest) < v.least {
			return "", false
		}
		end := len(rest) - len(v.next)
		if i < len(s.variables)-1 {
			if end = strings.Index(rest[v.least:], v.next); end < 0 {
				return "", false
			}
			end += v.least
		} else if end < v.least || rest[end:] != v.next {
			return "", false
		}
		own := rest[:end]
		if v.expression != nil && !v.expression.match(own) {
			return "", false
		}
		if name != "" && v.name == name {
			value = own
		}
		rest = rest[end+len(v.next):]
	}
	return value, true
}

// Expressions returns the number of expressions in the patterns of a checked match, and their size in instructions. A comparison takes
// at most one step of each instruction for each byte of the text.
func (m *Match) Expressions() (count, size int) {
	add := func(kind textKind, text string) {
		if p, _ := compilePattern(kind, text); p.size() > 0 {
			count, size = count+1, size+p.size()
		}
	}
	add(textPath, m.Path)
	for _, text := range m.Methods {
		add(textMethod, text)
	}
	for _, text := range m.Hosts {
		add(textHost, text)
	}
	for _, values := range []map[string]string{m.Headers, m.Query, m.Descriptors, m.JSON, {"": m.Domain, "model": m.Model}} {
		for _, text := range values {
			add(textValue, text)
		}
	}
	return count, size
}
