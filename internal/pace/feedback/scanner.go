package feedback

import "strings"

// scanner reads a line of structured fields. text is the unread rest.
type scanner struct{ text string }

func (s *scanner) skip(c byte) bool {
	if s.text == "" || s.text[0] != c {
		return false
	}
	s.text = s.text[1:]
	return true
}

// space skips the whitespace that is allowed around a comma.
func (s *scanner) space() { s.text = strings.TrimLeft(s.text, " \t") }

// spaces skips the whitespace that is allowed after a semicolon.
func (s *scanner) spaces() { s.text = strings.TrimLeft(s.text, " ") }

// while reads characters as long as belongs is true.
func (s *scanner) while(belongs func(byte) bool) string {
	i := 0
	for i < len(s.text) && belongs(s.text[i]) {
		i++
	}
	read := s.text[:i]
	s.text = s.text[i:]
	return read
}

func (s *scanner) name() (string, bool) {
	if s.text == "" || !lower(s.text[0]) && s.text[0] != '*' {
		return "", false
	}
	return s.while(inName), true
}

func (s *scanner) token() (string, bool) {
	read := s.while(inToken)
	return read, read != ""
}

// quoted returns the text between the quotes, with its escapes unchanged.
func (s *scanner) quoted() (string, bool) {
	if !s.skip('"') {
		return "", false
	}
	for i := 0; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			read := s.text[:i]
			s.text = s.text[i+1:]
			return read, true
		case c == '\\':
			i++
			if i == len(s.text) || s.text[i] != '"' && s.text[i] != '\\' {
				return "", false
			}
		case c < ' ' || c > '~':
			return "", false
		}
	}
	return "", false
}

// bare reads a bare item of any type. For an Integer, it returns the number.
func (s *scanner) bare() (number, bool) {
	if s.text == "" {
		return number{}, false
	}
	switch c := s.text[0]; {
	case digit(c) || c == '-':
		return s.number()
	case c == '"':
		_, ok := s.quoted()
		return number{}, ok
	case c == ':':
		s.skip(':')
		s.while(inBytes)
		return number{}, s.skip(':')
	case c == '?':
		s.skip('?')
		return number{}, s.skip('0') || s.skip('1')
	case c == '@':
		s.skip('@')
		n, ok := s.number()
		return number{}, ok && n.there // A Date must have whole seconds, and does not count as a number.
	case c == '%':
		s.skip('%')
		_, ok := s.quoted()
		return number{}, ok
	default:
		if !letter(c) && c != '*' {
			return number{}, false
		}
		_, ok := s.token()
		return number{}, ok
	}
}

// number reads an Integer of up to 15 digits. For a Decimal, it returns a missing number.
func (s *scanner) number() (number, bool) {
	minus := s.skip('-')
	text := s.while(digit)
	if text == "" || len(text) > 15 {
		return number{}, false
	}
	if s.skip('.') {
		part := s.while(digit)
		return number{}, len(text) <= 12 && part != "" && len(part) <= 3
	}
	value, _, _ := digits(text)
	if minus {
		value = -value
	}
	return number{value, true}, true
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func lower(c byte) bool  { return 'a' <= c && c <= 'z' }
func letter(c byte) bool { return lower(c) || 'A' <= c && c <= 'Z' }

func inName(c byte) bool { return lower(c) || digit(c) || strings.IndexByte("_-.*", c) >= 0 }

func inToken(c byte) bool {
	return letter(c) || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}

func inBytes(c byte) bool { return letter(c) || digit(c) || strings.IndexByte("+/=", c) >= 0 }
