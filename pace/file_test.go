package pace_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/testkit/fifo"
	"github.com/headgate/headgate/pace"
)

// fileNotes is a Receiver that records its calls and their times.
type fileNotes struct {
	mu       sync.Mutex
	assigned []pace.Assignment
	at       []time.Time
	faults   []error
}

func (n *fileNotes) Assign(a pace.Assignment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assigned, n.at = append(n.assigned, a), append(n.at, time.Now())
}

func (n *fileNotes) Fault(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, err)
}

func (n *fileNotes) ValidUntil(time.Time)      {}
func (n *fileNotes) Brake(pace.Brake)          {}
func (n *fileNotes) ClockOffset(time.Duration) {}
func (n *fileNotes) Demand() int64             { return 0 }

// Rate implements pace.Receiver. This source gives plans.
func (*fileNotes) Rate(pace.Rate) {}

// Requested implements pace.Receiver.
func (*fileNotes) Requested() (total, waiting int64) { return 0, 0 }

// limits gives the assigned limits, and the number of faults.
func (n *fileNotes) limits() (limits []int64, faults int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.assigned {
		limits = append(limits, a.Plan.Limit)
	}
	return limits, len(n.faults)
}

// note gives assignment i, and its time.
func (n *fileNotes) note(i int) (pace.Assignment, time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.assigned[i], n.at[i]
}

func (n *fileNotes) fault(i int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults[i]
}

func documentOf(limit int64) string { return fmt.Sprintf(`{"limit":%d,"instances":4}`, limit) }

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// followFile follows a file in a bubble, until the end of the test.
func followFile(t *testing.T, c pace.FileConfig) *fileNotes {
	t.Helper()
	source, err := pace.File(c)
	if err != nil {
		t.Fatal(err)
	}
	notes := &fileNotes{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Follow(ctx, notes) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Follow ended with %v", err)
		}
	})
	synctest.Wait()
	return notes
}

// want compares the calls so far.
func (n *fileNotes) want(t *testing.T, faults int, limits ...int64) {
	t.Helper()
	synctest.Wait()
	gotLimits, gotFaults := n.limits()
	if !slices.Equal(gotLimits, limits) || gotFaults != faults {
		t.Fatalf("limits %v and %d faults were told, want %v and %d", gotLimits, gotFaults, limits, faults)
	}
}

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble: it takes no time
	synctest.Wait()
}

func TestFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mail.json")
		writeFile(t, path, documentOf(100))
		notes := followFile(t, pace.FileConfig{Path: path, Index: 3})
		notes.want(t, 0, 100)
		first, _ := notes.note(0)
		if first.Plan.Index != 3 || first.Plan.Instances != 4 || first.Revision != 1 || !first.Settled.IsZero() || first.From != 0 {
			t.Fatalf("the first plan is told as %+v", first)
		}

		pass(10 * time.Second)
		notes.want(t, 0, 100)
		writeFile(t, path, documentOf(200))
		pass(time.Second)
		notes.want(t, 0, 100, 200)
		if a, at := notes.note(1); a.Revision != 2 || a.Settled.Sub(at) != 2*time.Second {
			t.Fatalf("revision %d is settled %v after it is told", a.Revision, a.Settled.Sub(at))
		}

		writeFile(t, path, documentOf(50))
		pass(time.Second)
		notes.want(t, 0, 100, 200, 50)
		if a, at := notes.note(2); a.Revision != 3 || a.Settled.Sub(at) != 2*time.Second {
			t.Fatalf("revision %d is settled %v after it is told", a.Revision, a.Settled.Sub(at))
		}
	})
}

// TestFileSameStamp: a new version is found although it has the same size, time and inode as the
// one before.
func TestFileSameStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mail.json")
		then := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
		for i, limit := range []int64{100, 900} {
			writeFile(t, path, documentOf(limit))
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				followFile(t, pace.FileConfig{Path: path}).want(t, 0, 100)
			}
		}
		notes := followFile(t, pace.FileConfig{Path: path})
		notes.want(t, 0, 900)
		writeFile(t, path, documentOf(700))
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		notes.want(t, 0, 900, 700)
	})
}

