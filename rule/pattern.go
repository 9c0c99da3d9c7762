package rule

import "strings"

// literalMark begins a text that is taken as written: "=/api/{id}" is the path /api/{id}, and "==a" is
// the value =a. A text with such a mark is never a pattern.
const literalMark = "="

// cutLiteral removes the mark of a literal.
func cutLiteral(text string) (literal string, marked bool) {
	return strings.CutPrefix(text, literalMark)
}

// patternWords begin a pattern. This package reads none of them. They stay reserved, so that a text
// never means a literal in one version and a pattern in a later one.
var patternWords = [...]string{"re:", "regex:", "regexp:", "glob:", "wildcard:"}

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
	textName  textKind = iota // the name of a client, an entry or a domain
	textValue                 // of a header or an entry
	textPath
)

// anyMedia is the usual value of the header Accept, and no pattern.
const anyMedia = "*/*"

// findSign returns the first sign of a pattern in a text, and its position.
func findSign(kind textKind, text string) (what sign, at int) {
	if kind == textValue && text == anyMedia || kind != textPath && len(text) == 1 && text != "*" {
		return signNone, 0 // A single sign has nothing to compare.
	}
	if what, _ = cutSign(kind, text); what != signNone {
		return what, 0
	}
	for at = range len(text) {
		if what = signAt(kind, text, at); what != signNone {
			return what, at
		}
	}
	return signNone, 0
}

// cutSign removes a sign from the beginning of a text.
func cutSign(kind textKind, text string) (what sign, rest string) {
	if rest, found := strings.CutPrefix(text, "!"); found {
		return signNot, rest
	}
	if len(text) >= len(notWord) && strings.EqualFold(text[:len(notWord)], notWord) {
		return signNot, text[len(notWord):]
	}
	for _, word := range patternWords {
		if len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) {
			return signOther, text[len(word):]
		}
	}
	if rest := strings.TrimLeft(text, "~^"); rest != text {
		return signOther, strings.TrimLeft(rest, "* ^")
	}
	if kind == textValue && (strings.HasPrefix(text, "<") || strings.HasPrefix(text, ">")) {
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
	case c == '*':
		return signStar
	case c == '{' && strings.Contains(next, "}"):
		return signOther
	case kind == textName:
		return signNone
	case c == '|':
		return signChoice
	case c == '[' && strings.Contains(next, "]"), c == '\\' && isEscape(next), c == '.' && beginsWith(next, "+?"),
		c == ')' && beginsWith(next, "+?{"), c == '(' && isGroup(next), c == '$' && next == "" && at > 0:
		return signOther
	case c == '?' && kind == textValue && !strings.Contains(text, "/"):
		return signOther
	case strings.HasPrefix(text, "/") && isTemplate(text, at):
		return signOther
	default:
		return signNone
	}
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

// patternBelow returns the pattern of a path that contains all paths that a text probably means.
func patternBelow(text string) string {
	open := false // A regular expression without $ at its end matches longer paths too.
	for {
		what, rest := cutSign(textPath, text)
		if what == signNone {
			break
		}
		text, open = rest, true
	}
	if !strings.HasPrefix(text, "/") {
		text = "/" + text
	}
	what, at := findSign(textPath, text)
	switch {
	case what == signNone && !open:
		return text
	case what == signNone:
		text = strings.TrimRight(text, "/")
	case strings.Trim(text[at:], "$") == "" && isPlain(text[:at], pathExact):
		return text[:at]
	case what != signStar || strings.Trim(text[at:], "*$") != "": // The segment with the sign is not known.
		text = text[:strings.LastIndexByte(text[:at+1], '/')]
	default:
		text = strings.TrimRight(text[:at], "/.")
	}
	if isPlain(text, pathPrefix) {
		return text + "/*"
	}
	return "/*"
}

// isPlain reports whether a path has no sign of a pattern, and requests may have it.
func isPlain(text string, kind pathKind) bool {
	if text == "" {
		return false
	}
	what, _ := findSign(textPath, text)
	bad, _ := FaultyPathText(text)
	return what == signNone && bad == "" && checkPlainPath(text, text, kind) == (fault{})
}
