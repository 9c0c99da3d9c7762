package feedback

import "time"

// Bounds of a field that is a list. What is longer is ignored, as a whole.
const (
	maxLines  = 32
	maxBytes  = 8 << 10
	maxMember = 64
)

// member is one member of a list of structured fields (RFC 9651), as far as limits go.
type member struct {
	key  string // of a dictionary's member: limit=10; "" for a list's
	word string // the token or the text between quotes that the member is
	left number // what remains: r
	when number // the seconds until there is more: t
}

// number is an Integer of structured fields that may not be there.
type number struct {
	value int64
	there bool
}

// empty reads RateLimit and says for how long nothing remains: the longest time of all
// items that have nothing. An item that says no time is not heard, since none mends it.
func empty(lines []string) (d time.Duration, found bool) {
	var dictionary member // the form remaining=0, reset=30
	if !each(lines, func(m member) {
		switch m.key {
		case "":
			if m.left.there && m.left.value == 0 && m.when.there {
				d, found = max(d, time.Duration(m.when.value)*time.Second), true
			}
		case "remaining":
			dictionary.left = m.left
		case "reset":
			dictionary.when = m.left
		}
	}) {
		return 0, false
	}
	if left, when := dictionary.left, dictionary.when; left.there && left.value == 0 && when.there {
		d, found = max(d, time.Duration(when.value)*time.Second), true
	}
	return d, found
}

// warns says that a list has the warning of a soft limit.
func warns(lines []string) (found bool) {
	return each(lines, func(m member) { found = found || m.key == "" && m.word == "soft-limit" }) && found
}

// each calls f with each member of a list that may have several lines. It is false for
// a malformed one, or one beyond the bounds: then what f has heard does not count.
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

// comma reads what is between two members, or finds the end. A comma at the end is a mistake.
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

// member reads an item or a dictionary's member, and the parameters behind it.
func (s *scanner) member() (m member, ok bool) {
	switch {
	case s.text[0] == '"':
		m.word, ok = s.quoted()
	case lower(s.text[0]) || s.text[0] == '*':
		m.word, ok = s.token()
		if ok && s.skip('=') { // No token of ours has a '=': it was a key.
			m.key = m.word
			m.left, ok = s.bare()
		}
	default:
		_, ok = s.bare()
	}
	return m, ok && s.parameters(&m)
}

// parameters reads ;name=value as often as it comes. Those of unknown names are read
// and not heard. Of one that comes twice the last counts.
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
