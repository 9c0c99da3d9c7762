package rule

import (
	"regexp"
	"slices"
	"strings"
)

// signFault refuses a text with a sign of another language of patterns, or of a text that is left out. The fix names the form of
// this language that means the same, if there is one.
func signFault(kind textKind, text string) fault {
	what := findSign(kind, text)
	if what == signNone {
		return fault{}
	}
	if what == signNot {
		_, rest := cutSign(kind, text)
		return fault{
			quote(text) + leavesOut, leaveOut(kind, rest) + orExactly(kind, text),
		}
	}
	var forms []string
	for _, form := range [...]string{templateFor(kind, text), expressionFor(kind, text)} {
		if form != "" && len(form) <= quoteLength {
			forms = append(forms, quote(form))
		}
	}
	fix := "write an expression like re:[a-z]+, or one rule for each text"
	if len(forms) > 0 {
		fix = "write " + forms[0]
	}
	return fault{quote(text) + " looks like a pattern of another language", fix + orExactly(kind, text)}
}

// leavesOut ends the problem of a text like "!a".
const leavesOut = " looks like a pattern: a text cannot leave another one out"

// leaveOut says how to leave a text out of a rule.
func leaveOut(kind textKind, rest string) string {
	field := "headers: {NAME: " + quote(rest) + "}"
	switch {
	case kind == textPath:
		field = "path: " + quote("/"+strings.TrimLeft(rest, "/"))
	case kind == textHost:
		field = "hosts: [" + rest + "]"
	case kind == textMethod:
		field = "methods: [" + rest + "]"
	}
	return "add not: {" + field + "} to the match"
}

// orExactly offers the literal of a text that requests can have.
func orExactly(kind textKind, text string) string {
	if kind == textPath && (text[0] != '/' || strings.HasSuffix(text, "/*") || !canRequest(text)) || kind == textHost {
		return ""
	}
	return ", or " + exactly(text)
}

// templateFor returns the template that a text of another language probably means, or "": /:id of Express, <int:id> of Flask,
// [id] and [...rest] of Next.js, /... of commands of Go.
func templateFor(kind textKind, text string) string {
	form := text
	for _, other := range [...][2]string{
		{`/:([A-Za-z_][A-Za-z0-9_]*)`, "/{$1}"},
		{`<(?:[a-z]+:)?([A-Za-z_][A-Za-z0-9_]*)>`, "{$1}"},
		{`/\[\.\.\.([A-Za-z_][A-Za-z0-9_]*)\]$`, "/{$1...}"},
		{`/\[([A-Za-z_][A-Za-z0-9_]*)\]`, "/{$1}"},
		{`/\.\.\.$`, "/**"},
	} {
		if variables, err := regexp.Compile(other[0]); err == nil {
			form = variables.ReplaceAllString(form, other[1])
		}
	}
	return acceptedForm(kind, form, text)
}

// acceptedForm returns a form that differs from the text and has a meaning, or "".
func acceptedForm(kind textKind, form, text string) string {
	if form == text || form == "" || kind == textValue && !isHeaderValue(form) {
		return ""
	}
	if findSign(kind, form) != signNone && !strings.HasPrefix(form, expressionMark) {
		return ""
	}
	if _, f := compilePattern(kind, form); f != (fault{}) {
		return ""
	}
	return form
}

// expressionFor returns the form that an expression of another program probably means, or "". Those programs look for the
// expression anywhere, or from the start with ^.
func expressionFor(kind textKind, text string) string {
	body, searched := text, false
	for {
		what, rest := cutSign(kind, body)
		if what == signNone {
			break
		}
		searched = searched || body[0] == '~'
		if body[0] == '^' || strings.Contains(body[:len(body)-len(rest)], "^") {
			body, searched = "^"+rest, true
			break
		}
		body = rest
	}
	body, begins := strings.CutPrefix(body, "^")
	body, ends := strings.CutSuffix(body, "$")
	if (searched || begins) && !ends && !strings.HasSuffix(body, ".*") {
		body += ".*"
	}
	if (searched || ends) && !begins && !strings.HasPrefix(body, ".*") && kind != textPath {
		body = ".*" + body
	}
	if kind == textPath && !strings.HasPrefix(body, "/") && !strings.HasPrefix(body, ".*") {
		body = "/" + body
	}
	if form := acceptedForm(kind, expressionMark+body, text); form != "" {
		return form
	}
	if plain, is := plainText(body); is {
		return acceptedForm(kind, plain, text)
	}
	return ""
}

