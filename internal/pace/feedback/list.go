package feedback

import "time"

// A list field beyond these bounds is ignored completely.
const (
	maxLines  = 32
	maxBytes  = 8 << 10
	maxMember = 64
)

// member is one member of a list of structured fields (RFC 9651), with the parts that matter here.
type member struct {
	key  string // key of a dictionary member, as in limit=10; "" for a list member
	word string // the member's value if it is a token or a quoted string
	left number // parameter r: the remaining units
	when number // parameter t: the seconds until the reset
}

// number is an Integer of structured fields, or a missing value if there is false.
type number struct {
	value int64
	there bool
}

// empty parses RateLimit, and returns the longest reset time of all items with no remaining
// units. It ignores items without a time, because the stop would have no end.
func (a *answer) empty(lines []string) (d time.Duration, found bool) {
	var dictionary member // the form remaining=0, reset=30
	item := func(left, when number) {
		if !left.there || left.value != 0 || !when.there || when.value < 0 {
			return
		}
		if reset, ok := a.pause(quantity{whole: when.value}, time.Second); ok {
			d, found = max(d, reset), true
		}
	}
	if !each(lines, func(m member) {
		switch m.key {
		case "":
			item(m.left, m.when)
		case "remaining":
			dictionary.left = m.left
		case "reset":
			dictionary.when = m.left
		}
	}) {
		return 0, false
	}
	item(dictionary.left, dictionary.when)
	return d, found
}

// warns reports whether a list has the warning soft-limit.
func warns(lines []string) (found bool) {
	return each(lines, func(m member) { found = found || m.key == "" && m.word == "soft-limit" }) && found
}

// each calls f with each member of a list of several lines. It returns false for a list
// that is malformed or beyond the bounds. The caller must then discard the results of f.
func each(lines []string, f func(member)) bool {
	if len(lines) > maxLines {
		return false
	}
	size, members := 0, 0
	for _, line := range lines {
		if size += len(line); size > maxBytes {
			return false
		}
		s := scanner{text: line}
		s.space()
		for s.text != "" {
			m, ok := s.member()
			if members++; !ok || members > maxMember {
				return false
			}
			f(m)
			if !s.comma() {
				return false
			}
		}
	}
	return true
}

// comma reads the separator of two members, or the end of the line. A trailing comma is an error.
func (s *scanner) comma() bool {
	s.space()
	if s.text == "" {
		return true
	}
	if !s.skip(',') {
		return false
	}
	s.space()
	return s.text != ""
}

// member reads an item or a dictionary member, with its parameters.
func (s *scanner) member() (m member, ok bool) {
	switch {
	case s.text[0] == '"':
		m.word, ok = s.quoted()
	case lower(s.text[0]) || s.text[0] == '*':
		m.word, ok = s.token()
		if ok && s.skip('=') { // Tokens cannot contain '=', so the word was a key.
			m.key = m.word
			m.left, ok = s.bare()
		}
	default:
		_, ok = s.bare()
	}
	return m, ok && s.parameters(&m)
}

// parameters reads all ;name=value. It ignores unknown names. If a name is repeated, the
// last value counts.
func (s *scanner) parameters(m *member) bool {
	for s.skip(';') {
		s.spaces()
		name, ok := s.name()
		if !ok {
			return false
		}
		value := number{}
		if s.skip('=') {
			if value, ok = s.bare(); !ok {
				return false
			}
		}
		if m.key != "" || name != "r" && name != "t" {
			continue
		}
		if !value.there || value.value < 0 {
			return false
		}
		if name == "r" {
			m.left = value
		} else {
			m.when = value
		}
	}
	return true
}
