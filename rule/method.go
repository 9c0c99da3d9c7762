package rule

import (
	"slices"
	"strings"
)

// knownMethodNames are the methods that a rule may name without a mark: those of the registry of the IANA, and QUERY and
// PURGE, which caches use.
var knownMethodNames = [...]string{
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", // These nine come first: see Nearest.
	"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "LOCK", "MERGE", "MKACTIVITY",
	"MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PRI", "PROPFIND", "PROPPATCH", "REBIND",
	"REPORT", "SEARCH", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
	"QUERY", "PURGE",
}

// ParseMethod parses a method of a configuration. A method that is not known is written with a mark, like =BREW. The error is a
// *ParseError.
func ParseMethod(text string) (string, error) {
	if f := checkMethod(text); f != (fault{}) {
		return "", &ParseError{Problem: f.problem, Fix: f.fix}
	}
	method, _ := cutLiteral(text)
	return method, nil
}

// compileMethod compiles a method. A pattern that matches GET also matches HEAD in a rule: see conditions.
func compileMethod(text string) (pattern, fault) {
	if expression, marked := strings.CutPrefix(text, expressionMark); marked {
		e, f := checkExpression(textMethod, expression)
		return pattern{form: formExpression, expression: e}, f
	}
	if findSign(textMethod, text) == signNone && isGlob(text) && faultyTokenByte(text) < 0 {
		return compileOne(text)
	}
	literal, _ := cutLiteral(text)
	return pattern{text: literal}, checkMethod(text)
}

// isGlob reports whether a text has a * and something else.
func isGlob(text string) bool { return strings.Contains(text, "*") && strings.Trim(text, "*") != "" }

func checkMethod(text string) fault {
	const fix = "write a method like GET; " + everyMethod
	literal, marked := cutLiteral(text)
	upper := strings.ToUpper(text)
	switch {
	case text == "":
		return fault{"is empty", fix}
	case marked && (literal == "" || faultyTokenByte(literal) >= 0):
		return fault{quote(text) + " is not a valid method", fix}
	case marked || slices.Contains(knownMethodNames[:], text):
		return fault{}
	}
	if f := methodPatternFault(text); f != (fault{}) {
		return f
	}
	switch near := Nearest(text, knownMethodNames[:]); {
	case faultyTokenByte(text) >= 0:
		return fault{quote(text) + " is not a valid method", fix}
	case slices.Contains(knownMethodNames[:], upper):
		return fault{quote(text) + " is never sent: methods are case-sensitive", "write " + upper}
	case near != "":
		return fault{
			quote(text) + " is not a known method",
			"did you mean " + near + "? If clients send exactly this, write " + quote(literalMark+text),
		}
	default:
		return fault{quote(text) + " is not a known method", "if clients send it, write " + quote(literalMark+text)}
	}
}
