package proxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// TestScenes checks the questions of all scenes, with and without an earlier commit. The measurement of a
// scene at half of nginx's rate needs nginx as its first side.
func TestScenes(t *testing.T) {
	for _, before := range []string{"", "abc"} {
		var compared, judged, half int
		for _, s := range Scenes(before) {
			has := func(name string) bool {
				return slices.ContainsFunc(s.sides, func(s side) bool { return s.name == name })
			}
			for _, q := range s.questions {
				if !has(q.Of) || !has(q.Against) {
					t.Errorf("%s: got a question about %q and %q, want sides of the scene", s.Name, q.Of, q.Against)
				}
				if q.Against == sideBefore(before) && q.Bar > 0 {
					judged++
				}
			}
			if has(sideBefore("abc")) {
				compared++
			}
			if !s.load.half {
				continue
			}
			half++
			if s.sides[0].name != sideNginx || slices.ContainsFunc(s.questions, func(q contest.Question) bool { return q.Bar > 0 }) {
				t.Errorf("%s: got the first side %q, or a bar, want nginx and no bar", s.Name, s.sides[0].name)
			}
		}
		wantCompared, wantJudged := 0, 0
		if before != "" {
			wantCompared, wantJudged = 17, 10 // The p99 of seven scenes, and the processor time of three.
		}
		if half != 7 || compared != wantCompared || judged != wantJudged {
			t.Errorf("commit %q: got %d scenes at half rate, %d with the commit and %d bars beside the commit, want 7, %d and %d",
				before, half, compared, judged, wantCompared, wantJudged)
		}
	}
}

func TestBars(t *testing.T) {
	got := bar{intel: 1, amd: 2}.here()
	if want := map[string]float64{"Intel": 1, "AMD": 2}[Bars()]; got != want {
		t.Errorf("got the bar %v on a machine of kind %q, want %v", got, Bars(), want)
	}
}

func TestDescribeLoad(t *testing.T) {
	for _, test := range []struct {
		load load
		want string
	}{
		{load{}, "wrk -t2 -c64"},
		{load{http2: true}, "h2load -t2 -c16 -m8"},
		{load{grpc: true}, "64 callers on 8 connections"},
		{load{http2: true, rate: 1234.4}, "1234 requests a second, half of what nginx reaches"},
	} {
		if got := test.load.String(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%+v: got %q, want %q", test.load, got, test.want)
		}
	}
}
