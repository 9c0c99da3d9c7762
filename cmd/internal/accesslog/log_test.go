package accesslog

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/testkit/fifo"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/race"
)

func TestMain(m *testing.M) { leak.Main(m) }

// output is a log's output that tests can read and block.
type output struct {
	logs.Text

	gate chan struct{} // nil means never blocked
	fail func(b []byte) (int, error)
}

func (o *output) Write(b []byte) (int, error) {
	if o.gate != nil {
		<-o.gate
	}
	if o.fail != nil {
		n, err := o.fail(b)
		_, _ = o.Text.Write(b[:n])
		return n, err
	}
	return o.Text.Write(b)
}

func open(t *testing.T, c Config) *Log {
	t.Helper()
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestFlush checks that lines are written within a second, and the rest when the log closes.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(output)
		l := open(t, Config{Output: out})
		l.Write(complete())
		time.Sleep(gather / 2) //nolint:forbidigo // because the bubble's clock is fake
		l.Write(complete())
		synctest.Wait()
		if got := out.String(); got != "" {
			t.Errorf("a line was written at once: %q", got)
		}
		time.Sleep(gather / 2) //nolint:forbidigo // because the bubble's clock is fake
		synctest.Wait()
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("got %d lines after %v, want 2", n, gather)
		}
		l.Write(complete())
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		l.Write(complete())
		if n := strings.Count(out.String(), "\n"); n != 3 || l.Dropped() != 1 {
			t.Errorf("got %d lines after Close and %d dropped, want 3 and 1", n, l.Dropped())
		}
		if err := l.Close(); err != nil {
			t.Errorf("the second Close returned %v", err)
		}
	})
}

// TestFullBatch checks that a full batch is written at once.
func TestFullBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(output)
		l := open(t, Config{Output: out})
		for range writeBytes/len(line(JSON, complete())) + 1 {
			l.Write(complete())
		}
		synctest.Wait()
		if got := len(out.String()); got < writeBytes {
			t.Errorf("%d bytes were written at once, want %d", got, writeBytes)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestBlockedOutput checks that a blocked reader delays no request, and that lost lines are
// reported.
func TestBlockedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, report := &output{gate: make(chan struct{})}, new(output)
		l := open(t, Config{Output: out, Report: slog.New(slog.NewTextHandler(report, nil))})
		began, written := time.Now(), uint64(0)
		for l.Dropped() < 1000 {
			l.Write(complete())
			written++
			if written > 2*2*maxPending/100 {
				t.Fatal("no line was dropped")
			}
		}
		if elapsed := time.Since(began); elapsed != 0 {
			t.Errorf("Write blocked for %v", elapsed)
		}
		began = time.Now()
		if err := l.Close(); err == nil || !strings.Contains(err.Error(), "check the reader") {
			t.Errorf("Close returned %v, want an error with advice", err)
		}
		if elapsed := time.Since(began); elapsed != closeTimeout {
			t.Errorf("Close took %v, want closeTimeout", elapsed)
		}
		close(out.gate)
		synctest.Wait()
		if n := uint64(strings.Count(out.String(), "\n")); n+l.Dropped() != written {
			t.Errorf("got %d lines and %d dropped, want %d together", n, l.Dropped(), written)
		}
		if !strings.Contains(report.String(), "lines_lost=1000") {
			t.Errorf("got unexpected report %q", report)
		}
	})
}

// TestFailingOutput checks that a full disk loses and counts lines, and reports the loss
// once. Later lines are complete.
func TestFailingOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, report := new(output), new(output)
		var full atomic.Bool
		full.Store(true)
		out.fail = func(b []byte) (int, error) {
			if full.Load() {
				return min(10, len(b)), syscall.ENOSPC
			}
			return len(b), nil
		}
		l := open(t, Config{Output: out, Report: slog.New(slog.NewTextHandler(report, nil))})
		write := func() {
			l.Write(complete())
			time.Sleep(gather) //nolint:forbidigo // because the bubble's clock is fake
			synctest.Wait()
		}
		for range 3 {
			write()
		}
		full.Store(false)
		write()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if last := lines[len(lines)-1]; !json.Valid([]byte(last)) {
			t.Errorf("the line after the failure is incomplete: %q", out)
		}
		if l.Dropped() != 3 {
			t.Errorf("%d lines were dropped, want 3", l.Dropped())
		}
		if got := report.String(); strings.Count(got, "could not be written") != 2 || !strings.Contains(got, "lines_lost=1") ||
			!strings.Contains(got, "no space left") {
			t.Errorf("the report is %q, want a line at the first failure and at the end", got)
		}
	})
}

