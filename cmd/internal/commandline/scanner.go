package commandline

import (
	"fmt"
	"strings"
)

// kind says what a word of the command line is.
type kind string

const (
	untyped     kind = "untyped"
	endOfLine   kind = "<EOL>"
	longFlag    kind = "long flag"
	flagValue   kind = "flag value" // After = or from a variable.
	shortFlag   kind = "short flag"
	shortTail   kind = "short flag remainder" // What follows the letter of a short flag in its word.
	positionals kind = "positional argument"
)

type token struct {
	text string
	kind kind
}

func (t token) String() string {
	switch t.kind {
	case longFlag:
		return "--" + t.text
	case shortFlag:
		return "-" + t.text
	case endOfLine:
		return "EOL"
	default:
		return t.text
	}
}

// inferred returns the kind that an untyped word looks like.
func (t token) inferred() kind {
	switch {
	case t.kind != untyped:
		return t.kind
	case strings.HasPrefix(t.text, "--"):
		return longFlag
	case t.text == "-":
		return positionals
	case strings.HasPrefix(t.text, "-"):
		return shortFlag
	}
	return untyped
}

func (t token) isValue() bool {
	switch t.inferred() {
	case flagValue, shortTail, positionals, untyped:
		return true
	default:
		return false
	}
}

// scanner has the words of a command line that are not read yet.
type scanner struct{ tokens []token }

func newScanner(words []string) *scanner {
	s := &scanner{}
	for _, word := range words {
		s.tokens = append(s.tokens, token{word, untyped})
	}
	return s
}

func (s *scanner) peek() token {
	if len(s.tokens) == 0 {
		return token{kind: endOfLine}
	}
	return s.tokens[0]
}

func (s *scanner) pop() token {
	t := s.peek()
	s.tokens = s.tokens[min(1, len(s.tokens)):]
	return t
}

func (s *scanner) push(text string, kind kind) {
	s.tokens = append([]token{{text, kind}}, s.tokens...)
}

// expectedError says that a flag stands where a value has to.
type expectedError struct {
	value string
	token token
}

func (e *expectedError) Error() string {
	return fmt.Sprintf("expected %s value but got %q (%s)", e.value, e.token, e.token.inferred())
}

func (s *scanner) popValue(value string) (token, error) {
	t := s.pop()
	if !t.isValue() && (value == "string" || !t.isNegative()) {
		return t, &expectedError{value, t}
	}
	return t, nil
}

// isNegative reports that the word can be a number below 0: no flag has a digit as its letter.
func (t token) isNegative() bool {
	const least = len("-1")
	return t.kind == untyped && len(t.text) >= least && t.text[0] == '-' && '0' <= t.text[1] && t.text[1] <= '9'
}

// classify replaces the next word by its tokens, with their kinds.
func (s *scanner) classify() {
	t := s.pop()
	switch {
	case t.text == "--": // All words after it are arguments.
		for i := range s.tokens {
			s.tokens[i].kind = positionals
		}
	case strings.HasPrefix(t.text, "--"):
		name, value, has := strings.Cut(t.text[2:], "=")
		if has {
			s.push(value, flagValue)
		}
		s.push(name, longFlag)
	case strings.HasPrefix(t.text, "-") && t.text != "-":
		s.pushShort(t.text[1:])
	default:
		s.push(t.text, positionals)
	}
}

func (s *scanner) pushShort(letters string) {
	if letters[1:] != "" {
		s.push(letters[1:], shortTail)
	}
	s.push(letters[:1], shortFlag)
}
