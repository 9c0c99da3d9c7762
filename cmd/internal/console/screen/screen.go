// Package screen writes what an instance does now for a terminal of 80 columns: headgate ctl status --watch.
package screen

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/console/sentence"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

const (
	// SparkSeconds is the number of seconds that a picture of a rule has.
	SparkSeconds = 20
	// usualColumns is the width without a terminal.
	usualColumns = 80
	maxAttention = 6
	maxName      = 20
)

// SeriesOf is the series whose picture a rule has: its refusals, or those that would be.
func SeriesOf(r *admin.LiveRule) string {
	if r.Refused == 0 && r.WouldRefuse > 0 {
		return "rule." + r.Name + ".would_refuse"
	}
	return "rule." + r.Name + ".refused"
}

// Lines are those of a state. h may be nil. 0 rows means all, and 0 columns means 80.
func Lines(l *admin.Live, h *admin.History, rows, columns int) []string {
	if columns <= 0 {
		columns = usualColumns
	}
	lines := []string{fmt.Sprintf("%s  %s  headgate %s, configuration %s  %s", terminal.Printable(l.Instance), l.State, l.Version, l.Config,
		l.Now.Local().Format("15:04:05"))}
	lines = append(lines, Wrapped(l.Sentence, columns)...)
	lines = append(lines, totals(&l.Totals), "")
	wanted := attention(l, columns)
	if half := rows / 2; rows > 0 && len(wanted) > half { // The rules have the other half.
		wanted = append(wanted[:max(0, half-1)], "...")
	}
	lines = append(lines, wanted...)
	most := len(l.Rules)
	if rows > 0 {
		most = max(0, min(most, rows-len(lines)-2)) // The head of the table, and the line for the others.
	}
	lines = append(lines, table(l, h, most)...)
	if left := l.RulesTotal - most; left > 0 {
		lines = append(lines, fmt.Sprintf("(%d more rules)", left))
	}
	return lines
}

func totals(t *admin.LiveTotals) string {
	return fmt.Sprintf("requests %s/s  passed %s/s  refused %s/s  service failed %s/s  in flight %d", sentence.Rate(t.Requests),
		sentence.Rate(t.Passed), sentence.Rate(t.Refused), sentence.Rate(t.ServiceFailed), t.InFlight)
}

// attention lists what needs attention.
func attention(l *admin.Live, columns int) (lines []string) {
	if len(l.Attention) == 0 {
		return nil
	}
	shown := l.Attention[:min(len(l.Attention), maxAttention)]
	for i := range shown {
		lines = append(lines, Wrapped(strings.ToUpper(shown[i].Level)+"  "+terminal.Printable(shown[i].Text), columns)...)
	}
	if left := l.AttentionTotal - len(shown); left > 0 {
		lines = append(lines, fmt.Sprintf("(%d more)", left))
	}
	return append(lines, "")
}

// table has the first rules.
func table(l *admin.Live, h *admin.History, most int) []string {
	if most <= 0 {
		return nil
	}
	lines := []string{fmt.Sprintf("%-*s %-8s %9s %9s %8s  %s", maxName, "RULE", "MODE", "PASSED/S", "REFUSED/S", "SINCE", "LAST 20 S")}
	for i := range l.Rules[:min(most, len(l.Rules))] {
		r := &l.Rules[i]
		refused, since := sentence.Rate(r.Refused), "-"
		if r.Refused == 0 && r.WouldRefuse > 0 {
			refused = "(" + sentence.Rate(r.WouldRefuse) + ")"
		}
		if r.Since != nil {
			since = sentence.Since(l.Now.Sub(*r.Since))
		}
		name := terminal.Shorten(terminal.Printable(r.Name), maxName)
		lines = append(lines, fmt.Sprintf("%-*s %-8s %9s %9s %8s  %s",
			maxName, name, r.Mode, sentence.Rate(r.Passed), refused, since, picture(r, h)))
	}
	return lines
}

// picture is the history of a rule.
func picture(r *admin.LiveRule, h *admin.History) string {
	if h == nil {
		return ""
	}
	return Spark(h.Series[SeriesOf(r)])
}

// Spark draws values as bars of eight heights. 0 is a low line, and a value without data a space. The highest value has the full height.
func Spark(values []*float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	highest := 0.0
	for _, v := range values {
		if v != nil {
			highest = max(highest, *v)
		}
	}
	var b strings.Builder
	for _, v := range values[max(0, len(values)-SparkSeconds):] {
		switch {
		case v == nil:
			b.WriteByte(' ')
		case *v <= 0 || highest <= 0:
			b.WriteByte('.')
		default:
			b.WriteRune(bars[min(len(bars)-1, int(*v/highest*float64(len(bars))))])
		}
	}
	return b.String()
}

// Wrapped divides a text into lines at spaces. A longer word has a line of its own. 0 columns means 80.
func Wrapped(text string, columns int) (lines []string) {
	if columns <= 0 {
		columns = usualColumns
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch joined := line + " " + word; {
		case line == "":
			line = word
		case terminal.Width().StringWidth(joined) > columns:
			lines, line = append(lines, line), "  "+word
		default:
			line = joined
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
