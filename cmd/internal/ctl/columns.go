package ctl

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// printable escapes the characters of a name that are unprintable or invisible, in Go's
// syntax. Clients choose their names, and a terminal would interpret such characters.
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

// width measures printable text in columns of a terminal. Wide characters, like Chinese
// characters and emoji, have 2 columns, and combining marks have 0. The package-level
// functions of go-runewidth depend on the locale; this condition does not.
func width() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// cut shortens a line to the width of the terminal, so that it fills one row. 0 columns
// means no bound.
func cut(line string, columns int) string {
	if columns <= 0 {
		return line
	}
	return width().Truncate(line, columns, "")
}

const ellipsis = "…"

// shorten replaces the middle of a name that is wider than the columns. Names of one kind often
// have the same beginning, and long names end with a digest.
func shorten(name string, columns int) string {
	all := width().StringWidth(name)
	if all <= columns {
		return name
	}
	head := width().Truncate(name, columns/2, "")
	room := columns - width().StringWidth(head+ellipsis)
	end := width().TruncateLeft(name, all-room, "") // TruncateLeft pads with a space when it cuts a wide character in half.
	return head + ellipsis + strings.TrimLeft(end, " ")
}
