package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/meter/journal"
)

func newLines(t *testing.T, c LinesConfig) *Lines {
	t.Helper()
	c.Instance = "eu/1"
	l, err := NewLines(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.start(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return l
}

// filesOf gives the names of a folder's files with a suffix, and their lines.
func filesOf(t *testing.T, folder, suffix string) (names, lines []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name())
		for line := range bytes.Lines(text) {
			if !json.Valid(line) || line[len(line)-1] != '\n' {
				t.Errorf("%s has the line %q", e.Name(), line)
			}
			lines = append(lines, string(line))
		}
	}
	return names, lines
}

func TestLineForm(t *testing.T) {
	r := journal.Record{
		ID: journal.ID{Instance: "i", Epoch: "e", Sequence: 3}, Time: 1_700_000_000_123, Minute: 28_333_333, Customer: "acme",
		Quota: "calls", Admitted: 8, Metered: 2, Refused: 1,
	}
	want := `{"id":"i/e/3","time":"2023-11-14T22:13:20.123Z","minute":"2023-11-14T22:13:00Z","customer":"acme","quota":"calls",` +
		`"admitted":8,"metered":2,"refused":1}` + "\n"
	if got := string(appendLine(nil, &r)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFilesOfLines: files are completed by size, by age and at the end, and the newest stay.
func TestFilesOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "usage")
		l := newLines(t, LinesConfig{Folder: folder, MaxBytes: 1000, MaxAge: time.Minute, Keep: 3})
		deliver := func(n int) {
			t.Helper()
			if got, err := l.Deliver(t.Context(), recordsOf(n)); got != n || err != nil {
				t.Fatalf("delivered %d, %v", got, err)
			}
			<-time.After(time.Millisecond)
		}
		deliver(3)
		deliver(10) // The same file: it had less than 1000 bytes.
		deliver(1)
		names, lines := filesOf(t, folder, linesSuffix)
		if len(names) != 1 || len(lines) != 13 || !strings.HasPrefix(names[0], "usage-eu%2F1-20") {
			t.Errorf("by size: %v with %d lines", names, len(lines))
		}
		<-time.After(time.Minute)
		if err := l.tick(time.Now()); err != nil {
			t.Fatal(err)
		}
		if names, lines := filesOf(t, folder, linesSuffix); len(names) != 2 || len(lines) != 14 {
			t.Errorf("by age: %v with %d lines", names, len(lines))
		}
		for range 4 {
			deliver(13)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if names, lines := filesOf(t, folder, linesSuffix); len(names) != 3 || len(lines) != 39 {
			t.Errorf("the last three: %v with %d lines", names, len(lines))
		}
		if names, _ := filesOf(t, folder, openSuffix); len(names) != 0 {
			t.Errorf("open files: %v", names)
		}
		info, err := os.Stat(filepath.Join(folder, func() string { n, _ := filesOf(t, folder, linesSuffix); return n[0] }()))
		if err != nil || info.Mode().Perm()&^0o640 != 0 {
			t.Errorf("the mode is %v, %v", info.Mode(), err)
		}
	})
}

