package config

import (
	"encoding/json"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	// maxJSONDepth is deeper than any object is nested.
	maxJSONDepth = 16
	// maxJSONText is below the length of a name that YAML refuses.
	maxJSONText = 512
	// jsonCharacters are those of numbers and of true, false and null.
	jsonCharacters = "+-.0123456789Eaeflnrstu"
)

// jsonNode gives the tree of a text in the plain JSON that programs write: without escapes, and in ASCII. It gives nil for
// any other text, which the parser of YAML reads. For these texts, that parser gives the same tree, and takes ten times
// as long: a test compares them.
func jsonNode(text string) *yaml.Node {
	p := &jsonParser{text: text, line: 1}
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~' || c == '\\') && c != '\n' {
			return nil
		}
	}
	p.space()
	n := p.value(0)
	if p.space(); n == nil || p.at != len(text) || n.Kind == yaml.ScalarNode {
		return nil
	}
	return n
}

// surrogates are escapes of JSON: a pair is one character, and an escaped backslash is not the begin of one.
const surrogates = `\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`

// joinedSurrogates gives a text of JSON in which each pair of escapes for one character is that character: JSON has no
// other escape for most of them, and YAML does not have this one. Any other text stays as it is.
func joinedSurrogates(text string) string {
	if !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) || !json.Valid([]byte(text)) {
		return text
	}
	return regexp.MustCompile(surrogates).ReplaceAllStringFunc(text, func(escape string) string {
		var character string
		if len(escape) == 2 || json.Unmarshal([]byte(`"`+escape+`"`), &character) != nil {
			return escape
		}
		return character
	})
}

// jsonParser reads one text. Its methods give nil for a text that it does not read.
type jsonParser struct {
	text  string
	at    int
	line  int
	begin int // The offset of the line.
}

// space skips spaces and line breaks.
func (p *jsonParser) space() {
	for ; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case ' ':
		case '\n':
			p.line, p.begin = p.line+1, p.at+1
		default:
			return
		}
	}
}

// take skips a character, if it is next.
func (p *jsonParser) take(c byte) bool {
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// node makes a node at the next character.
func (p *jsonParser) node(kind yaml.Kind, style yaml.Style, tag string) *yaml.Node {
	return &yaml.Node{Kind: kind, Style: style, Tag: tag, Line: p.line, Column: p.at - p.begin + 1}
}

func (p *jsonParser) value(depth int) *yaml.Node {
	if p.at == len(p.text) || depth > maxJSONDepth {
		return nil
	}
	switch p.text[p.at] {
	case '{':
		return p.list(p.node(yaml.MappingNode, yaml.FlowStyle, "!!map"), '}', depth)
	case '[':
		return p.list(p.node(yaml.SequenceNode, yaml.FlowStyle, "!!seq"), ']', depth)
	case '"':
		return p.quoted()
	default:
		return p.word()
	}
}

// list reads the entries of a mapping or of a list.
func (p *jsonParser) list(n *yaml.Node, end byte, depth int) *yaml.Node {
	p.at++
	if p.space(); p.take(end) {
		return n
	}
	for {
		if n.Kind == yaml.MappingNode {
			name := p.quoted()
			if p.space(); name == nil || !p.take(':') {
				return nil
			}
			p.space()
			n.Content = append(n.Content, name)
		}
		one := p.value(depth + 1)
		if one == nil {
			return nil
		}
		n.Content = append(n.Content, one)
		p.space()
		switch {
		case p.take(end):
			return n
		case !p.take(','):
			return nil
		}
		p.space()
	}
}

// quoted reads a text in quotes, on one line.
func (p *jsonParser) quoted() *yaml.Node {
	n := p.node(yaml.ScalarNode, yaml.DoubleQuotedStyle, "!!str")
	if !p.take('"') {
		return nil
	}
	length := strings.IndexAny(p.text[p.at:], "\"\n")
	if length < 0 || length > maxJSONText || p.text[p.at+length] == '\n' {
		return nil
	}
	n.Value = p.text[p.at : p.at+length]
	p.at += length + 1
	return n
}

// word reads a whole number, true or false. YAML understands the other words and numbers in its own way.
func (p *jsonParser) word() *yaml.Node {
	n := p.node(yaml.ScalarNode, 0, "")
	begin := p.at
	for p.at < len(p.text) && strings.IndexByte(jsonCharacters, p.text[p.at]) >= 0 {
		p.at++
	}
	n.Value = p.text[begin:p.at]
	switch {
	case n.Value == "true" || n.Value == "false":
		n.Tag = "!!bool"
	case n.Value != "" && len(n.Value) < 19 && strings.Trim(n.Value, "0123456789") == "" && (n.Value[0] != '0' || n.Value == "0"):
		n.Tag = "!!int"
	default:
		return nil
	}
	if p.at < len(p.text) && strings.IndexByte(" \n,]}", p.text[p.at]) < 0 {
		return nil
	}
	return n
}
