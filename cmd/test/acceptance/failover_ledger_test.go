package acceptance

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"
)

// ledger has the data of clients and of the access log about an outage.
type ledger struct {
	t     *testing.T
	shots []shot
	log   string
	keys  map[string]*account // by path
	// durations has an upper bound for the duration of each decision: the time of the request in the
	// proxy, minus the time of the upstream.
	durations []time.Duration
	// all has the same durations with the times of the requests. control has those of requests without a store.
	all     []fall
	control lateness
	// histogram is the bound of the metric's bucket with the 99.9th percentile of the decisions.
	histogram string
	// given is the number of openings of breakers, by the metric.
	given int
	// fell are the decisions of fallbacks. lastFall is the time of the last request among them.
	fell     []fall
	lastFall time.Time
}

// fall is a decision, usually of a fallback: the time of its request, and an upper bound for its
// duration.
type fall struct {
	at      time.Time
	elapsed time.Duration
	path    string
}

// account has the decisions of one key.
type account struct {
	rule string
	// asked counts all requests, and admitted those that the store allowed. fell counts the
	// decisions of fallbacks, and passed those of them that allowed.
	asked, admitted, fell, passed int
	// seconds and spare count the units that the store and a fallback allowed, by the second of At.
	seconds, spare map[int64]int
}

func (l *ledger) read(path string) {
	l.t.Helper()
	log, err := os.Open(path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		l.note(lines.Bytes())
	}
}

func (l *ledger) note(text []byte) {
	l.t.Helper()
	var line struct {
		Time             time.Time   `json:"time"`
		URI              string      `json:"uri"`
		Rule             string      `json:"rule"`
		Verdict          string      `json:"verdict"`
		Reason           string      `json:"reason"`
		DecidedAt        json.Number `json:"decided_at"`
		Duration         float64     `json:"duration"`
		UpstreamDuration float64     `json:"upstream_duration"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	elapsed := time.Duration((line.Duration - line.UpstreamDuration) * float64(time.Second))
	if line.URI == controlPath {
		l.control.note(line.Time, elapsed)
		return
	}
	a := l.keys[line.URI]
	if a == nil {
		a = &account{rule: line.Rule, seconds: map[int64]int{}, spare: map[int64]int{}}
		l.keys[line.URI] = a
	}
	a.asked++
	l.durations, l.all = append(l.durations, elapsed), append(l.all, fall{line.Time, elapsed, line.URI})
	fell, passed := line.Reason == "store_unavailable", line.Verdict == "allow"
	second := int64(0)
	if line.DecidedAt != "" {
		second = micros(l.t, line.DecidedAt.String()) / 1e6
	}
	switch {
	case fell:
		l.fell = append(l.fell, fall{line.Time, elapsed, line.URI})
		a.fell++
		if line.Time.After(l.lastFall) {
			l.lastFall = line.Time
		}
		if passed {
			a.passed++
			a.spare[second]++
		}
	case passed:
		a.admitted++
		a.seconds[second]++
	}
}

// complete checks that every request got an answer with an expected status.
func (l *ledger) complete() {
	l.t.Helper()
	for _, s := range l.shots {
		switch {
		case s.err != nil:
			l.t.Fatalf("%s has no answer: %v", s.path, s.err)
		case s.status != http.StatusNoContent && s.status != http.StatusTooManyRequests && s.status != http.StatusServiceUnavailable:
			l.t.Fatalf("%s is answered %d, want 204, 429 or 503", s.path, s.status)
		}
	}
	asked := 0
	for _, a := range l.keys {
		asked += a.asked
	}
	if asked < len(l.shots) {
		l.t.Errorf("%d requests are in the access log, %d were answered", asked, len(l.shots))
	}
}
