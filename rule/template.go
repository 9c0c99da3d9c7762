package rule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxVariables bounds the variables of one pattern.
	maxVariables = 16
	// maxVariableName bounds the name of a variable, which keys contain.
	maxVariableName = 64
)

// matchingBrace returns the position of the brace that closes the one at the start of text, or -1. An expression in a
// variable may have braces, as in {id:[0-9]{4}}.
func matchingBrace(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// withoutVariables puts a letter in place of each byte of a variable, so that a check of the text does not see it.
func withoutVariables(text string) string {
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return text
	}
	end := matchingBrace(text[at:])
	if end < 0 {
		return text[:at+1] + withoutVariables(text[at+1:]) // A brace that nothing closes is a literal.
	}
	return text[:at] + strings.Repeat("v", end+1) + withoutVariables(text[at+end+1:])
}

// isTemplated reports whether a text has a * or a variable.
func isTemplated(text string) bool {
	return strings.Contains(text, "*") || withoutVariables(text) != text
}

// splitSegments splits a text at a separator outside of variables.
func splitSegments(text string, separator byte) []string {
	if separator == 0 {
		return []string{text}
	}
	var segments []string
	masked, from := withoutVariables(text), 0
	for i := range len(masked) {
		if masked[i] == separator {
			segments, from = append(segments, text[from:i]), i+1
		}
	}
	return append(segments, text[from:])
}

// templateReader compiles the segments of one template.
type templateReader struct {
	text  string // the whole template, for faults
	names []string
	count int // of variables
}

// segment compiles one segment.
func (t *templateReader) segment(text string) (segment, fault) {
	var s segment
	literal := &s.first
	for at := 0; at < len(text); {
		end := -1
		if text[at] == '{' {
			end = matchingBrace(text[at:])
		}
		if text[at] != '*' && end < 0 {
			*literal += text[at : at+1]
			at++
			continue
		}
		if len(s.variables) > 0 && *literal == "" {
			return segment{}, fault{
				quote(t.text) + " has two variables without a text between them", "write a text between them, or one variable",
			}
		}
		v, f := variable{}, fault{}
		if end >= 0 {
			v, f = t.variable(text[at+1 : at+end])
			at += end
		}
		if t.count++; t.count > maxVariables {
			f = fault{fmt.Sprintf("has more than %d variables", maxVariables), "use fewer"}
		}
		if f != (fault{}) {
			return segment{}, f
		}
		at++
		s.variables = append(s.variables, v)
		literal = &s.variables[len(s.variables)-1].next
	}
	if text == "*" {
		s.variables[0].least = 1
	}
	return s, fault{}
}

// variable compiles the text between two braces: a name, or a name with an expression.
func (t *templateReader) variable(text string) (variable, fault) {
	name, expression, constrained := strings.Cut(text, ":")
	if f := t.name(name, text); f != (fault{}) {
		return variable{}, f
	}
	v := variable{name: name, least: 1}
	if !constrained {
		return v, fault{}
	}
	if plain, is := plainText(expression); is || expression == "" {
		return variable{}, fault{
			fmt.Sprintf("%s has a variable that matches only %q", quote(t.text), plain), variableFix(name, plain),
		}
	}
	var f fault
	if v.expression, f = compileExpression(expression); f != (fault{}) {
		return variable{}, f
	}
	return v, fault{}
}

// variableFix says what a word in place of an expression probably means: {id:int} of other programs.
func variableFix(name, word string) string {
	switch word {
	case "int", "number":
		return fmt.Sprintf("write {%s:[0-9]+} for digits", name)
	case "path":
		return fmt.Sprintf("write {%s...} for any rest", name)
	default:
		return fmt.Sprintf("write {%s} for any text, or an expression like {%s:[a-z]+}", name, name)
	}
}

