package meter

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// unsteady is an endpoint that answers at once in virtual time, and fails the requests that fails names by their number.
type unsteady struct {
	mu    sync.Mutex
	fails func(n int) bool
	at    []time.Time
}

func (u *unsteady) RoundTrip(r *http.Request) (*http.Response, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at = append(u.at, time.Now())
	if u.fails(len(u.at)) {
		return nil, errors.New("down")
	}
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// requests are the times of the requests so far.
func (u *unsteady) requests() []time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]time.Time(nil), u.at...)
}

// meterTo opens a meter for an endpoint.
func meterTo(t *testing.T, u *unsteady) *Meter {
	t.Helper()
	out, err := NewCloudEvents(EventsConfig{URL: "http://endpoint", Transport: u})
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, Config{Outputs: []Output{out}})
}

// TestBacklogWithFailures: an endpoint that fails two of five requests gets 30,000 records within seconds, in batches of
// the greatest size.
func TestBacklogWithFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unsteady{fails: func(n int) bool { return n%5 == 1 || n%5 == 2 }}
		m := meterTo(t, u)
		const records = 30_000
		for i := range records {
			m.Count(used(fmt.Sprint("c", i), 1, 1))
		}
		<-time.After(15 * time.Second)
		s := m.Stats().Outputs[0]
		if s.Acknowledged != records || s.Pending != 0 {
			t.Errorf("after 15 s: %+v, want %d acknowledged", s, records)
		}
		if n := len(u.requests()); n > 2*records/DefaultMaxEvents {
			t.Errorf("%d requests, want at most %d", n, 2*records/DefaultMaxEvents)
		}
		closed(t, m)
	})
}

// TestBackoff: the first attempt after a failure comes soon, the next ones later and later up to a minute and a half, and a
// success makes the first one short again.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failures = 15
		u := &unsteady{fails: func(n int) bool { return n <= failures || n == failures+2 }}
		m := meterTo(t, u)
		m.Count(used("c", 1, 1))
		<-time.After(15 * time.Minute)
		m.Count(used("c", 2, 1))
		<-time.After(time.Minute)
		at := u.requests()
		if len(at) != failures+3 {
			t.Fatalf("%d requests, want %d", len(at), failures+3)
		}
		for i, want := 1, 100*time.Millisecond; i <= failures; i, want = i+1, min(2*want, mostBackoff) {
			if gap := at[i].Sub(at[i-1]); gap < want/2 || gap > want*3/2 {
				t.Errorf("attempt %d comes after %v, want %v ± %v", i+1, gap, want, want/2)
			}
		}
		if gap := at[failures+2].Sub(at[failures+1]); gap > 150*time.Millisecond {
			t.Errorf("after a success and a failure, the next attempt comes after %v, want at most 150ms", gap)
		}
		closed(t, m)
	})
}

// TestLoggedTimes: the log has times with their units. A handler for JSON writes a time.Duration as a number of nanoseconds.
func TestLoggedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		u := &unsteady{fails: func(n int) bool { return n <= 3 }}
		out, err := NewCloudEvents(EventsConfig{URL: "http://endpoint", Transport: u})
		if err != nil {
			t.Fatal(err)
		}
		m := opened(t, Config{Outputs: []Output{out}, Log: slog.New(slog.NewJSONHandler(&text, nil))})
		m.Count(used("c", 1, 1))
		<-time.After(time.Minute)
		closed(t, m)
		for _, want := range []string{`"again_in":"\d+ms"`, `"failing_for":"0s"`, `delivered again.*"failing_for":"\d+s"`} {
			if !regexp.MustCompile(want).Match(text.Bytes()) {
				t.Errorf("the log has no %s:\n%s", want, text.String())
			}
		}
	})
}