// TestReopen checks a rotation: the file is renamed and reopened. Each line is in one of the
// two files.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l := open(t, Config{Format: Combined, File: path})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("the file has mode %v (%v)", info.Mode(), err)
	}
	var writers sync.WaitGroup
	const each = 5000
	for range 4 {
		writers.Go(func() {
			for range each {
				l.Write(complete())
			}
		})
	}
	for _, old := range []string{".1", ".2", ".3"} {
		if err := os.Rename(path, path+old); err != nil {
			t.Fatal(err)
		}
		if err := l.Reopen(); err != nil {
			t.Fatal(err)
		}
	}
	writers.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("Reopen of a closed log succeeded")
	}
	want, n := line(Combined, complete()), 0
	for _, name := range []string{path, path + ".1", path + ".2", path + ".3"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for got := range strings.Lines(string(text)) {
			if got != want {
				t.Fatalf("got an incomplete line %q", got)
			}
			n++
		}
	}
	if n != 4*each || l.Dropped() != 0 {
		t.Errorf("got %d lines and %d dropped, want %d together", n, l.Dropped(), 4*each)
	}
}

// TestReopenIdle checks that an idle log switches to the new file at once, so that the old
// file's space can be freed.
func TestReopenIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l := open(t, Config{File: path})
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Write(complete())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: line(JSON, complete()), path + ".1": ""} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("file %s has %q (%v)", name, text, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if err := fifo.Make(filepath.Join(dir, "pipe")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "choose a file in the folder", filepath.Join(dir, "none", "access.log"): "create the folder",
		filepath.Join(dir, "pipe"): "a pipe without a reader",
	} {
		if _, err := Open(Config{File: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s) returned %v, want %q", path, err, want)
		}
		if err := Probe(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Probe(%s) returned %v, want %q", path, err, want)
		}
	}
	if err := Probe(filepath.Join(dir, "probed.log")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("Probe left the files %v (%v)", entries, err)
	}
	path := filepath.Join(dir, "access.log")
	l := open(t, Config{File: path})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err == nil {
		t.Error("Reopen in a removed folder succeeded")
	}
	l.Write(complete())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(dir + ".away/access.log"); err != nil || len(text) == 0 {
		t.Errorf("after a failed Reopen the old file has %q (%v)", text, err)
	}
	if err := open(t, Config{Output: io.Discard}).Reopen(); err != nil {
		t.Errorf("Reopen without a file returned %v", err)
	}
}

// TestBrokenPipe checks that a pipe without a reader gives an error and does not end the
// process.
func TestBrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	l := open(t, Config{Output: w})
	l.Write(complete())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l.Dropped() != 1 || !errors.Is(l.out.failed, syscall.EPIPE) {
		t.Errorf("%d lines were dropped, Close returned %v", l.Dropped(), l.out.failed)
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	for _, f := range []Format{JSON, Combined} {
		l := open(t, Config{Format: f, Output: io.Discard})
		e := complete()
		if n := testing.AllocsPerRun(1000, func() { l.Write(e) }); n != 0 && !race.On {
			t.Errorf("a line in format %v needs %v allocations, want 0", f, n)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, f := range []Format{JSON, Combined} {
		b.Run(f.String(), func(b *testing.B) {
			l, err := Open(Config{Format: f, Output: io.Discard})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			e := complete()
			e.Aborted = false
			e.UserAgent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
			b.ReportAllocs()
			for b.Loop() {
				l.Write(e)
			}
			b.ReportMetric(float64(l.Dropped())/float64(b.N), "dropped/op")
		})
	}
}