// name checks the name of a variable, which it has once. whole is the text between the braces.
func (t *templateReader) name(name, whole string) fault {
	const fix = "write one like {id}, {id:[0-9]+}, or {rest...} at the end"
	bad := func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-' && c != '.'
	}
	switch {
	case name == "" || strings.IndexFunc(name, bad) >= 0 || strings.HasSuffix(name, restWord):
		return fault{quote(t.text) + " has " + quote("{"+whole+"}") + ", which is no variable", fix}
	case len(name) > maxVariableName:
		return fault{fmt.Sprintf("has a variable with a name of %d bytes", len(name)), fmt.Sprintf("use at most %d", maxVariableName)}
	}
	if slices.Contains(t.names, name) {
		return fault{quote(t.text) + " has two variables " + name, "give them two names"}
	}
	t.names = append(t.names, name)
	return fault{}
}

// restWord ends the name of a variable for any rest.
const restWord = "..."

// restVariable returns the name of a segment {name...}.
func (t *templateReader) restVariable(text string) (name string, found bool, f fault) {
	name, found = strings.CutSuffix(text, restWord+"}")
	if !found || name == "" || name[0] != '{' {
		return "", false, fault{}
	}
	return name[1:], true, t.name(name[1:], text[1:len(text)-1])
}

// template compiles segments in the order of their comparison, and what follows them.
func (t *templateReader) template(separator byte, texts []string) (pattern, fault) {
	p := pattern{form: formTemplate, separator: separator}
	if last := len(texts) - 1; last >= 0 {
		name, found, f := t.restVariable(texts[last])
		if f != (fault{}) {
			return pattern{}, f
		}
		glued, starred := strings.CutSuffix(texts[last], "**")
		switch {
		case found:
			p.rest, p.restName = restBelow, name
		case texts[last] == "**", texts[last] == "*" && separator != 0:
			p.rest = restBelow
		case starred && separator == '/' && !isTemplated(glued):
			p.rest, p.restText = restGlued, strings.Clone(glued)
		}
		if p.rest != restNone {
			texts = texts[:last]
		}
	}
	if len(texts) > maxSegments {
		return pattern{}, fault{fmt.Sprintf("has %d segments", len(texts)), fmt.Sprintf("use at most %d", maxSegments)}
	}
	for _, text := range texts {
		if strings.Contains(withoutVariables(text), "**") {
			return pattern{}, t.restFault(separator)
		}
		s, f := t.segment(text)
		if f != (fault{}) {
			return pattern{}, f
		}
		p.segments = append(p.segments, s)
	}
	return p, fault{}
}

// restFault refuses ** in the middle.
func (t *templateReader) restFault(separator byte) fault {
	place := "as the last segment"
	if separator == '.' {
		place = "as the first label"
	}
	f := fault{quote(t.text) + " has ** in the middle", "write ** only " + place}
	if form := expressionOf(t.text, separator); form != "" {
		f.fix = "write " + quote(form)
	}
	return f
}

// expressionOf returns the expression with the meaning of a template that may have ** anywhere, or "".
func expressionOf(text string, separator byte) string {
	rest, one := ".*", "[^"+regexp.QuoteMeta(string(rune(separator)))+"]"
	if separator == 0 {
		one = "."
	}
	var b strings.Builder
	for at := 0; at < len(text); at++ {
		end := -1
		if text[at] == '{' {
			end = matchingBrace(text[at:])
		}
		switch {
		case end >= 0:
			name, expression, constrained := strings.Cut(text[at+1:at+end], ":")
			switch {
			case constrained:
				b.WriteString("(" + expression + ")")
			case strings.HasSuffix(name, restWord):
				b.WriteString(rest)
			default:
				b.WriteString(one + "+")
			}
			at += end
		case separator == '/' && strings.HasPrefix(text[at:], "/**/"):
			b.WriteString("/(.*/)?")
			at += len("/**/") - 1
		case strings.HasPrefix(text[at:], "**"):
			b.WriteString(rest)
			at++
		case text[at] == '*':
			b.WriteString(one + "*")
		default:
			b.WriteString(regexp.QuoteMeta(text[at : at+1]))
		}
	}
	if _, f := checkExpression(textValue, b.String()); f != (fault{}) {
		return ""
	}
	return expressionMark + b.String()
}
