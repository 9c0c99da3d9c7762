package rule

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// compilePath compiles the path of a rule, and refuses patterns that match no request. The path of a request is decoded and cleaned,
// and has no query.
func compilePath(text string) (pattern, fault) {
	if literal, marked := cutLiteral(text); marked {
		return pattern{text: strings.Clone(literal), separator: '/'}, checkLiteralPath(literal)
	}
	if text == "" || text == "/*" || text == "/**" {
		return pattern{form: formAny, separator: '/'}, fault{}
	}
	if expression, marked := strings.CutPrefix(text, expressionMark); marked {
		e, f := checkExpression(textPath, expression)
		return pattern{form: formExpression, separator: '/', expression: e}, f
	}
	plain := withoutVariables(text)
	if f := checkPathBegin(text); f != (fault{}) {
		return pattern{}, f
	}
	if f := braceFault(text, plain); f != (fault{}) {
		return pattern{}, f
	}
	prefix, below := cutBelow(plain)
	if f := checkPlainPath(text, prefix, below); f != (fault{}) {
		return pattern{}, f
	}
	if prefix = text[:len(prefix)]; !isTemplated(prefix) {
		p := pattern{text: strings.Clone(prefix), separator: '/'}
		if below {
			p.form = formBelow
		}
		return p, fault{}
	}
	if slashed, ended := strings.CutSuffix(text, "{$}"); ended && strings.HasSuffix(slashed, "/") {
		return compilePath(slashed) // It ends a path of Go's mux that is not a prefix.
	}
	t := templateReader{text: text}
	return t.template('/', splitSegments(text[1:], '/'))
}

// cutBelow removes the end of a path that stands for all paths below it.
func cutBelow(plain string) (prefix string, below bool) {
	if prefix, below = strings.CutSuffix(plain, "/**"); below {
		return prefix, true
	}
	return strings.CutSuffix(plain, "/*")
}

// checkPathBegin refuses signs of other languages, and paths that do not begin with a slash.
func checkPathBegin(text string) fault {
	if method, path, found := CutMethod(text); found {
		return fault{quote(text) + " begins with a method", "write " + quote(path) + ", and " + method + " as a method"}
	}
	if text[0] == '*' {
		fix := `write "/*" for every path`
		if form := expressionOf("/**"+strings.TrimLeft(text, "*"), '/'); strings.Trim(text, "*/") != "" && form != "" {
			fix = "write " + quote(form)
		}
		return fault{quote(text) + " does not begin with /", fix}
	}
	if f := signFault(textPath, text); f != (fault{}) {
		return f
	}
	if text[0] != '/' {
		return fault{quote(text) + " does not begin with /", "write " + quote("/"+text)}
	}
	return fault{}
}

// braceFault refuses a brace without a partner: a literal one is probably a variable that was misspelled.
func braceFault(text, plain string) fault {
	at := strings.IndexAny(plain, "{}")
	if at < 0 {
		return fault{}
	}
	if plain[at] == '}' {
		return fault{quote(text) + " has a } without a {", "write one like {id}, or " + exactly(text)}
	}
	end := len(text)
	if slash := strings.IndexByte(text[at:], '/'); slash >= 0 {
		end = at + slash
	}
	fix := exactly(text)
	if form := text[:end] + "}" + text[end:]; acceptedForm(textPath, form, text) != "" {
		fix = quote(form) + ", or " + fix
	}
	return fault{quote(text) + " has a { without a }", "write " + fix}
}

// CutMethod cuts a pattern of Go's ServeMux that begins with a method, like "GET /users/{id}".
func CutMethod(text string) (method, path string, found bool) {
	method, path, found = strings.Cut(text, " ")
	path = strings.TrimLeft(path, " \t")
	if !found || !strings.HasPrefix(path, "/") || !slices.Contains(knownMethodNames[:], method) {
		return "", text, false
	}
	return method, path, true
}

// checkLiteralPath checks the text behind the mark of a literal.
func checkLiteralPath(literal string) fault {
	switch {
	case literal == "":
		return fault{"has no path after =", `write the path, like "=/a*b"`}
	case literal[0] != '/':
		return fault{quote(literalMark+literal) + " does not begin with /", "write " + quote(literalMark+"/"+literal)}
	}
	return checkPlainPath(literal, literal, false)
}

// checkPlainPath refuses paths that no request has. plain is the pattern without variables and without its end for paths below it.
func checkPlainPath(pattern, plain string, below bool) fault {
	switch {
	case len(pattern) > maxPath:
		return fault{fmt.Sprintf("is %d bytes long", len(pattern)), fmt.Sprintf("use at most %d", maxPath)}
	case below && strings.Count(plain, "/") > maxSegments:
		return fault{fmt.Sprintf("is a prefix of %d segments", strings.Count(plain, "/")), fmt.Sprintf("use at most %d", maxSegments)}
	case strings.ContainsAny(plain, "?#"):
		return fault{quote(pattern) + " has a query or a fragment", "end the path before ? and #"}
	case hasEscape(plain):
		return fault{quote(pattern) + " is percent-encoded", "write it decoded, as in /a b for /a%20b"}
	case isUnclean(plain, below):
		return fault{quote(pattern) + " has an empty, . or .. segment", "write the cleaned path: " + quote(path.Clean(pattern))}
	}
	return fault{}
}

// hasEscape reports whether plain has a % with two hexadecimal digits.
func hasEscape(plain string) bool {
	for i := 0; i+2 < len(plain); i++ {
		if plain[i] == '%' && isHex(plain[i+1]) && isHex(plain[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// isUnclean reports whether plain has segments that cleaning removes. An exact path may
// end in a slash.
func isUnclean(plain string, below bool) bool {
	segments := strings.Split(plain[1:], "/")
	for i, segment := range segments {
		mayBeEmpty := !below && i == len(segments)-1
		if segment == "." || segment == ".." || segment == "" && !mayBeEmpty {
			return true
		}
	}
	return false
}
