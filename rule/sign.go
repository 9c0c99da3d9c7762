package rule

import "strings"

// literalMark begins a text that is taken as written: "=/api/{id}" is the path /api/{id}, and "==a" is
// the value =a. A text with such a mark is never a pattern.
const literalMark = "="

// cutLiteral removes the mark of a literal.
func cutLiteral(text string) (literal string, marked bool) {
	return strings.CutPrefix(text, literalMark)
}

// signWords begin patterns of other programs, and expressionMark one of this package.
var signWords = [...]string{expressionMark, "regex:", "regexp:", "glob:", "wildcard:"}

const notWord = "not:"

// sign is what makes a text look like a pattern.
type sign uint8

const (
	signNone   sign = iota
	signNot         // "!a", "not:a"
	signChoice      // "a|b"
	signStar        // "a*"
	signOther       // a template, or a regular expression
)

// textKind says where a text stands. What is a pattern in a path may be usual in a name.
type textKind uint8

const (
	textName  textKind = iota // the name of a client, an entry or a domain: it has no patterns
	textTree                  // the value of an entry in a tree, in which * is the only pattern
	textValue                 // of a header or an entry
	textPath
	textHost
	textMethod
)

// templated reports whether * and {name} have a meaning in texts of the kind.
func (k textKind) templated() bool { return k >= textValue }

// anyMedia is the usual value of the header Accept, and no pattern.
const anyMedia = "*/*"

// findSign returns the first sign of a pattern without a meaning in a text.
func findSign(kind textKind, text string) sign {
	if kind.templated() {
		text = withoutVariables(text)
	}
	if kind == textValue && text == anyMedia || kind != textPath && len(text) == 1 && text != "*" {
		return signNone // A single sign has nothing to compare.
	}
	if what, _ := cutSign(kind, text); what != signNone {
		return what
	}
	for at := range len(text) {
		if what := signAt(kind, text, at); what != signNone {
			return what
		}
	}
	return signNone
}

// cutSign removes a sign from the beginning of a text.
func cutSign(kind textKind, text string) (what sign, rest string) {
	if rest, found := strings.CutPrefix(text, "!"); found {
		return signNot, rest
	}
	if len(text) >= len(notWord) && strings.EqualFold(text[:len(notWord)], notWord) {
		return signNot, text[len(notWord):]
	}
	for _, word := range signWords {
		if len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) {
			return signOther, text[len(word):]
		}
	}
	if rest := strings.TrimLeft(text, "~^"); rest != text {
		return signOther, strings.TrimLeft(rest, "* ^")
	}
	if kind != textName && kind != textPath && (strings.HasPrefix(text, "<") || strings.HasPrefix(text, ">")) {
		return signOther, text[1:]
	}
	if kind == textPath {
		return cutPathSign(text)
	}
	return signNone, text
}

// cutPathSign removes a sign that follows the first slash, as in "/!/healthz" and "/~^/api". The path
// /~alice is usual.
func cutPathSign(text string) (what sign, rest string) {
	rest, found := strings.CutPrefix(text, "/")
	if !found || rest == "" {
		return signNone, text
	}
	home := strings.TrimPrefix(rest, "~")
	if home != rest && strings.IndexAny(home, "^* ~/") != 0 {
		return signNone, text
	}
	return cutSign(textValue, rest)
}

// signAt returns the sign at a position behind the beginning.
func signAt(kind textKind, text string, at int) sign {
	next := text[at+1:]
	switch c := text[at]; {
	case c == '*' && !kind.templated():
		return signStar
	case c == '{' && strings.Contains(next, "}") && !kind.templated():
		return signOther
	case kind == textName:
		return signNone
	case c == '.' && beginsWith(next, "*") && !isDotOfText(kind, text[:at]):
		return signOther
	case c == '|':
		return signChoice
	case c == '[' && strings.Contains(next, "]"), c == '\\' && isEscape(next), c == '.' && beginsWith(next, "+?"),
		c == ')' && beginsWith(next, "+?{"), c == '(' && isGroup(next), c == '$' && next == "" && at > 0:
		return signOther
	case c == '?' && kind != textPath && !strings.Contains(text, "/"):
		return signOther
	case strings.HasPrefix(text, "/") && isTemplate(text, at):
		return signOther
	default:
		return signNone
	}
}

// isDotOfText reports whether the dot of ".*" is one of a name, as in "index.*" and "*.*". The dot of a regular expression stands
// for any character.
func isDotOfText(kind textKind, before string) bool {
	if before == "" {
		return false
	}
	c := before[len(before)-1]
	return isLetter(c) || isDigit(c) || c == '*' && kind.templated()
}

func beginsWith(text, characters string) bool {
	return text != "" && strings.IndexByte(characters, text[0]) >= 0
}

// isEscape reports whether a backslash begins a class like \d+, or escapes a character like \. does.
func isEscape(next string) bool {
	if beginsWith(next, ".^$*+?()[]{}|/-") {
		return true
	}
	return beginsWith(next, "dDwWsSbB") && (len(next) == 1 || !isLetter(next[1]) && !isDigit(next[1]))
}

// isGroup reports whether a parenthesis encloses a choice or a repetition, or begins an option: (a|b), (.*), (?i). The + in
// "(compatible; +http://a.example)" repeats nothing.
func isGroup(next string) bool {
	group, _, closed := strings.Cut(next, ")")
	if beginsWith(next, "?") || !closed {
		return beginsWith(next, "?")
	}
	for i := range len(group) {
		repeats := i == len(group)-1 || i > 0 && strings.IndexByte(".])", group[i-1]) >= 0
		if c := group[i]; c == '|' || (c == '*' || c == '+') && repeats {
			return true
		}
	}
	return false
}

// isTemplate reports whether a segment of a path is a name in place of a value: /:id, /<id>, /... at its end.
func isTemplate(text string, at int) bool {
	next := text[at+1:]
	switch text[at] {
	case '<':
		return strings.Contains(next, ">")
	case '/':
		return next == "..." || len(next) > 1 && next[0] == ':' && (isLetter(next[1]) || next[1] == '_')
	default:
		return false
	}
}
