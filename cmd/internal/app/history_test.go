package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// changesOf gives the last changes of an instance as lines, the newest first.
func changesOf(i *Instance) (lines []string) {
	for _, c := range i.Status().Reload.Last {
		text := fmt.Sprint(c.By, ": ", c.Changed, " ", c.Names, " ", c.Waiting)
		if c.Error != "" {
			text += " " + c.Error
		}
		lines = append(lines, text)
	}
	return lines
}

// TestHistoryOfReloads: each reload is remembered with its cause, what it has changed and what waits for a restart.
func TestHistoryOfReloads(t *testing.T) {
	o, write, path := following(t, nil)
	i := start(t, o)
	if got := changesOf(i); len(got) != 0 {
		t.Errorf("the start is a change: %q", got)
	}
	write("second", "")
	if err := i.reloadBy("signal"); err != nil {
		t.Fatal(err)
	}
	if _, err := i.reloadNow("operator ann"); err != nil {
		t.Fatal(err)
	}
	write("second", "bogus: 1")
	if s, err := i.reloadNow("operator at ::1"); err != nil || len(s.Last) != 3 {
		t.Errorf("got %v, %v, want three changes in the answer", s.Last, err)
	}
	write("second", "shutdown_timeout: 9s\nlog: {level: debug}")
	_ = i.Reload()
	got := changesOf(i)
	if len(got) != 4 {
		t.Fatalf("got %q, want 4 changes", got)
	}
	for n, want := range []string{
		"program: 2 [log.level shutdown_timeout]", "operator at ::1: 0 [] [] " + path + ":3:1: field \"bogus\" is not known",
		"operator ann: 0 [] []", "signal: 2 [rules/first rules/second] []",
	} {
		if !strings.HasPrefix(got[n], want) {
			t.Errorf("change %d: got %q, want %q", n, got[n], want)
		}
	}
}

// TestHistoryOfASource: a change of the source is remembered with its objects. Its first objects are no change.
func TestHistoryOfASource(t *testing.T) {
	t.Parallel()
	d := serveDocument(t, `{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}, "customers": {"acme": {"note": "a"}, "gone": {}}}`)
	i := startServer(t, serverOptions(t, fmt.Sprintf(followedText, d.URL, filepath.Join(t.TempDir(), "cache"))))
	if got := changesOf(i); len(got) != 0 {
		t.Errorf("the start is a change: %q", got)
	}
	d.set(`{"plans": {"free": {"quotas": {"api_calls": [{"limit": "3/1d"}]}}}, "customers": {"acme": {"note": "b"}, "new": {}}}`)
	eventually(t, "the change", func() bool { return len(changesOf(i)) > 0 })
	got := changesOf(i)
	if len(got) != 1 || !strings.HasPrefix(got[0], "source ") || !strings.HasSuffix(got[0], ": 3 [customers/acme customers/gone customers/new] []") {
		t.Errorf("got %q", got)
	}
}
