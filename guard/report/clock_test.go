package report_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
)

// TestStoreClock: requests without the store's clock are counted, and logged once a minute with the difference.
func TestStoreClock(t *testing.T) {
	now := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	var text bytes.Buffer
	r := report.New(report.Config{Log: slog.New(slog.NewTextHandler(&text, nil)), Clock: func() time.Time { return now }})
	defer r.Close()
	rules := []guard.Rule{{Rule: rule.Rule{Name: "month"}}}
	observer := r.Follow(rules)
	edge := &headgate.EdgeError{At: headgate.Instant(now.Add(100 * 24 * time.Hour).UnixNano())}
	observe := func(err error) {
		a := guard.Answer{StoreError: err, Results: []guard.Result{{Rule: &rules[0]}}}
		observer.Observe(&headgate.Request{}, &a)
	}
	for range 1000 {
		observe(edge)
	}
	observe(errors.New("another error"))
	if got := text.String(); strings.Count(got, "the clock of the store is wrong") != 1 || !strings.Contains(got, "store_ahead=2400h0m0s") {
		t.Errorf("want one line with the difference, got %s", got)
	}
	now = now.Add(time.Minute)
	observe(edge)
	if got := text.String(); strings.Count(got, "the clock of the store is wrong") != 2 || !strings.Contains(got, "requests=1000") {
		t.Errorf("want a second line with the 1000 requests since the first, got %s", got)
	}
	if n := r.ClockErrors(); n != 1001 {
		t.Errorf("%d errors, want 1001", n)
	}
	now = now.Add(-48 * time.Hour)
	for range 2 {
		observe(edge)
	}
	if got := text.String(); strings.Count(got, "the clock of the store is wrong") != 3 {
		t.Errorf("want one more line after this machine's clock has stepped back, got %s", got)
	}
}
