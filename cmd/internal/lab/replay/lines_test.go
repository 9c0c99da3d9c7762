package replay_test

import (
	"fmt"
	"strings"
	"testing"
)

// objectLine is a line of Headgate's own log, a number of seconds after noon.
func objectLine(second, status int, duration, more string) string {
	return fmt.Sprintf(`{"time":"2026-03-01T12:00:%02d.000000Z","remote_ip":"192.0.2.1","method":"GET","host":"example.com","uri":"/a",`+
		`"status":%d,"bytes":1%s,"verdict":"allow","reason":"within_limit"%s}`+"\n", second, status, duration, more)
}

// TestWhatALineSays: rules use the status, the cost and the duration in the log, and what a log lacks is left out.
func TestWhatALineSays(t *testing.T) {
	t.Parallel()
	lasting := func(seconds string) string { return `,"duration":` + seconds }
	repeat := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	for _, c := range []struct {
		name, rules, log string
		refused          int64
		says             string // a part of what was left out, or of the notes
	}{
		{
			"answers that are not counted give their units back",
			`rules: [{name: logins, key: [ip], algorithm: fixed_window, limits: ["2/1h"], count: {status: [401]}}]`,
			repeat(5, func(i int) string { return objectLine(i, 200, lasting("0.01"), "") }), 0, "counts answers by the statuses",
		},
		{
			"counted answers use the limit up",
			`rules: [{name: logins, key: [ip], algorithm: fixed_window, limits: ["2/1h"], count: {status: [401]}}]`,
			repeat(5, func(i int) string { return objectLine(i, 401, lasting("0.01"), "") }), 3, "",
		},
		{
			"the logged cost is the real one",
			`rules: [{name: tokens, key: [ip], algorithm: fixed_window, limits: ["10/1h"], settle: "header:X-Tokens"}]`,
			repeat(5, func(i int) string { return objectLine(i, 200, lasting("0.01"), `,"cost":5`) }), 3, "settle uses the cost",
		},
		{
			"requests in flight last as long as in the log",
			`rules: [{name: slots, key: [ip], in_flight: 2}]`,
			repeat(5, func(i int) string { return objectLine(i, 200, lasting("2.5"), "") }), 1, "",
		},
		{
			"without durations there are no requests in flight",
			`rules: [{name: slots, key: [ip], in_flight: 2}, {name: all, key: [all], limits: ["3/1h"]}]`,
			repeat(5, func(i int) string { return objectLine(i, 200, "", "") }), 2, "in_flight",
		},
		{
			"a limit by a host that lines have",
			`rules: [{name: site, match: {hosts: [example.com]}, key: [host], limits: ["2/1h"]}]`,
			repeat(5, func(i int) string { return objectLine(i, 200, lasting("0.01"), "") }), 3, "longer than the log",
		},
	} {
		o := fromBytes(parse(t, c.rules), []byte(c.log))
		o.Logs.Format = "headgate"
		r := replayed(t, o)
		said := strings.Join(append(r.LeftOut, r.Notes...), "\n")
		if r.Refused != c.refused || r.Requests != 5 || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d of %d requests are refused, want %d, and the report says\n%s", c.name, r.Refused, r.Requests, c.refused, said)
		}
	}
}

// TestLateLines: lines beyond the window are counted and taken at its edge, and long steps back are named.
func TestLateLines(t *testing.T) {
	t.Parallel()
	log := combinedLine("192.0.2.1", 1000, "/") + combinedLine("192.0.2.1", 0, "/") + combinedLine("192.0.2.1", 1001, "/")
	r := replayed(t, fromBytes(parse(t, "rules: [{name: a, key: [ip], limits: [1/m], algorithm: sliding_log}]"), []byte(log)))
	said := strings.Join(r.Notes, "\n")
	if r.Order.Late != 1 || r.Requests != 3 || !strings.Contains(said, "goes back by 16m40s at line 2") || !strings.Contains(said, "1 lines were more than 5m0s back") {
		t.Errorf("%d lines are late, and the notes are\n%s", r.Order.Late, said)
	}
	if r.First != "2026-03-01T12:11:40Z" {
		t.Errorf("the late line is at %s", r.First)
	}
}
