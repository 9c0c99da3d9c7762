package screen

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

func values(all ...float64) (list []*float64) {
	for i := range all {
		if all[i] < 0 {
			list = append(list, nil)
			continue
		}
		list = append(list, &all[i])
	}
	return list
}

func state(rules int) (*admin.Live, *admin.History) {
	now := time.Unix(1_700_000_000, 0)
	since := now.Add(-5 * time.Minute)
	l := &admin.Live{
		Instance: "hg-1", State: "serving", Version: "v1", Config: "c0ffee00c0ffee00", Now: now, Window: 15, RulesTotal: rules,
		Sentence: "Headgate refuses 26 % of 194 requests/s: rule search refuses 25.9/s, since 5 min. " + strings.Repeat("More words. ", 10),
		Totals:   admin.LiveTotals{Requests: 194, Passed: 143.5, Refused: 50.5}, AttentionTotal: 8,
	}
	for i := range 8 {
		l.Attention = append(l.Attention, admin.Attention{Level: admin.LevelWarning, Text: fmt.Sprintf("%d \x1b[2J %s", i, strings.Repeat("word ", 30))})
	}
	h := &admin.History{Series: map[string][]*float64{}}
	for i := range rules {
		r := admin.LiveRule{Name: fmt.Sprintf("%d%s", i, strings.Repeat("n", i%40)), Mode: "enforce", Passed: 1e6, Refused: float64(rules - i), Since: &since}
		l.Rules = append(l.Rules, r)
		h.Series[SeriesOf(&r)] = values(-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	return l, h
}

// TestLinesFit: no line is wider than the terminal, and the table takes what is left of the rows. Hostile texts have no escape sequence.
func TestLinesFit(t *testing.T) {
	for _, rows := range []int{24, 50, 0} {
		l, h := state(60)
		lines := Lines(l, h, rows, 80)
		if rows > 0 && len(lines) > max(rows, 24) {
			t.Errorf("%d rows have %d lines", rows, len(lines))
		}
		for _, line := range lines {
			if terminal.Width().StringWidth(line) > 80 || strings.Contains(line, "\x1b") {
				t.Errorf("a line has %d columns: %q", terminal.Width().StringWidth(line), line)
			}
		}
	}
}

func TestTable(t *testing.T) {
	l, h := state(1)
	l.Sentence, l.Attention, l.AttentionTotal = "All served.", nil, 0
	l.Rules = append(l.Rules, admin.LiveRule{Name: "crawl", Mode: "shadow", WouldRefuse: 2.5})
	h.Series["rule.crawl.would_refuse"] = values(1, 0, 1)
	l.RulesTotal = 9
	got := strings.Join(Lines(l, h, 0, 0)[1:], "\n")
	for _, text := range []string{
		"All served.\nrequests 194/s  passed 144/s  refused 50.5/s  service failed 0/s  in flight 0\n",
		"RULE                 MODE      PASSED/S REFUSED/S    SINCE  LAST 20 S\n",
		"0                    enforce  1,000,000         1    5 min  ▂▃▄▅▆▇██..",
		"crawl                shadow           0     (2.5)        -  █.█\n(7 more rules)",
	} {
		if !strings.Contains(got, text) {
			t.Errorf("the state lacks\n%s\n\n%s", text, got)
		}
	}
}
