package outcome

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// perSecond is the column with operations per second, the usual figure for servers. It
// appears next to the meters.
const perSecond = "a second"

// metersOf returns the additional columns of a contest, in the order of the meters. It
// returns nil for a contest without meters.
func metersOf(c contest.Result) []string {
	var names []string
	for _, r := range c.Rows {
		for _, m := range r.Meters {
			if len(names) == 0 {
				names = append(names, perSecond)
			}
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

func meterHeads(names []string) string {
	var b strings.Builder
	for _, name := range names {
		if name != perSecond {
			name += ", ns"
		}
		b.WriteString(" " + name + " |")
	}
	return b.String()
}

// meterCells formats the additional columns of a row. It writes a dash for a meter that
// the side does not have.
func meterCells(names []string, r contest.Row) string {
	var b strings.Builder
	for _, name := range names {
		text := "–"
		if i := slices.IndexFunc(r.Meters, func(m contest.Metered) bool { return m.Name == name }); i >= 0 {
			text = fmt.Sprintf("%.0f", r.Meters[i].Median)
		}
		if name == perSecond && r.Median > 0 {
			text = fmt.Sprintf("%.0f", 1e9/r.Median)
		}
		b.WriteString(" " + text + " |")
	}
	return b.String()
}
