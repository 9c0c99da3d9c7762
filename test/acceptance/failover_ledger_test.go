package acceptance

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"
)

// ledger is what clients and the access log tell of an outage.
type ledger struct {
	t     *testing.T
	shots []shot
	log   string
	keys  map[string]*account // by path
	// took is how long each decision took at most: the time that the proxy had a request for,
	// less that of the upstream.
	took []time.Duration
	// histogram is the bound of the metric's bucket that 999 of 1000 decisions are in.
	histogram string
	// given is how often servers were given up, by the metric.
	given int
	// fell are those that the store did not make, and lastFall is when the last of these was
	// asked for.
	fell     []fall
	lastFall time.Time
}

// fall is a decision of a fallback: when it was asked for, and how long it took at most.
type fall struct {
	at   time.Time
	took time.Duration
}

// account is what was decided under one key.
type account struct {
	rule string
	// asked is all; the store has admitted some, and fallbacks have decided others, and
	// let some of these pass.
	asked, admitted, fell, passed int
	// seconds and spare count what the store, and what a fallback, has admitted by the second
	// of At.
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
	a := l.keys[line.URI]
	if a == nil {
		a = &account{rule: line.Rule, seconds: map[int64]int{}, spare: map[int64]int{}}
		l.keys[line.URI] = a
	}
	a.asked++
	took := time.Duration((line.Duration - line.UpstreamDuration) * float64(time.Second))
	l.took = append(l.took, took)
	fell, passed := line.Reason == "store_unavailable", line.Verdict == "allow"
	second := int64(0)
	if line.DecidedAt != "" {
		second = micros(l.t, line.DecidedAt.String()) / 1e6
	}
	switch {
	case fell:
		l.fell = append(l.fell, fall{line.Time, took})
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

// complete checks that every request has got an answer, and one of those that there are.
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
