package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/errortype"
)

// syntaxFault rewords an error of the parser. It points at the mistake, which may come before the
// position where the parser stopped.
func (s *document) syntaxFault(err error) Fault {
	bad, found := errortype.As[*yaml.LoadError](err)
	switch {
	case !found || bad == nil:
		return Fault{File: s.name, Problem: fmt.Sprintf("the file is not YAML (%v)", err), Fix: "compare it with docs/configuration.md"}
	case strings.HasSuffix(bad.Message, "no documents in stream"):
		return s.emptyFault()
	case strings.HasSuffix(bad.Message, "found multiple"):
		return s.severalFault()
	}
	at, context := place{bad.Mark.Line, bad.Mark.Column}, place{bad.ContextMark.Line, bad.ContextMark.Column}
	if at.line == 0 {
		at = context
	}
	for i := range syntaxWords {
		w := &syntaxWords[i]
		if !strings.Contains(bad.Message, w.message) || !strings.Contains(bad.ContextMsg, w.context) {
			continue
		}
		if w.atContext && context.line > 0 {
			at = context
		}
		return s.refine(s.fault(at, "", w.problem, w.fix))
	}
	return s.fault(at, "", "this is not YAML: "+bad.Message, "compare it with docs/configuration.md")
}

const (
	problemEmpty = "the file is empty"
	problemDeep  = "values are nested deeper than any field"
	problemStart = "this character cannot begin a value"
	problemBlock = "the line does not fit the lines above"
	problemColon = "a value contains a colon and a space"
	problemAfter = "text follows a complete value"
	problemQuote = "the quote that begins here is not closed"
	fixDocument  = "write one document to a file"
	fixFields    = "indent it like the fields next to it"
	fixEscape    = `write \\ for a backslash, or use single quotes`
	fixQuote     = "write the same quote at the end of the value"
)

// refine looks at the text where the parser stopped, and describes common mistakes more
// clearly than the grammar does.
func (s *document) refine(f Fault) Fault {
	at := place{f.Line, f.Column}
	before, c := s.around(at)
	indent := strings.TrimSpace(before) == ""
	switch {
	case c == '\t' && indent:
		f.Problem, f.Fix = "a tab indents this line", "use spaces"
	case f.Problem == problemStart && c != 0:
		f.Problem = fmt.Sprintf("%q cannot begin a value", c)
	case f.Problem == problemBlock && indent && c == '-':
		f.Fix = "indent it like the other entries of its list"
	case f.Problem == problemBlock && !indent, f.Problem == problemAfter:
		return s.refineAfter(f, at)
	case f.Problem == problemColon && !strings.Contains(before, ": "):
		return s.refineColon(at)
	}
	return f
}

// refineAfter distinguishes text after a value from an unclosed quote on an earlier line: such a
// value ends at the next quote.
func (s *document) refineAfter(f Fault, at place) Fault {
	f.Problem, f.Fix = problemAfter, "put the whole value in quotes, or begin a new line"
	before, _ := s.around(at)
	before = strings.TrimRight(before, " ")
	for _, mark := range []string{`"`, "'"} {
		if !strings.HasSuffix(before, mark) || strings.Count(before, mark) > 1 {
			continue
		}
		for line := at.line - 1; line >= 1; line-- {
			if i := strings.LastIndex(s.lines()[line-1], mark); i >= 0 {
				return s.fault(place{line, 1 + utf8.RuneCountInString(s.lines()[line-1][:i])}, "", problemQuote, fixQuote)
			}
		}
	}
	return f
}

// refineColon handles a field in a place where none is allowed. It decides which line is at fault:
// the field's own line, or the line above, which is not a field.
func (s *document) refineColon(at place) Fault {
	for line := at.line - 1; line >= 1; line-- {
		text := strings.TrimLeft(s.lines()[line-1], " -")
		if text == "" || text[0] == '#' {
			continue
		}
		if !strings.Contains(text, ": ") && !strings.HasSuffix(text, ":") {
			return s.fault(s.begin(line), "", "this line has no colon followed by a space", "write it as name: value")
		}
		break
	}
	return s.fault(s.begin(at.line), "", "the line is indented further than the field above", fixFields)
}

// around returns the text before a place on its line, and the character at the place.
func (s *document) around(at place) (before string, c rune) {
	if at.line < 1 || at.line > len(s.lines()) {
		return "", 0
	}
	line := []rune(s.lines()[at.line-1])
	if at.column < 1 || at.column > len(line) {
		return string(line), 0
	}
	return string(line[:at.column-1]), line[at.column-1]
}

// begin returns the place of the first character of a line.
func (s *document) begin(line int) place {
	text := s.lines()[line-1]
	return place{line, 1 + len(text) - len(strings.TrimLeft(text, " "))}
}

// syntaxWords maps messages of the parser to messages of this package. The first match is used.
var syntaxWords = [...]struct {
	message, context string
	problem, fix     string
	atContext        bool
}{
	{"exceeded max depth", "", problemDeep, "compare it with docs/configuration.md", false},
	{"tab character", "", "a tab indents this line", "use spaces", false},
	{"cannot start any token", "", problemStart, "put the value in quotes", false},
	{"unexpected end of stream", "quoted", problemQuote, fixQuote, true},
	{"unexpected document indicator", "quoted", problemQuote, fixQuote, true},
	{"unknown escape", "", "the text in double quotes has an unknown escape", fixEscape, false},
	{"hexdecimal", "", "the text in double quotes has an incomplete escape", fixEscape, false},
	{"expected ',' or ']'", "", "the list that begins here is not closed", "write commas between its entries, ] after the last", true},
	{"expected ',' or '}'", "", "the mapping that begins here is not closed", "write commas between its fields, } after the last", true},
	{"expected node content", "", "a value is missing here", "write one, or remove the comma", false},
	{"expected '-' indicator", "", problemBlock, fixFields, false},
	{"expected key", "", problemBlock, fixFields, false},
	{"mapping values are not allowed", "", problemColon, "put the whole value in quotes", false},
	{"could not find expected ':'", "", "this line has no colon", "write it as name: value, with a space after the colon", true},
	{"block sequence entries are not allowed", "", "a list cannot begin here", "begin its first - on a line of its own", false},
	{"unknown anchor", "", "* begins an alias, but no anchor above has this name", "put text that begins with * in quotes", false},
	{"expected <document start>", "", problemAfter, "", false},
	{"incompatible YAML document", "", "a line that begins with % is for YAML itself", "remove it", false},
	{"directive", "", "a line that begins with % is for YAML itself", "remove it", false},
	{"indentation", "", "the line is indented too little", "indent it further than the field that it belongs to", false},
}
