package output

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// Table is rows below a head. The first column has names, the others figures.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
	// Note follows the table; "" is none.
	Note string
}

// Add appends a row with a cell for each column.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Text writes the table for a terminal: names on the left, figures aligned on the right.
func (t *Table) Text(b *strings.Builder) {
	widths := make([]int, len(t.Head))
	rows := make([][]string, 0, len(t.Rows)+1)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		cells := make([]string, len(t.Head))
		for i := range cells {
			if i < len(row) {
				cells[i] = terminal.Printable(row[i])
			}
			widths[i] = max(widths[i], terminal.Width().StringWidth(cells[i]))
		}
		rows = append(rows, cells)
	}
	if t.Title != "" {
		b.WriteString(terminal.Printable(t.Title) + "\n")
	}
	for _, row := range rows {
		row[0] = terminal.Width().FillRight(row[0], widths[0])
		for i := 1; i < len(row); i++ {
			row[i] = terminal.Width().FillLeft(row[i], widths[i])
		}
		b.WriteString(strings.TrimRight(strings.Join(row, "  "), " ") + "\n")
	}
	if t.Note != "" {
		for line := range strings.Lines(t.Note) {
			b.WriteString(terminal.Printable(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
}

// Count writes a whole number with a comma between thousands.
func Count[T ~int | ~int64 | ~uint64](n T) string {
	text := strconv.FormatUint(uint64(max(n, 0)), 10)
	sign := ""
	if n < 0 {
		text, sign = strconv.FormatUint(-uint64(n), 10), "-"
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// Percent writes a part of 1 with two or three digits, such as 41.8 %, 2.79 % and 0.26 %.
func Percent(part float64) string {
	digits := 2
	if part >= 0.0995 || part <= -0.0995 {
		digits = 1
	}
	return strconv.FormatFloat(100*part, 'f', digits, 64) + " %"
}

// Share writes n of all as a percentage; "-" of none.
func Share[T ~int | ~int64 | ~uint64](n, all T) string {
	if all == 0 {
		return "-"
	}
	return Percent(float64(n) / float64(all))
}
