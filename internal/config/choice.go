package config

import (
	"strings"

	"github.com/headgate/headgate/rule"
)

// choice is a word that a field may have. If instead is set, the word is planned but not
// supported yet: instead is the advice for now. If known is set, the word is a common
// synonym of the word known. If why is set, the word is never valid here, for that reason, and instead
// is the advice.
type choice[T any] struct {
	word    string
	value   T
	instead string
	known   string
	why     string
}

// oneOf reads a field that has one of a few words.
func oneOf[T comparable](s *section, name string, into *T, choices []choice[T]) {
	defer func() { s.keep(name, *into) }()
	if o := s.outline.field(name); o != nil {
		words, preset := built(choices, *into)
		o.words(preset, words)
	}
	v, ok := s.scalar(name, "a word")
	if ok {
		chosen(s.reader, v, into, choices)
	}
}

// built returns the supported words, and the word for value.
func built[T comparable](choices []choice[T], value T) (words []string, word string) {
	for _, c := range choices {
		if c.instead != "" || c.known != "" {
			continue
		}
		words = append(words, c.word)
		if c.value == value {
			word = c.word
		}
	}
	return words, word
}

// chosen sets *into to the value for the word of v.
func chosen[T comparable](r *reader, v value, into *T, choices []choice[T]) {
	for _, c := range choices {
		switch {
		case c.word != v.text():
		case c.known != "":
			r.fault(v, quote(c.word)+" is called "+c.known+" here", "write "+c.known)
			return
		case c.why != "":
			r.fault(v, c.why, c.instead)
			return
		case c.instead != "":
			r.fault(v, quote(c.word)+" is not supported yet", c.instead)
			return
		default:
			*into = c.value
			return
		}
	}
	words, _ := built(choices, *into)
	fix := "use one of " + strings.Join(words, ", ")
	if len(words) == 1 {
		fix = "use " + words[0]
	}
	if near := rule.Nearest(v.text(), words); near != "" {
		fix = "did you mean " + near + "?"
	}
	r.fault(v, quote(v.text())+" is not known", fix)
}
