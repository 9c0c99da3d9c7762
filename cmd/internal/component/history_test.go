package component

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestHistory: the last 20 changes, the newest first, each with bounded texts.
func TestHistory(t *testing.T) {
	var h History
	if len(h.List()) != 0 || len(h.Marks()) != 0 {
		t.Error("a new history has changes")
	}
	at := time.Unix(1000, 0)
	for n := range 50 {
		h.Add(at.Add(time.Duration(n)*time.Second), fmt.Sprint("file ", n), []string{"rules/a"}, nil, nil)
	}
	all := h.List()
	if len(all) != 20 || all[0].By != "file 49" || all[19].By != "file 30" || !all[0].At.Equal(at.Add(49*time.Second)) {
		t.Errorf("got %d changes, %v to %v", len(all), all[0], all[len(all)-1])
	}
	long := make([]string, 10_000)
	for n := range long {
		long[n] = strings.Repeat("ä", 1000)
	}
	for range 20 {
		h.Add(at, long[0], long, long, errors.New(strings.Repeat("ä", 1<<20)))
	}
	text, err := json.Marshal(h.List())
	if last := h.List()[0]; err != nil || len(text) > 80_000 || last.Changed != 10_000 || len(last.Names) != 10 || len(last.Names[0]) > 128 || len(last.Error) > 300 {
		t.Errorf("got %d bytes, %d names of %d, %d bytes of error, %v", len(text), len(last.Names), last.Changed, len(last.Error), err)
	}
	if all[0].By != "file 49" {
		t.Error("a list has changed after its call")
	}
}

// TestMarks: what live and history show of changes.
func TestMarks(t *testing.T) {
	var h History
	at := time.Unix(1000, 0)
	h.Add(at, "signal", nil, nil, nil)
	h.Add(at, "file h.yaml", []string{"rules/a", "proxy.upstream"}, nil, nil)
	h.Add(at, "source x", []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"}, nil, nil)
	h.Add(at, "operator ann", nil, nil, errors.New("h.yaml:1: bad"))
	want := []string{
		"operator ann: configuration not reloaded: h.yaml:1: bad",
		"source x: configuration changed: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more",
		"file h.yaml: configuration changed: rules/a, proxy.upstream",
		"signal: configuration reloaded, without a change",
	}
	for i, m := range h.Marks() {
		if got := m.By + ": " + m.Text; got != want[i] || !m.At.Equal(at) {
			t.Errorf("mark %d: got %q at %v, want %q", i, got, m.At, want[i])
		}
	}
}
