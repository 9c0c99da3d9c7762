package ctl

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// printable gives a name with what is no printable character, or cannot be seen,
// escaped, as in Go: a name is what a client says of itself.
func printable(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// columnsOf gives how many columns of a terminal a printable text takes.
func columnsOf(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

// columnsOfRune gives 2 for what is drawn over two columns, as Chinese characters and
// emoji are, and 0 for a mark that is drawn over the character before it.
func columnsOfRune(r rune) int {
	if isMark(r) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

func isMark(r rune) bool { return unicode.In(r, unicode.Mn, unicode.Me) }

// cut shortens a line to the columns of the terminal, so that it takes one row; 0 is
// as wide as it likes.
func cut(line string, columns int) string {
	if columns <= 0 {
		return line
	}
	return begin(line, columns)
}

// begin gives what of the begin of a text takes so many columns at the most.
func begin(text string, columns int) string {
	for i, r := range text {
		if columns -= columnsOfRune(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

// end gives what of the end of a text takes so many columns at the most. It begins
// with no mark of what is left out.
func end(text string, columns int) string {
	from := len(text)
	for from > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if columns -= columnsOfRune(r); columns < 0 {
			break
		}
		from -= size
	}
	return strings.TrimLeftFunc(text[from:], isMark)
}

const ellipsis = "…"

// shorten leaves out of the middle of a name what is beyond so many columns: names of
// one kind often begin alike, and those that are too long end in a digest.
func shorten(name string, columns int) string {
	if columnsOf(name) <= columns {
		return name
	}
	head := begin(name, columns/2)
	return head + ellipsis + end(name, columns-columnsOf(head)-columnsOf(ellipsis))
}