// TestKeepAfterAClockThatWasWrong: the newest files stay, although older ones have names of a time far ahead.
func TestKeepAfterAClockThatWasWrong(t *testing.T) {
	folder, ahead := t.TempDir(), time.Date(2099, 1, 1, 0, 0, 0, 999_999_999, time.UTC)
	write := func(now time.Time, n int) { // As a start at a time, whose file has n records.
		l := newLines(t, LinesConfig{Folder: folder, Keep: 2})
		if err := l.begin(now); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Deliver(t.Context(), recordsOf(n)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(folder, "usage-eu%2F1-mine-for-the-audit-of-march-no-01.jsonl")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for n, at := range []time.Time{ahead, ahead, time.Unix(1e9, 0), time.Unix(1e9, 0), time.Unix(2e9, 0)} {
		write(at, n+1)
		_, lines := filesOf(t, folder, linesSuffix)
		if want := n + 1 + n; len(lines) != want { // Those of this file and of the one before.
			t.Fatalf("after file %d, the files have %d lines, want %d", n, len(lines), want)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file of another program: %v", err)
	}
}

// TestLinesAfterACrash: the next start completes the file, and cuts a line that was not complete.
func TestLinesAfterACrash(t *testing.T) {
	for _, torn := range []string{"", `{"id":"i`, strings.Repeat("x", 200_000)} {
		folder := t.TempDir()
		l := newLines(t, LinesConfig{Folder: folder})
		if _, err := l.Deliver(t.Context(), recordsOf(2)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.file.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(folder, "usage-other-20060102T150405.000000000Z-000001.jsonl.open")
		if err := os.WriteFile(other, []byte("torn"), 0o600); err != nil { // Another instance writes it now.
			t.Fatal(err)
		}
		newLines(t, LinesConfig{Folder: folder})
		names, lines := filesOf(t, folder, linesSuffix)
		if len(names) != 1 || len(lines) != 2 {
			t.Errorf("%v with %d lines", names, len(lines))
		}
		if text, err := os.ReadFile(other); err != nil || string(text) != "torn" {
			t.Errorf("the file of another instance: %q, %v", text, err)
		}
	}
}

// TestLinesOfAFormerName: an instance ends without Close, and starts under another name, as a pod with a new host name does. Its journal
// says which file it has left. The files of other instances stay open.
func TestLinesOfAFormerName(t *testing.T) {
	folder, journals := t.TempDir(), t.TempDir()
	run := func(instance, journal string) *Lines {
		l, err := NewLines(LinesConfig{Folder: folder, Instance: instance})
		if err == nil {
			err = l.start(filepath.Join(journals, journal))
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := l.Deliver(t.Context(), recordsOf(2)); n != 2 || err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(journals, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run("eu/1", "a")
	run("us", "b")
	for i, name := range []string{"eu/2", "eu/3", "eu/3"} {
		run(name, "a")
		complete, _ := filesOf(t, folder, linesSuffix)
		open, _ := filesOf(t, folder, openSuffix)
		if len(complete) != i+1 || len(open) != 2 || !strings.HasPrefix(open[1], "usage-us-") {
			t.Errorf("after a start as %s, %v are complete and %v open; want %d and 2", name, complete, open, i+1)
		}
	}
}

// TestSecondStartLeavesTheOpenFile: a second process with the same settings fails, and does not touch the file that the first one writes.
func TestSecondStartLeavesTheOpenFile(t *testing.T) {
	folder, lines := t.TempDir(), t.TempDir()
	first := newLines(t, LinesConfig{Folder: lines})
	m := opened(t, Config{Folder: folder, Outputs: []Output{first}})
	defer closed(t, m)
	if n, err := newLinesOnly(t, lines).Deliver(t.Context(), recordsOf(2)); n != 2 || err != nil {
		t.Fatal(err)
	}
	if m, err := Open(Config{Folder: folder, Instance: "i", Outputs: []Output{newLinesOnly(t, lines)}}); err == nil {
		closed(t, m)
		t.Fatal("the second process has started")
	}
	if names, got := filesOf(t, lines, openSuffix); len(names) != 1 || len(got) != 2 {
		t.Errorf("after a second start, %v have %d lines, want one file with 2", names, len(got))
	}
}

// newLinesOnly makes an output that Open has not started.
func newLinesOnly(t *testing.T, folder string) *Lines {
	t.Helper()
	l, err := NewLines(LinesConfig{Folder: folder, Instance: "eu/1"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestFailedWritesOfLines: attempts fail, and leave no further files. Then the same file goes on, without what they have left.
func TestFailedWritesOfLines(t *testing.T) {
	folder := t.TempDir()
	l := newLines(t, LinesConfig{Folder: folder, Keep: 1})
	if n, err := l.Deliver(t.Context(), recordsOf(2)); n != 2 || err != nil {
		t.Fatal(err)
	}
	file := l.file
	broken, err := os.Open(file.Name()) // It can be read only.
	if err != nil {
		t.Fatal(err)
	}
	l.file = broken
	for range 3 {
		if n, err := l.Deliver(t.Context(), recordsOf(2)); n != 0 || err == nil {
			t.Errorf("a failed attempt delivered %d, %v", n, err)
		}
	}
	l.file = file
	if _, err := file.WriteString(recordsText(1) + "torn"); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Deliver(t.Context(), recordsOf(2)); n != 2 || err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(broken.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if names, lines := filesOf(t, folder, ""); len(names) != 1 || len(lines) != 4 {
		t.Errorf("%v have %d lines, want one file with 4", names, len(lines))
	}
}

func recordsText(n int) string {
	var text []byte
	for _, r := range recordsOf(n) {
		text = appendLine(text, &r)
	}
	return string(text)
}

// TestRemovedFileOfLines: the operator removes the file or the folder. The next records are in another file.
func TestRemovedFileOfLines(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "usage")
	l := newLines(t, LinesConfig{Folder: folder})
	for range 2 {
		if n, err := l.Deliver(t.Context(), recordsOf(2)); n != 2 || err != nil {
			t.Fatal(err)
		}
		if _, lines := filesOf(t, folder, openSuffix); len(lines) != 2 {
			t.Errorf("%d lines", len(lines))
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err == nil {
		t.Error("Close completes a file that is gone")
	}
}
