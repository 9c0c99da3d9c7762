package rule

import "strings"

// wildcardWord begins a wildcard of a tree in which only * has a meaning.
const wildcardWord = "wildcard:"

// ParseTreeName parses the name of a domain, or the key of an entry, of a configuration. A name that looks like a
// pattern is written with a mark, like "=shop*". The error is a *ParseError.
func ParseTreeName(text string) (string, error) {
	literal, marked := cutLiteral(text)
	f := namePatternText(textName, text, "write each name in full")
	switch {
	case marked && literal == "":
		f = emptyLiteral()
	case marked:
		return literal, nil
	}
	if f != (fault{}) {
		return "", &ParseError{Problem: f.problem, Fix: f.fix}
	}
	return text, nil
}

// FormatTreeName returns the text for which ParseTreeName returns name.
func FormatTreeName(name string) string {
	if findSign(textName, name) != signNone || strings.HasPrefix(name, literalMark) {
		return literalMark + name
	}
	return name
}

// ParseTreeValue parses the value of an entry in a tree of a configuration. A * in it is a wildcard, unless literal is
// set. A literal that looks like another pattern is written with a mark, like "=/api/{id}", and a wildcard with a word,
// like "wildcard:/api/{id}/*". The error is a *ParseError.
func ParseTreeValue(text string) (value string, literal bool, err error) {
	if rest, marked := cutLiteral(text); marked {
		if rest == "" {
			f := emptyLiteral()
			return "", false, &ParseError{Problem: f.problem, Fix: f.fix}
		}
		return rest, strings.Contains(rest, "*"), nil
	}
	star := strings.Contains(text, "*")
	if rest, marked := strings.CutPrefix(text, wildcardWord); marked && star {
		return rest, false, nil
	}
	switch {
	case !hasOtherSign(text):
		return text, false, nil
	case star:
		return "", false, &ParseError{
			Problem: quote(text) + " looks like a pattern, and only * is a wildcard here",
			Fix:     "write " + quote(wildcardWord+text) + " to take all other characters as they are, or " + exactly(text),
		}
	default:
		return "", false, &ParseError{
			Problem: quote(text) + " looks like a pattern, and only * is a wildcard here",
			Fix:     "write a * in place of the part that differs, or " + exactly(text),
		}
	}
}

// FormatTreeValue returns the text for which ParseTreeValue returns value and literal.
func FormatTreeValue(value string, literal bool) string {
	star := strings.Contains(value, "*")
	switch {
	case star && literal, !star && (hasOtherSign(value) || strings.HasPrefix(value, literalMark)):
		return literalMark + value
	case star && (hasOtherSign(value) || strings.HasPrefix(value, literalMark)):
		return wildcardWord + value
	default:
		return value
	}
}

// hasOtherSign reports whether a value has a sign of a pattern other than *.
func hasOtherSign(text string) bool {
	if what, _ := cutSign(textTree, text); what != signNone {
		return true
	}
	for at := range len(text) {
		if what := signAt(textTree, text, at); what != signNone && what != signStar {
			return true
		}
	}
	return false
}