// TestFileKeepsTheLastGood: an invalid version is one fault. A return to the version in use is
// not a change.
func TestFileKeepsTheLastGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mail.json")
		writeFile(t, path, documentOf(100))
		notes := followFile(t, pace.FileConfig{Path: path})
		faults := 0
		fault := func(do func(), words string) {
			t.Helper()
			do()
			pass(10 * time.Second)
			faults++
			notes.want(t, faults, 100)
			if text := notes.fault(faults - 1).Error(); !strings.Contains(text, words) || !strings.Contains(text, path) || !strings.Contains(text, "kept") {
				t.Errorf("the fault is %q, want %q and the file's name in it", text, words)
			}
		}
		fault(func() { writeFile(t, path, "") }, "ends too soon")
		fault(func() { writeFile(t, path, `{"limit":5,"instan`) }, "ends too soon")
		fault(func() { writeFile(t, path, `{"limit":5,"instan `) }, "ends too soon") // another version with the same fault
		fault(func() { writeFile(t, path, `{"limit":-1,"instances":4}`) }, "whole number")
		fault(func() { writeFile(t, path, documentOf(5)+strings.Repeat(" ", 1<<20)) }, "more than")
		fault(func() { os.Remove(path) }, "no such file")
		fault(func() { os.Mkdir(path, 0o700) }, "not a regular file")
		os.Remove(path)
		writeFile(t, path, documentOf(100))
		pass(10 * time.Second)
		notes.want(t, faults, 100)
		writeFile(t, path, documentOf(7))
		pass(time.Second)
		notes.want(t, faults, 100, 7)
		if a, _ := notes.note(1); a.Revision != 2 {
			t.Errorf("the second accepted version has revision %d", a.Revision)
		}
	})
}

// TestFileGoneBeforeFollow: the version that File has read is reported, although the file became
// invalid before Follow.
func TestFileGoneBeforeFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mail.json")
		writeFile(t, path, documentOf(100))
		source, err := pace.File(pace.FileConfig{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, "{")
		ctx, cancel := context.WithCancel(t.Context())
		// Two Follows at once: the source has no state of its followers.
		var notes [2]fileNotes
		var ended sync.WaitGroup
		for i := range notes {
			ended.Go(func() { source.Follow(ctx, &notes[i]) })
		}
		synctest.Wait()
		for i := range notes {
			notes[i].want(t, 1, 100)
		}
		writeFile(t, path, documentOf(300))
		pass(time.Second)
		for i := range notes {
			notes[i].want(t, 1, 100, 300)
		}
		cancel()
		before := time.Now()
		ended.Wait()
		if elapsed := time.Since(before); elapsed != 0 {
			t.Errorf("Follow ended %v after its context", elapsed)
		}
	})
}

// TestFileReadAnew: a version from before Follow is the first plan, and not a change.
func TestFileReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mail.json")
		writeFile(t, path, documentOf(100))
		source, err := pace.File(pace.FileConfig{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, documentOf(200))
		ctx, cancel := context.WithCancel(t.Context())
		var notes fileNotes
		ended := make(chan error)
		go func() { ended <- source.Follow(ctx, &notes) }()
		notes.want(t, 0, 200)
		if a, _ := notes.note(0); a.Revision != 1 || !a.Settled.IsZero() {
			t.Errorf("the first plan is told as %+v", a)
		}
		cancel()
		<-ended
	})
}

