package resp_test

import (
	"bytes"
	"strconv"
)

// element is one reply, read by recursion and without bounds.
type element struct {
	typ  byte
	text string
	kids []element
}

// state is the result of reading some bytes.
type state int

const (
	bad   state = iota
	short       // The bytes may be the beginning of a reply.
	good
)

// parse reads one element from the front of b.
func parse(b []byte) (e element, rest []byte, s state) {
	line, rest, found := bytes.Cut(b, []byte("\r\n"))
	if !found {
		if bytes.ContainsAny(bytes.TrimSuffix(b, []byte("\r")), "\r\n") {
			return e, nil, bad
		}
		return e, nil, short
	}
	if len(line) == 0 || bytes.ContainsAny(line, "\r\n") {
		return e, nil, bad
	}
	e.typ, e.text = line[0], string(line[1:])
	switch e.typ {
	case '+', '-', ',', '(':
		return e, rest, good
	case '_':
		return e, rest, when(e.text == "")
	case '#':
		return e, rest, when(e.text == "t" || e.text == "f")
	case ':':
		_, err := strconv.ParseInt(e.text, 10, 64)
		return e, rest, when(err == nil && e.text[0] != '+')
	}
	n, err := strconv.Atoi(e.text)
	if err != nil || e.text[0] == '+' {
		return e, nil, bad
	}
	return e.parseRest(rest, n)
}

func when(ok bool) state {
	if ok {
		return good
	}
	return bad
}

// parseRest reads the n bytes or elements that a header announces.
func (e element) parseRest(rest []byte, n int) (element, []byte, state) {
	if n == -1 && (e.typ == '$' || e.typ == '*') {
		return e, rest, good
	}
	switch e.typ {
	case '$', '=':
		if n >= 0 && len(rest) < n+2 {
			return e, nil, short
		}
		if n < 0 || string(rest[n:n+2]) != "\r\n" {
			return e, nil, bad
		}
		e.text = string(rest[:n])
		return e, rest[n+2:], good
	case '%':
		return e.parseKids(rest, 2*n)
	case '*', '~', '>':
		return e.parseKids(rest, n)
	}
	return e, nil, bad
}

func (e element) parseKids(rest []byte, n int) (element, []byte, state) {
	if n < 0 {
		return e, nil, bad
	}
	for range n {
		kid, left, s := parse(rest)
		if s != good {
			return e, nil, s
		}
		e.kids, rest = append(e.kids, kid), left
	}
	return e, rest, good
}