// canRequest reports whether a request can have exactly this path.
func canRequest(text string) bool {
	bad, _ := faultyPathText(text)
	return bad == "" && checkLiteralPath(text) == (fault{})
}

// FaultyPathText returns the first part of the path of a rule that no request has after the proxy has cleaned its path, and its position: a
// control character, a backslash, or a segment like "..;". It returns "" if there is none, and for what NewIndex refuses as a pattern of
// another language.
func FaultyPathText(text string) (bad string, at int) {
	literal, marked := cutLiteral(text)
	switch {
	case marked:
		bad, at = faultyPathText(literal)
		return bad, at + len(text) - len(literal)
	case strings.HasPrefix(text, expressionMark) || signFault(textPath, text) != (fault{}):
		return "", 0
	default:
		return faultyPathText(withoutVariables(text))
	}
}

func faultyPathText(text string) (bad string, at int) {
	if at = strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }); at >= 0 {
		return text[at : at+1], at
	}
	at = 0
	for segment := range strings.SplitSeq(text, "/") {
		if name, _, parameters := strings.Cut(segment, ";"); parameters && (name == "." || name == "..") {
			return name + ";", at
		}
		at += len(segment) + len("/")
	}
	return "", 0
}

// exactly says how to write a literal.
func exactly(text string) string {
	return quote(literalMark+text) + " for exactly this text"
}

// emptyLiteral is the fault of a mark without a text.
func emptyLiteral() fault {
	return fault{"has no text after =", `write "==" for the text =`}
}

// namePatternFault refuses a name of a header, a cookie, a claim or an entry that looks like a pattern.
func namePatternFault(name string) fault {
	if findSign(textName, name) == signNone {
		return fault{}
	}
	return fault{"name " + quote(name) + " looks like a pattern", "write the whole name"}
}

// namePatternText refuses a text without patterns that looks like one. fix names what works.
func namePatternText(kind textKind, text, fix string) fault {
	if findSign(kind, text) == signNone {
		return fault{}
	}
	return fault{quote(text) + " looks like a pattern, which is not supported here", fix + ", or " + exactly(text)}
}

const everyMethod = "leave methods out for every method"

// methodWords returns what looks like methods in a text like "GET|POST".
func methodWords(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("|, ()/^$~", c) })
}

// methodPatternFault refuses what looks like several methods, or like none.
func methodPatternFault(text string) fault {
	what, rest := cutSign(textName, text)
	switch words := methodWords(text); {
	case what == signNot:
		return fault{
			quote(text) + leavesOut,
			leaveOut(textMethod, rest) + ", or list the methods that count, like [GET, POST]",
		}
	case strings.Trim(text, "*.") == "" || slices.Contains([]string{"ANY", "ALL"}, strings.ToUpper(text)):
		return fault{quote(text) + " is no method", everyMethod + ", or list the methods, like [GET, POST]"}
	case len(words) > 1 && !slices.ContainsFunc(words, func(word string) bool { return faultyTokenByte(word) >= 0 }):
		return fault{quote(text) + " is not one method", "write [" + strings.Join(methodForms(words), ", ") + "]"}
	case what != signNone:
		return fault{
			quote(text) + " looks like a pattern of another language", "write a method like " + nearestMethod(rest) + "; " + everyMethod,
		}
	default:
		return fault{}
	}
}

// methodForms returns words in the forms that methods of a rule have, each once.
func methodForms(words []string) []string {
	var forms []string
	for _, word := range words {
		if upper := strings.ToUpper(word); slices.Contains(knownMethodNames[:], upper) {
			word = upper
		} else {
			word = literalMark + word
		}
		if !slices.Contains(forms, word) {
			forms = append(forms, word)
		}
	}
	return forms
}

// nearestMethod returns the method that text probably means, and GET if there is none.
func nearestMethod(text string) string {
	if near := Nearest(strings.Trim(text, "^$"), knownMethodNames[:]); near != "" {
		return near
	}
	return "GET"
}
