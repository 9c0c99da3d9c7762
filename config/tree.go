package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds of a file. They keep the time of a hostile one near a second, and are far
// above what a person or a generator of rules writes.
const (
	// maxFileBytes has room for some 60,000 rules.
	maxFileBytes = 8 << 20
	// maxDepth is some times what the deepest field needs. The parser recurses.
	maxDepth = 32
	// maxCommas bounds the entries of [lists] and {mappings} in one line: the parser
	// takes microseconds for each, and 8 MiB of them would take it a quarter of a minute.
	maxCommas = 300_000
	// maxAliases bounds how often *aliases are followed.
	maxAliases = 10_000
	// maxFaults bounds what is reported: nobody reads more at a time.
	maxFaults = 100
)

// tree parses the source. The fault is the first of the text's form: behind it
// nothing is known of what the rest means.
func (s *source) tree() (*yaml.Node, *Fault) {
	if n := bytes.Count(s.text, []byte{','}); n > maxCommas {
		f := s.fault(place{}, "", fmt.Sprintf("the file has %d commas, more than %d", n, maxCommas),
			"write long lists one entry to a line, with - before each")
		return nil, &f
	}
	var document yaml.Node
	err := yaml.Load(s.text, &document, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		f := s.syntaxFault(err)
		return nil, &f
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		f := s.emptyFault()
		return nil, &f
	}
	return document.Content[0], nil
}

func (s *source) emptyFault() Fault {
	return Fault{File: s.name, Line: 1, Column: 1, Problem: "the file is empty", Fix: "begin with version: 1"}
}

// severalFault finds where the second document begins.
func (s *source) severalFault() Fault {
	begun := false
	for i, line := range s.lines {
		word, _, _ := strings.Cut(line, " ")
		marker := word == "---" || word == "..."
		if marker && begun {
			return s.fault(place{i + 1, 1}, "", "a second document begins here", "write one document to a file")
		}
		begun = begun || !marker && word != "" && !strings.HasPrefix(line, "#")
	}
	return Fault{File: s.name, Problem: "the file has several documents", Fix: "write one document to a file"}
}

// syntaxFault puts the parser's error into words of ours, at the place where the
// mistake was made, which is not always the place where the parser gave up.
func (s *source) syntaxFault(err error) Fault {
	bad, found := errors.AsType[*yaml.LoadError](err)
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
	for _, w := range syntaxWords {
		if !strings.Contains(bad.Message, w.message) || !strings.Contains(bad.ContextMsg, w.context) {
			continue
		}
		if w.atContext && context.line > 0 {
			at = context
		}
		return s.refine(s.fault(at, "", w.problem, w.fix), at)
	}
	return s.fault(at, "", "this is not YAML: "+bad.Message, "compare it with docs/configuration.md")
}

// refine looks at the character that the parser stumbled over.
func (s *source) refine(f Fault, at place) Fault {
	if at.line < 1 || at.line > len(s.lines) {
		return f
	}
	line := []rune(s.lines[at.line-1])
	if at.column < 1 || at.column > len(line) {
		return f
	}
	before, c := strings.TrimSpace(string(line[:at.column-1])), line[at.column-1]
	switch {
	case c == '\t' && before == "":
		f.Problem, f.Fix = "a tab indents this line", "use spaces"
	case f.Problem == problemStart:
		f.Problem = fmt.Sprintf("%q cannot begin a value", c)
	case f.Problem == problemBlock && before != "":
		f.Problem, f.Fix = "text follows a complete value", "put the whole value in quotes, or begin a new line"
	}
	return f
}

const (
	problemStart = "this character cannot begin a value"
	problemBlock = "the line does not fit the lines above"
)

// syntaxWords translate the parser's messages. The first that fits counts.
var syntaxWords = [...]struct {
	message, context string
	problem, fix     string
	atContext        bool
}{
	{"exceeded max depth", "", fmt.Sprintf("values are nested deeper than %d", maxDepth), "no field needs that: compare with docs/configuration.md", false},
	{"tab character", "", "a tab indents this line", "use spaces", false},
	{"cannot start any token", "", problemStart, "put the value in quotes", false},
	{"unexpected end of stream", "quoted", "the quote that begins here is not closed", "write the same quote at the end of the value", true},
	{"unexpected document indicator", "quoted", "the quote that begins here is not closed", "write the same quote at the end of the value", true},
	{"unknown escape", "", "the text in double quotes has a backslash that means nothing", `write \\ for a backslash, or use single quotes`, false},
	{"hexdecimal", "", "the text in double quotes has an incomplete escape", `write \\ for a backslash, or use single quotes`, false},
	{"expected ',' or ']'", "", "the list that begins here is not closed", "write commas between its entries and ] behind the last", true},
	{"expected ',' or '}'", "", "the mapping that begins here is not closed", "write commas between its fields and } behind the last", true},
	{"expected node content", "", "a value is missing here", "write one, or leave the comma out", false},
	{"expected '-' indicator", "", problemBlock, "indent it as its list is, and begin each entry with - and a space", false},
	{"expected key", "", problemBlock, "indent it as the fields beside it", false},
	{"mapping values are not allowed", "", "a field cannot begin here", "write each field on a line of its own, indented as the fields beside it, with a space behind its colon; put text that has a colon in quotes", false},
	{"could not find expected ':'", "", "this line has no colon", "write it as name: value, with a space behind the colon", true},
	{"block sequence entries are not allowed", "", "a list cannot begin here", "begin its first - on a line of its own", false},
	{"unknown anchor", "", "the alias has no anchor before it", "write the value itself, or its & name above", false},
	{"expected <document start>", "", "text follows a complete value", "put the whole value in quotes, or begin a new line", false},
	{"directive", "", "a line that begins with % is for YAML itself", "leave it out", false},
	{"indentation", "", "the line is indented too little", "indent it further than the field that it belongs to", false},
}