// TestFileReplaced replaces the file in the ways of common programs.
func TestFileReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		// a Kubernetes volume: mail.json -> ..data/mail.json, and ..data -> ..1
		for i, limit := range []int64{100, 200} {
			must(os.Mkdir(at(fmt.Sprintf("..%d", i+1)), 0o700))
			writeFile(t, at(fmt.Sprintf("..%d/mail.json", i+1)), documentOf(limit))
		}
		must(os.Symlink("..1", at("..data")))
		must(os.Symlink("..data/mail.json", at("mail.json")))
		volume := followFile(t, pace.FileConfig{Path: at("mail.json")})
		must(os.Symlink("..2", at("..data_tmp")))
		must(os.Rename(at("..data_tmp"), at("..data")))
		must(os.RemoveAll(at("..1")))
		pass(time.Second)
		volume.want(t, 0, 100, 200)

		writeFile(t, at("plain.json"), documentOf(1))
		plain := followFile(t, pace.FileConfig{Path: at("plain.json")})
		writeFile(t, at("new"), documentOf(2))
		must(os.Rename(at("new"), at("plain.json")))
		pass(time.Second)
		plain.want(t, 0, 1, 2)
	})
}

// TestFileLowersBeforeItRaises: instances read a change at different times. In no window do the
// parts add up to more than the greater limit.
func TestFileLowersBeforeItRaises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4
		path := filepath.Join(t.TempDir(), "mail.json")
		writeFile(t, path, documentOf(100))
		var all [n]*fileNotes
		for i := range all {
			all[i] = followFile(t, pace.FileConfig{Path: path, Index: i})
			pass(230 * time.Millisecond)
		}
		writeFile(t, path, `{"limit":60,"instances":3,"index":0}`)
		pass(3 * time.Second)
		// Only the first instance accepts this version: the others have another index.
		all[0].want(t, 0, 100, 60)
		all[1].want(t, 1, 100)

		writeFile(t, path, documentOf(500))
		pass(3 * time.Second)
		var known, settled time.Time // the last instance to read the change, the first one to raise its part
		for i, notes := range all {
			limits, _ := notes.limits()
			a, at := notes.note(len(limits) - 1)
			if a.Plan.Limit != 500 {
				t.Fatalf("instance %d has not been told", i)
			}
			if at.After(known) {
				known = at
			}
			if settled.IsZero() || a.Settled.Before(settled) {
				settled = a.Settled
			}
		}
		if !settled.After(known) {
			t.Errorf("an instance goes up at %v, and another knows of it at %v", settled, known)
		}
	})
}

// TestFileTooLarge: a file above the bound of a document is not read completely.
func TestFileTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mail.json")
	writeFile(t, path, documentOf(100))
	if err := os.Truncate(path, 64<<20); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := pace.File(pace.FileConfig{Path: path})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 16384 bytes") {
		t.Errorf("a file of 64 MiB: got %v", err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
		t.Errorf("a file of 64 MiB took %d bytes of memory", allocated)
	}
}

func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	writeFile(t, good, documentOf(100))
	bad := filepath.Join(dir, "bad.json")
	writeFile(t, bad, `{"limit":100}`)
	pipe := filepath.Join(dir, "pipe")
	if err := fifo.Make(pipe); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config pace.FileConfig
		is     error
		want   string
	}{
		{pace.FileConfig{}, nil, "Path"},
		{pace.FileConfig{Path: filepath.Join(dir, "none.json")}, fs.ErrNotExist, "none.json"},
		{pace.FileConfig{Path: dir}, nil, "not a regular file"},
		{pace.FileConfig{Path: pipe}, nil, "not a regular file"},
		{pace.FileConfig{Path: bad}, schedule.ErrPlan, "instances is missing"},
		{pace.FileConfig{Path: good, Index: -1}, schedule.ErrPlan, "index is missing"},
		{pace.FileConfig{Path: good, Index: 4}, schedule.ErrPlan, "from 0 to 3"},
		{pace.FileConfig{Path: good, Index: -2}, nil, "-1 when"},
		{pace.FileConfig{Path: good, Every: time.Millisecond}, nil, "Every"},
		{pace.FileConfig{Path: good, Every: -time.Second}, nil, "Every"},
		{pace.FileConfig{Path: good, Settle: 999 * time.Millisecond}, nil, "Settle"},
		{pace.FileConfig{Path: good, Settle: -1}, nil, "Settle"},
	} {
		source, err := pace.File(c.config)
		if err == nil || source != nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%+v: got %v, want %q", c.config, err, c.want)
		}
	}
}
