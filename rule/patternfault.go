package rule

import (
	"fmt"
	"slices"
	"strings"
)

// pathPatternFault says which path works in place of what looks like a pattern.
func pathPatternFault(pattern string) fault {
	what, _ := findSign(textPath, pattern)
	if what == signNone {
		return fault{}
	}
	var fix string
	switch works := patternBelow(pattern); {
	case what == signNot:
		fix = "write one rule for each path that counts"
	case what == signChoice:
		fix = "write one rule for each path"
	case works == "/*":
		fix = `write "/*" for every path`
	case strings.HasSuffix(works, "/*"):
		fix = fmt.Sprintf("write %q, which matches %s and all paths below it", works, strings.TrimSuffix(works, "/*"))
	default:
		fix = "write " + quote(works)
	}
	if pattern[0] == '/' && !strings.HasSuffix(pattern, "/*") && canRequest(pattern) {
		fix += ", or " + quote(literalMark+pattern) + " for exactly this path"
	}
	return fault{quote(pattern) + " looks like a pattern, and paths have only /* at their end", fix}
}

// canRequest reports whether a request can have exactly this path.
func canRequest(text string) bool {
	bad, _ := FaultyPathText(text)
	return bad == "" && checkLiteralPath(text) == (fault{})
}

// FaultyPathText returns the first part of a path that no request has after the proxy has cleaned its path, and its position: a control
// character, a backslash, or a segment like "..;". It returns "" if there is none.
func FaultyPathText(text string) (bad string, at int) {
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

// IsPathPattern reports whether a path looks like a pattern that paths of rules do not have. "/search/*" does not.
func IsPathPattern(path string) bool {
	if _, marked := cutLiteral(path); marked {
		return false
	}
	what, _ := findSign(textPath, strings.TrimSuffix(path, "/*"))
	return what != signNone
}

// valuePatternFault says how to write what looks like a pattern. fix names the forms that work.
func valuePatternFault(kind textKind, value, fix string) fault {
	if what, _ := findSign(kind, value); what == signNone {
		return fault{}
	}
	return fault{quote(value) + " looks like a pattern, which is not supported here", fix + ", or " + exactly(value)}
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
	if what, _ := findSign(textName, name); what == signNone {
		return fault{}
	}
	return fault{"name " + quote(name) + " looks like a pattern", "write the whole name"}
}

// methodPatternFault refuses what looks like several methods, or like none.
func methodPatternFault(text string) fault {
	const every = "leave methods out for every method"
	what, rest := cutSign(textName, text)
	split := func(c rune) bool { return strings.ContainsRune("|, ()/^$~", c) }
	switch words := strings.FieldsFunc(text, split); {
	case what == signNot:
		return fault{
			quote(text) + " looks like a pattern: a rule cannot leave a method out", "list the methods that count, like [GET, POST]",
		}
	case strings.ContainsAny(text, "*.") || slices.Contains([]string{"ANY", "ALL"}, strings.ToUpper(text)):
		return fault{quote(text) + " is no method", every + ", or list the methods, like [GET, POST]"}
	case len(words) > 1 && !slices.ContainsFunc(words, func(word string) bool { return faultyTokenByte(word) >= 0 }):
		return fault{quote(text) + " is not one method", "write [" + strings.Join(methodForms(words), ", ") + "]"}
	case what != signNone:
		return fault{
			quote(text) + " looks like a pattern, and methods have none", "write a method like " + nearestMethod(rest) + "; " + every,
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
