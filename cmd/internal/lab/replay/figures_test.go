package replay_test

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/replay"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/race"
)

const accessLog = "../logs/testdata/access.log.gz"

// parse reads a configuration.
func parse(tb testing.TB, text string) *config.Config {
	tb.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// replayed replays logs.
func replayed(tb testing.TB, o replay.Options) *replay.Report {
	tb.Helper()
	o.Name = "headgate.yaml"
	if o.Files == nil {
		o.Files = []string{accessLog}
	}
	r, err := replay.Run(tb.Context(), &o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestAccessLog compares the refusals of each algorithm on a real log with figures that other programs computed from its definition.
// The log has whole seconds, so each has two figures.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, algorithm string
		together, spread int64
	}{
		{"5/10s", "algorithm: sliding_log", 757, 776},
		{"5/10s", "algorithm: fixed_window", 622, 622},
		{"5/10s", "algorithm: sliding_window, sub_windows: 1", 744, 703},
		{"5/10s", "algorithm: sliding_window, sub_windows: 4", 759, 733},
		{"5/10s", "algorithm: token_bucket", 413, 421},
		{"10/1m", "algorithm: sliding_log", 1729, 1729},
	} {
		rules := fmt.Sprintf("rules: [{name: perip, key: [ip], limits: [%q], %s}]", c.limit, c.algorithm)
		for _, within := range []replay.Within{replay.Together, replay.Spread} {
			want, other := c.together, c.spread
			if within == replay.Spread {
				want, other = other, want
			}
			r := replayed(t, replay.Options{Config: parse(t, rules), Within: within})
			if r.Refused != want || r.Requests != 9999 || r.MalformedCount != 1 {
				t.Errorf("%s %s %s: %d of %d requests are refused, and %d lines are malformed, want %d of 9999, and 1",
					c.limit, c.algorithm, within, r.Refused, r.Requests, r.MalformedCount, want)
			}
			if r.Other != nil && r.Other.Refused != other {
				t.Errorf("%s %s %s: the other count is %d, want %d", c.limit, c.algorithm, within, r.Other.Refused, other)
			}
			if (r.Other != nil) != (c.limit == "5/10s") {
				t.Errorf("%s %s: the other count is shown: %v", c.limit, c.algorithm, r.Other != nil)
			}
		}
	}
}

const threeRules = `rules:
  - {name: perip, key: [ip], algorithm: sliding_log, limits: ["20/m", "5/1s"]}
  - {name: blog, match: {path: /blog/*}, key: [ip], algorithm: sliding_log, limits: ["3/10s"]}
  - {name: all, key: [all], algorithm: sliding_log, limits: ["100/1s"]}
`

// TestThreeRules: a refusal counts for the first rule that refused.
func TestThreeRules(t *testing.T) {
	t.Parallel()
	r := replayed(t, replay.Options{Config: parse(t, threeRules), Within: replay.Together})
	got := fmt.Sprint(r.Refused, r.Clients, r.Rules[0].First, r.Rules[1].First, r.Rules[2].First, r.ActiveMinutes, r.SpanMinutes)
	if want := fmt.Sprint(979, replay.KeyCounts{Keys: 1753, Refused: 61}, 928, 51, 0, 84, 4981); got != want {
		t.Errorf("refused, clients, refusals of each rule, and minutes: %s, want %s", got, want)
	}
}

// TestSuggest compares suggestions with figures that another program found, and confirms each: it keeps the bound, and one less does not.
func TestSuggest(t *testing.T) {
	t.Parallel()
	cases := []struct {
		percent        float64
		keys, requests int64
	}{{1, 33, 57}, {5, 9, 29}}
	for _, c := range cases[:race.Fewer(2, 1)] {
		rules := "rules: [{name: perip, key: [ip], limits: [1000/m], algorithm: sliding_log}]"
		r := replayed(t, replay.Options{Config: parse(t, rules), Within: replay.Together, Suggest: c.percent})
		s := r.Suggestions[0]
		if s.ForKeys == nil || s.ForRequests == nil || s.ForKeys.Count != c.keys || s.ForRequests.Count != c.requests {
			t.Fatalf("%v %%: suggestions are %+v and %+v, want %d and %d", c.percent, s.ForKeys, s.ForRequests, c.keys, c.requests)
		}
	}
}

// TestSuggestionsHold replays the log with each suggestion, and with one less, for each algorithm.
func TestSuggestionsHold(t *testing.T) {
	t.Parallel()
	const percent = 2
	algorithms := []string{"token_bucket", "fixed_window", "sliding_window, sub_windows: 4", "sliding_log"}
	for _, algorithm := range algorithms[:race.Fewer(4, 1)] {
		rules := func(limit string) *config.Config {
			return parse(t, fmt.Sprintf("rules: [{name: perip, key: [ip], limits: [%q], algorithm: %s}]", limit, algorithm))
		}
		s := replayed(t, replay.Options{Config: rules("1000/m"), Suggest: percent}).Suggestions[0]
		if s.ForKeys == nil || s.ForRequests == nil {
			t.Fatalf("%s: suggestions are %+v", algorithm, s)
		}
		for less := range int64(2) {
			keys := replayed(t, replay.Options{Config: rules(fmt.Sprintf("%d/m", s.ForKeys.Count-less))}).Rules[0].Keys
			if over := keys.Refused*100 > percent*keys.Keys; over != (less == 1) {
				t.Errorf("%s: %d/m refuses %d of %d keys", algorithm, s.ForKeys.Count-less, keys.Refused, keys.Keys)
			}
			made := replayed(t, replay.Options{Config: rules(fmt.Sprintf("%d/m", s.ForRequests.Count-less))}).Rules[0]
			if over := made.Refused*100 > percent*made.Requests; over != (less == 1) {
				t.Errorf("%s: %d/m refuses %d of %d requests", algorithm, s.ForRequests.Count-less, made.Refused, made.Requests)
			}
		}
	}
}
