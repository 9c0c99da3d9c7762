// Package terminal writes tables and names for people, who read them on a terminal.
package terminal

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Printable escapes the characters of a name that are unprintable or invisible, in Go's
// syntax. Clients choose their names, and a terminal would interpret such characters.
func Printable(name string) string {
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

// Width measures printable text in columns of a terminal. Wide characters, like Chinese
// characters and emoji, have 2 columns, and combining marks have 0. The package-level
// functions of go-runewidth depend on the locale; this condition does not.
func Width() *runewidth.Condition { return &runewidth.Condition{StrictEmojiNeutral: true} }

// Cut shortens a line to the width of the terminal, so that it fills one row. 0 columns
// means no bound.
func Cut(line string, columns int) string {
	if columns <= 0 {
		return line
	}
	return Width().Truncate(line, columns, "")
}

// Ellipsis stands for what Shorten leaves out.
const Ellipsis = "…"

// Shorten replaces the middle of a name that is wider than the columns. Names of one kind often
// have the same beginning, and long names end with a digest.
func Shorten(name string, columns int) string {
	all := Width().StringWidth(name)
	if all <= columns {
		return name
	}
	head := Width().Truncate(name, columns/2, "")
	room := columns - Width().StringWidth(head+Ellipsis)
	end := Width().TruncateLeft(name, all-room, "") // TruncateLeft pads with a space when it cuts a wide character in half.
	return head + Ellipsis + strings.TrimLeft(end, " ")
}

// Rowf writes a row of a table. It ignores the error, which Flush returns.
func Rowf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// ListCounts lists the counts above 0, sorted by name.
func ListCounts(counts map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

const (
	// minName is the minimum width of the name column.
	minName = 12
	// gap is the number of spaces between two columns.
	gap = 2
)

// Aligned formats rows with each column as wide as its widest cell. It shortens the names in
// the first column so that the rows fit. 0 columns means no bound. The name in the last
// row, the total, is not shortened.
func Aligned(rows [][]string, columns int) []string {
	widths := make([]int, len(rows[0]))
	numbers := 0
	for column := 1; column < len(widths); column++ {
		for _, row := range rows {
			widths[column] = max(widths[column], Width().StringWidth(row[column]))
		}
		numbers += gap + widths[column]
	}
	total := len(rows) - 1
	room := max(columns-numbers, minName, Width().StringWidth(rows[total][0]))
	for i, row := range rows {
		if columns > 0 && i < total {
			row[0] = Shorten(row[0], room)
		}
		widths[0] = max(widths[0], Width().StringWidth(row[0]))
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		var line strings.Builder
		for column, cell := range row[:len(row)-1] {
			line.WriteString(Width().FillRight(cell, gap+widths[column]))
		}
		lines[i] = line.String() + row[len(row)-1]
	}
	return lines
}
