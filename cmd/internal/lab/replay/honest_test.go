package replay_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/cmd/internal/lab/replay"
)

// TestSuggestionsSayWhatTheyDecide: counts are those of the keys without an override, and what a suggestion leaves aside is said.
func TestSuggestionsSayWhatTheyDecide(t *testing.T) {
	t.Parallel()
	three := combinedLine("1.1.1.1", 0, "/") + combinedLine("1.1.1.1", 1, "/") + combinedLine("2.2.2.2", 2, "/")
	const confirmed = "A replay of the whole log with the algorithm of the rule confirms each suggestion."
	for _, c := range []struct {
		rule           string
		keys, requests int64
		says, not      string
	}{
		{`algorithm: sliding_log, limits: [1/m], overrides: {2.2.2.2: {limits: ["0/m"]}}`, 1, 2, "without overrides and their keys of the rule", "\x00"},
		{`algorithm: sliding_log, limits: [1/m]`, 2, 3, confirmed, "without"},
		{`algorithm: sliding_log, limits: [1/m], ban: {after: 1/m, for: 1h}`, 2, 3, "2/1m is not valid as it is: ban.after 1/1m then bans clients that keep to the limit: use at least 2/1m", "2/1m. perip 2/1m is not valid"},
		{`algorithm: sliding_log, limits: [1/m], overrides: {1.1.1.1: {limits: ["9/m"]}, 2.2.2.2: {limits: ["0/m"]}}`, 0, 0, "none: each key has an override", confirmed},
		{`ban: {after: 5/m, for: 1h}`, 0, 0, "none: the rule has a ban and no limit", confirmed},
	} {
		o := fromBytes(parse(t, "rules: [{name: perip, key: [ip], "+c.rule+"}]"), []byte(three))
		o.Suggest = 1
		path := t.TempDir() + "/access.log"
		if err := os.WriteFile(path, []byte(three), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Open, o.Files = nil, []string{path}
		r := replayed(t, o)
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		s := r.Suggestions[0]
		if s.Keys != c.keys || s.Requests != c.requests || !strings.Contains(b.String(), c.says) || strings.Contains(b.String(), c.not) {
			t.Errorf("%s: %+v, want %d keys, %d requests and %q in\n%s", c.rule, s, c.keys, c.requests, c.says, b.String())
		}
	}
}

// TestPeaksAreThoseOfTheAlgorithm: peaks never contradict the decisions.
func TestPeaksAreThoseOfTheAlgorithm(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 10 { // Five in each of two minutes, within ten seconds.
		log.WriteString(combinedLine("192.0.2.1", 55+i, "/"))
	}
	log.WriteString(combinedLine("192.0.2.2", 70, "/"))
	for _, c := range []struct {
		rule         string
		refused      int64
		median, most int64
		top          string
	}{
		{`limits: [5/m], algorithm: fixed_window`, 0, 1, 5, "[5] [1]"},
		{`limits: [5/m], algorithm: sliding_log`, 5, 1, 10, "[10] [1]"},
		{`limits: [100/month], algorithm: fixed_window`, 0, -1, -1, "[-1] [-1]"},
		{`limits: [5/m], algorithm: fixed_window, overrides: {192.0.2.1: {limits: [20/m]}}`, 0, 1, 1, "[-1] [1]"},
		{`limits: [5/m], algorithm: fixed_window, count: {status: [401]}`, 0, 0, 0, "[0] [0]"},
	} {
		r := replayed(t, fromBytes(parse(t, "rules: [{name: perip, key: [ip], "+c.rule+"}]"), []byte(log.String()))).Rules[0]
		top := fmt.Sprint(r.Top[0].Peaks, " ", r.Top[1].Peaks)
		if l := r.Limits[0]; r.Refused != c.refused || l.P50 != c.median || l.Most != c.most || top != c.top {
			t.Errorf("%s: %d are refused, the peaks are %d, %d and %s", c.rule, r.Refused, l.P50, l.Most, top)
		}
	}
}

// TestDegradedAreCounted, and a rule that is off has no refusals to miss.
func TestDegradedAreCounted(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 5 {
		log.WriteString(combinedLine("192.0.2.1", i, "/"))
	}
	rules := `rules:
  - {name: less, key: [ip], limits: [2/m], algorithm: fixed_window, on_exceed: {action: degrade, header: X-Degraded, value: "yes"}}
  - {name: idle, key: [ip], limits: [2/h], mode: off}
`
	r := replayed(t, fromBytes(parse(t, rules), []byte(log.String())))
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if r.Degraded != 3 || r.Refused != 0 || r.Rules[0].Degraded != 3 || !strings.Contains(b.String(), "degraded by on_exceed") {
		t.Errorf("%d and %d are degraded, %d refused\n%s", r.Degraded, r.Rules[0].Degraded, r.Refused, b.String())
	}
	if strings.Contains(b.String(), "Rule idle: the window") {
		t.Errorf("a rule that is off is said to miss refusals\n%s", b.String())
	}
}

// TestFieldsMustExist: a field of the command line that no line has is an error that names the field.
func TestFieldsMustExist(t *testing.T) {
	t.Parallel()
	const object = `{"ts":"2026-03-01T12:00:00Z","client":"192.0.2.1","method":"GET","url":"/"}` + "\n"
	usual := []string{"time=ts", "ip=client", "method=method", "path=url"}
	for _, c := range []struct {
		log    string
		fields []string
		says   string
	}{
		{object, usual, ""},
		{object, append(slices.Clone(usual), "header:X-Unread=nope"), ""},
		{object, []string{"time=ts", "ip=nope", "method=method", "path=url"}, "--field ip=nope: no line of the log has the field nope"},
		{object, []string{"time=nope", "ip=client", "method=method", "path=url"}, "--field time=nope: none of the first lines has the field nope"},
		{combinedLine("192.0.2.1", 0, "/"), []string{"ip=client"}, "--field ip=client: no line of the log has the field client"},
	} {
		o := fromBytes(parse(t, "rules: [{name: perip, key: [ip], limits: [1/m]}]"), []byte(c.log))
		for _, text := range c.fields {
			f, err := logs.ParseField(text)
			if err != nil {
				t.Fatal(err)
			}
			o.Logs.Fields = append(o.Logs.Fields, f)
		}
		_, err := replay.Run(t.Context(), &o)
		_, usage := errors.AsType[replay.UsageError](err)
		if usage != (c.says != "") || err == nil != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.fields, err, c.says)
		}
	}
}
