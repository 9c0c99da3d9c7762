package report_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
)

// logged is a log whose lines a test awaits.
type logged chan string

// Write implements io.Writer.
func (l logged) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestUnstated: answers without usage write one line an hour for each rule, with what to do.
func TestUnstated(t *testing.T) {
	log := make(logged, 10)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	r := report.New(report.Config{Log: slog.New(slog.NewTextHandler(log, nil)), Clock: func() time.Time { return now }})
	defer r.Close()
	rules := []guard.Rule{{Rule: rule.Rule{Name: "a"}}, {Rule: rule.Rule{Name: "b"}}}
	observer, ok := r.Follow(rules).(guard.UsageObserver)
	if !ok {
		t.Fatal("the observer is not told of answers without usage")
	}
	for _, step := range []struct {
		rule  int
		after time.Duration
		want  string // a part of the line; "" for none
	}{
		{0, 0, "rule=a cause=no_usage answers=1 "},
		{0, time.Minute, ""},
		{1, 0, "rule=b cause=no_usage answers=1 "},
		{0, time.Hour - time.Minute, "rule=a cause=no_usage answers=2 "},
		{0, 0, ""},
		{0, time.Hour, "answers=2 "},
	} {
		now = now.Add(step.after)
		if observer.ObserveUnstated(&rules[step.rule], "no_usage"); step.want == "" {
			continue
		}
		select {
		case line := <-log:
			if !strings.Contains(line, step.want) || !strings.Contains(line, "include_usage") {
				t.Errorf("rule %d after %v: %q", step.rule, step.after, line)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("rule %d after %v: no line", step.rule, step.after)
		}
	}
	select {
	case line := <-log:
		t.Errorf("another line: %q", line)
	default:
	}
}
