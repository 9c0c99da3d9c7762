package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/internal/config/field"
)

// document is the text of one file.
type document struct {
	name string
	text []byte
	cut  []string // See lines.
}

// place is a position in a source. line and column count from 1, the column in characters. The
// zero place means no position.
type place struct{ line, column int }

const byteOrderMark = "\ufeff"

// newSource checks the size of the text, and that it is readable UTF-8. If it is not, no position
// would be correct, so that fault is the only one of its file.
func newSource(name string, text []byte) (*document, *Fault) {
	s := &document{name: name, text: bytes.TrimPrefix(text, []byte(byteOrderMark))}
	if len(text) > maxFileBytes {
		return nil, &Fault{
			File: name, Problem: fmt.Sprintf("the file is larger than %s", field.FormatSize(maxFileBytes)),
			Fix: "split the rules over several instances",
		}
	}
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return nil, &Fault{File: name, Line: 1, Column: 1, Problem: "the file is UTF-16", Fix: "save it as UTF-8"}
	}
	if at, problem := unreadable(string(s.text)); problem != "" {
		lines := cutLines(string(s.text[:at]))
		last := lines[len(lines)-1]
		f := s.fault(place{len(lines), 1 + utf8.RuneCountInString(last)}, "", problem, "save the file as UTF-8 text")
		return nil, &f
	}
	return s, nil
}

// lines returns the lines of the text, split like YAML does, at \n, \r\n and \r. The first call
// splits them: only faults need lines.
func (s *document) lines() []string {
	if s.cut == nil {
		s.cut = cutLines(string(s.text))
	}
	return s.cut
}

// cutLines splits a text into lines without their line breaks.
func cutLines(text string) []string {
	var lines []string
	for {
		end := strings.IndexAny(text, "\r\n")
		if end < 0 {
			return append(lines, text)
		}
		lines = append(lines, text[:end])
		if strings.HasPrefix(text[end:], "\r\n") {
			end++
		}
		text = text[end+1:]
	}
}

// unreadable returns the offset of the first byte that a text file cannot have. It also finds
// further line breaks of YAML, because editors would count other line numbers than YAML does.
func unreadable(text string) (at int, problem string) {
	for i, c := range text {
		switch {
		case c >= ' ' && c <= '~', c == '\t', c == '\n', c == '\r':
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return i, fmt.Sprintf("byte %#02x is not UTF-8", text[i])
		case c == 0:
			return i, "the file has a zero byte here: it is binary"
		case c < ' ', c >= 0x7f && c <= 0x9f, c == '\u2028', c == '\u2029', c == '\ufeff', c == '\ufffe', c == '\uffff':
			return i, fmt.Sprintf("the file has the invisible character %U here", c)
		}
	}
	return 0, ""
}

// fault makes a Fault with its excerpt.
func (s *document) fault(at place, path, problem, fix string) Fault {
	return Fault{
		File: s.name, Line: at.line, Column: at.column, Path: path, Problem: withoutTokens(problem), Fix: withoutTokens(fix),
		Excerpt: withoutTokens(s.excerpt(at)),
	}
}

// callerToken begins each token of a caller.
const callerToken = "hg_"

// withoutTokens replaces each text that can be the token of a caller by as many stars, because faults are logged: a
// file has digests of tokens, and the token itself is a likely mistake.
func withoutTokens(text string) string {
	if !strings.Contains(text, callerToken) {
		return text
	}
	b := []byte(text)
	for at := 0; ; {
		i := strings.Index(text[at:], callerToken)
		if i < 0 {
			return string(b)
		}
		at += i + len(callerToken)
		for ; at < len(b) && strings.IndexByte(tokenCharacters, b[at]) >= 0; at++ {
			b[at] = '*'
		}
	}
}

const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// excerptWidth bounds the part of a line in an excerpt. With the line number, it fits a terminal.
const excerptWidth = 100

// excerpt returns the line of a place, and below it a line with a caret. It returns "" for a line
// with a password in an address, because faults are often logged.
func (s *document) excerpt(at place) string {
	if at.line < 1 || at.line > len(s.lines()) {
		return ""
	}
	text := s.lines()[at.line-1]
	if strings.Contains(text, "@") && strings.Contains(text, "//") {
		return ""
	}
	line := []rune(text)
	column := min(at.column-1, len(line))
	before, after := "", ""
	if start := column - excerptWidth*2/3; start > 0 {
		line, column, before = line[start:], column-start, "..."
	}
	if len(line) > excerptWidth {
		line, after = line[:excerptWidth], "..."
	}
	number := fmt.Sprintf("%5d", at.line)
	var margin strings.Builder // The margin is as wide as the text before the place, with the same tabs.
	margin.WriteString(strings.Repeat(" ", len(before)))
	for _, c := range line[:column] {
		if c != '\t' {
			c = ' '
		}
		margin.WriteRune(c)
	}
	return fmt.Sprintf("%s | %s%s%s\n%s | %s^",
		number, before, visible(line), after, strings.Repeat(" ", len(number)), margin.String())
}

// visible replaces characters that move a terminal's cursor or change the direction of text.
func visible(line []rune) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c < ' ' && c != '\t', c >= 0x7f && c <= 0x9f, c == utf8.RuneError,
			c >= '\u200b' && c <= '\u200f', c >= '\u2028' && c <= '\u202e', c >= '\u2060' && c <= '\u206f', c == '\ufeff':
			return '?'
		}
		return c
	}, string(line))
}
