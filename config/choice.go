package config

import (
	"strings"

	"github.com/headgate/headgate/rule"
)

// choice is a word that a field may have. A word with an instead is planned and
// not built: instead says what to use until then.
type choice[T any] struct {
	word    string
	value   T
	instead string
}

// oneOf reads one of a few words.
func oneOf[T any](s *section, name string, into *T, choices []choice[T]) {
	v, ok := s.scalar(name, "a word")
	if ok {
		chosen(s.reader, v, into, choices)
	}
}

// chosen sets into to what the word of v stands for.
func chosen[T any](r *reader, v value, into *T, choices []choice[T]) {
	var built []string
	for _, c := range choices {
		switch {
		case c.word != v.text():
		case c.instead != "":
			r.fault(v, quote(c.word)+" is not supported yet", c.instead)
			return
		default:
			*into = c.value
			return
		}
		if c.instead == "" {
			built = append(built, c.word)
		}
	}
	fix := "use one of " + strings.Join(built, ", ")
	if len(built) == 1 {
		fix = "use " + built[0]
	}
	if near := rule.Nearest(v.text(), built); near != "" {
		fix = "did you mean " + near + "?"
	}
	r.fault(v, quote(v.text())+" is not known", fix)
}
