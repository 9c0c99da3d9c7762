package rule

import (
	"slices"
	"strings"
)

// readOverride checks a value of a text part and converts it to the form of requests.
// A value that no request can have is a fault.
func readOverride(kind partKind, value string) (string, fault) {
	switch {
	case kind == partNone:
		return "", fault{"belongs to an empty part", "use ParsePart"}
	case kind == partAll:
		return "", fault{quote(value) + " cannot override the part all, which has no values", "remove overrides, or use another key"}
	case value == "":
		return "", fault{"is empty", "write the value that requests send"}
	case kind == partMethod:
		literal, _ := cutLiteral(value)
		return literal, checkOneMethod(value)
	case kind == partHost:
		return readHost(value)
	case kind == partPath:
		literal, _ := cutLiteral(value)
		return literal, checkOnePath(value)
	case kind == partHostName:
		return strings.ToLower(value), fault{}
	case kind == partRegion:
		return value, checkRegion(value)
	case kind == partCookie:
		return readCookie(value)
	case kind == partHeader && !isHeaderValue(value):
		return "", fault{quote(value) + " is not a valid header value", "remove line breaks and the space around the value"}
	default:
		return value, fault{}
	}
}

// readMany reads a value that may be a pattern. text is the form of requests if the pattern is a literal.
func readMany(kind partKind, value string) (p pattern, text string, f fault) {
	p, f = compilePattern(kind.textKind(), value)
	if _, one := p.literal(); f != (fault{}) || !one {
		return p, "", f
	}
	if kind.textKind() == textValue {
		value, _ = cutLiteral(value)
	}
	text, f = readOverride(kind, value)
	return p, text, f
}

// overrideFault changes the fix of a faulty text for an override, which is one pattern. The fix for a text of a match may name
// lists and other fields of the match.
func overrideFault(kind partKind, value string, f fault) fault {
	if what, rest := cutSign(kind.textKind(), value); what == signNot {
		return fault{quote(value) + leavesOut, leaveOutOfOverrides(kind, value, rest)}
	}
	switch kind.textKind() {
	case textPath:
		if _, path, found := CutMethod(value); found {
			f.fix = "write " + quote(path)
		}
	case textHost:
		f.fix = strings.TrimSuffix(f.fix, orListHosts)
		if strings.HasSuffix(f.fix, everyHost) {
			f.fix = "write a host like api.example.com"
		}
	case textMethod:
		f.fix = overrideMethodFix(value, f.fix)
	default:
	}
	return f
}

// leaveOutOfOverrides says how to give all values but one the same limits.
func leaveOutOfOverrides(kind partKind, value, rest string) string {
	const others = "the rule's limits apply to all other values: "
	form := rest
	switch kind.textKind() {
	case textPath:
		form = "/" + strings.TrimLeft(rest, "/")
	case textMethod:
		form = methodForms([]string{rest})[0]
	default:
	}
	fix := others + "write " + quote(form) + " with limits of its own"
	if _, _, f := readMany(kind, form); f != (fault{}) || len(form) > quoteLength {
		fix = others + "write the values that have limits of their own"
	}
	if kind.textKind() != textMethod && len(value) < quoteLength {
		fix += orExactly(kind.textKind(), value)
	}
	return fix
}

// overrideMethodFix changes the fix of a faulty method. Several known methods are an expression.
func overrideMethodFix(value, fix string) string {
	words := methodForms(methodWords(value))
	several := len(words) > 1
	for _, word := range words {
		several = several && slices.Contains(knownMethodNames[:], word)
	}
	if several {
		if form := expressionMark + strings.Join(words, "|"); len(form) <= quoteLength {
			return "write " + quote(form)
		}
	}
	fix = strings.TrimSuffix(fix, "; "+everyMethod)
	if strings.HasPrefix(fix, everyMethod) || strings.HasPrefix(fix, "write [") {
		return "write a method like GET"
	}
	return fix
}

// readCookie converts the value to the form in which keys have it. A value without one is that of no request.
func readCookie(value string) (string, fault) {
	form := CookieForm(value)
	if form == "" {
		return "", fault{quote(value) + " is no value of a cookie", "write the value that requests send, with more than blanks and quotes"}
	}
	return form, fault{}
}

func checkOneMethod(value string) fault {
	const fix = "write a method like GET"
	if faultyTokenByte(strings.TrimPrefix(value, literalMark)) >= 0 {
		return fault{quote(value) + " is not a valid method", fix}
	}
	if _, marked := cutLiteral(value); !marked {
		if f := methodPatternFault(value); f != (fault{}) {
			return fault{f.problem, fix} // It names lists, which no override has.
		}
	}
	return checkMethod(value)
}

// readHost converts the host to the spelling of requests.
func readHost(value string) (string, fault) {
	const fix = "write one host, like api.example.com"
	p, f := compileHost(value)
	literal, one := p.literal()
	switch {
	case strings.Contains(value, "*") || f == (fault{}) && !one:
		return "", fault{quote(value) + " is more than one host", fix}
	case strings.Contains(f.fix, "*.") || strings.Contains(f.fix, expressionMark):
		f.fix = fix
	}
	return literal, f
}

func checkOnePath(value string) fault {
	p, f := compilePath(value)
	if _, one := p.literal(); one && f == (fault{}) {
		return fault{}
	}
	if findSign(textPath, value) == signNone && !isTemplated(value) && f != (fault{}) {
		return f
	}
	fix := "write one path, like /v1/product"
	if canRequest(value) {
		fix += ", or " + exactly(value)
	}
	return fault{quote(value) + " is more than one path", fix}
}

// ParseValue parses the value of a part that a configuration writes by hand. A value that looks like a pattern is written with a
// mark, like "=free*". NewOverrides gets the result. The error is a *ParseError.
func (p Part) ParseValue(text string) (string, error) {
	if p.isAddress() || p.kind == partMethod || p.kind == partHost || p.kind == partPath {
		return text, nil // NewOverrides reads these.
	}
	return ParseTreeName(text)
}

// checkRegion refuses codes in lower case. checkRegion does not know the codes of the Regions.
func checkRegion(value string) fault {
	isLetter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	if upper := strings.ToUpper(value); len(value) == 2 && isLetter(value[0]) && isLetter(value[1]) && value != upper {
		return fault{quote(value) + " is never found: region codes are in upper case", "write " + quote(upper)}
	}
	return fault{}
}
