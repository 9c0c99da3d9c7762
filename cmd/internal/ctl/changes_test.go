package ctl

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestStatusOfChanges checks the table of the last changes, and the line of ctl reload. Texts of an instance cannot control the terminal.
func TestStatusOfChanges(t *testing.T) {
	at := time.Date(2026, 11, 30, 21, 0, 0, 0, time.Local)
	s := admin.ReloadStatus{Loaded: at, Last: []admin.ConfigChange{
		{At: at, By: "operator ann", Changed: 2, Names: []string{"rules/a", "max_memory"}, Waiting: []string{"max_memory"}},
		{At: at, By: "file h.yaml", Error: "h.yaml:1:1: \x1b[2J"},
		{At: at, By: "signal"},
		{At: at, By: "source x", Changed: 12, Names: []string{"rules/a"}},
	}}
	var out bytes.Buffer
	if err := writeStatus(&out, &admin.Status{Reload: s}); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "CHANGED AT")
	got, _, _ = strings.Cut(got, "\n\n")
	want := `           BY            WHAT
2026-11-30 21:00:00  operator ann  rules/a, max_memory; waiting for a restart: max_memory
2026-11-30 21:00:00  file h.yaml   NOT RELOADED: h.yaml:1:1: \x1b[2J
2026-11-30 21:00:00  signal        nothing
2026-11-30 21:00:00  source x      rules/a and 11 more`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := writeReloaded(&out, &s); err != nil || out.String() != "reloaded at 21:00:00; changed: rules/a, max_memory; waiting for a restart: max_memory\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// TestStatusOfAnswers checks the table of the answers, and of the last failures of stores. There are none without any.
func TestStatusOfAnswers(t *testing.T) {
	at := time.Date(2026, 11, 30, 21, 0, 0, 0, time.Local)
	for _, row := range []struct {
		status admin.Status
		want   []string
	}{
		{admin.Status{}, nil},
		{admin.Status{Requests: admin.RequestStatus{Answers: admin.AnswerStatus{
			Headgate: map[string]uint64{"4xx": 3, "canceled": 0}, Service: map[string]uint64{"4xx": 2, "canceled": 1, "failed": 7},
		}}}, []string{"ANSWERS OF  4XX  CANCELED  FAILED\n", "headgate    3    0         -\n", "service     2    1         7\n"}},
		{admin.Status{Store: admin.StoreStatus{Nodes: []admin.NodeStatus{
			{Address: "a:1", LastErrorAt: &at, LastError: "no\x1b answer"}, {Address: "b:1"},
		}}}, []string{"NODE  LAST FAILURE         ERROR\na:1   2026-11-30 21:00:00  no\\x1b answer\n"}},
	} {
		var out bytes.Buffer
		if err := writeStatus(&out, &row.status); err != nil {
			t.Fatal(err)
		}
		for _, want := range row.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("got\n%s\nwant in it\n%s", &out, want)
			}
		}
		if row.want == nil && strings.Contains(out.String(), "ANSWERS OF") {
			t.Errorf("without an answer, got\n%s", &out)
		}
	}
}
