package ctl

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
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

// width measures a printable text in columns of a terminal: 2 for what is drawn over two, as
// Chinese characters and emoji are, and 0 for a mark that is drawn over the character before
// it. It is the same in every locale, as terminals are; the functions of go-runewidth are not.
func width() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// cut shortens a line to the columns of the terminal, so that it takes one row; 0 is
// as wide as it likes.
func cut(line string, columns int) string {
	if columns <= 0 {
		return line
	}
	return width().Truncate(line, columns, "")
}

const ellipsis = "…"

// shorten leaves out of the middle of a name what is beyond so many columns: names of
// one kind often begin alike, and those that are too long end in a digest.
func shorten(name string, columns int) string {
	all := width().StringWidth(name)
	if all <= columns {
		return name
	}
	head := width().Truncate(name, columns/2, "")
	room := columns - width().StringWidth(head+ellipsis)
	end := width().TruncateLeft(name, all-room, "") // It has a space for half of a character.
	return head + ellipsis + strings.TrimLeft(end, " ")
}
