package outcome

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/test/bench/contest"
)

// perSecond is the column beside the meters: who compares servers thinks in rates.
const perSecond = "a second"

// metersOf names the further columns of a contest, in the order in which its sides
// have them; none where nothing was metered.
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

// meterCells leaves out what a side does not have.
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
