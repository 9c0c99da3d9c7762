//go:build soak

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// reported is the time after which all processes have reported what they have spent.
const reported = 3 * tenth

// worst gives the most units in any time of a length, of the times that begin with a tenth of a second in [from, to).
func (y *tally) worst(from, to time.Time, length time.Duration) (worst int) {
	n := int64(length / tenth)
	for at := tenthOf(from); at+n <= tenthOf(to); at++ {
		worst = max(worst, y.sum(at, at+n))
	}
	return worst
}

// least gives the fewest units in any such time.
func (y *tally) least(from, to time.Time, length time.Duration) int {
	n := int64(length / tenth)
	least := y.sum(tenthOf(from), tenthOf(from)+n)
	for at := tenthOf(from); at+n <= tenthOf(to); at++ {
		least = min(least, y.sum(at, at+n))
	}
	return least
}

// bySecond gives the units of each whole second in [from, to).
func (y *tally) bySecond(from, to time.Time) (units []int) {
	const second = int64(time.Second / tenth)
	for at := tenthOf(from); at+second <= tenthOf(to); at += second {
		units = append(units, y.sum(at, at+second))
	}
	return units
}

// lastSecond gives the units of the last second that has been reported.
func (y *tally) lastSecond() int {
	end := time.Now().Add(-reported)
	return y.sum(tenthOf(end.Add(-time.Second)), tenthOf(end))
}

// mark is a line of text in a plot.
type mark struct {
	at   time.Time
	text string
}

// plot writes the units of each tenth of a second as CSV, and draws those of each second as SVG: with the capacity, the bound of a second
// unless it is 0, and marks. The files are in the folder of artifacts, which go test -artifacts keeps.
func (y *tally) plot(t *testing.T, name string, from, to time.Time, bound int, marks []mark) {
	t.Helper()
	const width, height, top, second = 8, 400, 3500, int64(time.Second / tenth)
	first, end := tenthOf(from), tenthOf(to)
	row := func(units int) int { return height - units*height/top }
	column := func(at int64) int { return int((at - first) * width / second) }
	var table, points, lines strings.Builder
	table.WriteString("tenth,units,event\n")
	for at := first; at < end; at++ {
		event := ""
		for len(marks) > 0 && tenthOf(marks[0].at) <= at {
			event, marks = marks[0].text, marks[1:]
			fmt.Fprintf(&lines, `<path d="M%[1]d 0V%[2]d" stroke="silver"/><text transform="translate(%[1]d 5) rotate(90)" font-size="9">%[3]s</text>`,
				column(at), height, event)
		}
		fmt.Fprintf(&table, "%d,%d,%s\n", at-first, y.sum(at, at+1), event)
		fmt.Fprintf(&points, "%d,%d ", column(at), row(y.sum(at-second+1, at+1)))
	}
	for _, level := range []int{treeCapacity, bound} {
		if level > 0 {
			fmt.Fprintf(&lines, `<path d="M0 %[1]dH%[2]d" stroke="gray" stroke-dasharray="4"/><text x="5" y="%[1]d">%[3]d</text>`,
				row(level), column(end), level)
		}
	}
	picture := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d"><rect width="%[1]d" height="%[2]d" fill="white"/>`+
		`%[3]s<polyline points="%[4]s" fill="none" stroke="black"/></svg>`, column(end), height, &lines, &points)
	for ending, text := range map[string]string{".csv": table.String(), ".svg": picture} {
		path := filepath.Join(t.ArtifactDir(), name+ending)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		t.Log("the units are in", path)
	}
}
