package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/internal/testkit/fifo"
	"github.com/headgate/headgate/internal/testkit/race"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is what a log is written to, which tests read and block.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	gate chan struct{} // nil lets everything pass
	fail func(b []byte) (int, error)
}

func (o *output) Write(b []byte) (int, error) {
	if o.gate != nil {
		<-o.gate
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		n, err := o.fail(b)
		o.buf.Write(b[:n])
		return n, err
	}
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
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

// Lines reach their reader within a second, and all of them when the log is closed.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(output)
		l := open(t, Config{Output: out})
		l.Write(whole())
		time.Sleep(gather / 2) //nolint:forbidigo // because the bubble's clock is fake
		l.Write(whole())
		synctest.Wait()
		if got := out.String(); got != "" {
			t.Errorf("written at once: %q", got)
		}
		time.Sleep(gather / 2) //nolint:forbidigo // because the bubble's clock is fake
		synctest.Wait()
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("%d lines after %v, want 2", n, gather)
		}
		l.Write(whole())
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		l.Write(whole())
		if n := strings.Count(out.String(), "\n"); n != 3 || l.Dropped() != 1 {
			t.Errorf("%d lines after Close and %d dropped, want 3 and 1", n, l.Dropped())
		}
		if err := l.Close(); err != nil {
			t.Errorf("the second Close gives %v", err)
		}
	})
}

// A full batch does not wait for its time.
func TestFullBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(output)
		l := open(t, Config{Output: out})
		for range writeBytes/len(line(JSON, whole())) + 1 {
			l.Write(whole())
		}
		synctest.Wait()
		if got := len(out.String()); got < writeBytes {
			t.Errorf("%d bytes were written, want %d at once", got, writeBytes)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A reader that stands still delays no request, and what is lost is told.
func TestBlockedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, report := &output{gate: make(chan struct{})}, new(output)
		l := open(t, Config{Output: out, Report: slog.New(slog.NewTextHandler(report, nil))})
		began, written := time.Now(), uint64(0)
		for l.Dropped() < 1000 {
			l.Write(whole())
			written++
			if written > 2*2*maxPending/100 {
				t.Fatal("nothing is dropped")
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("writing waited %v", took)
		}
		began = time.Now()
		if err := l.Close(); err == nil || !strings.Contains(err.Error(), "see what reads") {
			t.Errorf("Close gives %v", err)
		}
		if took := time.Since(began); took != closePatience {
			t.Errorf("Close took %v", took)
		}
		close(out.gate)
		synctest.Wait()
		if n := uint64(strings.Count(out.String(), "\n")); n+l.Dropped() != written {
			t.Errorf("%d lines and %d dropped of %d", n, l.Dropped(), written)
		}
		if !strings.Contains(report.String(), "lines_lost=1000") {
			t.Errorf("the report says %q", report)
		}
	})
}

// A full disk loses lines, counts them, tears none of those that follow, and is told once.
func TestFailingOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, report := new(output), new(output)
		full := true
		out.fail = func(b []byte) (int, error) {
			if full {
				return min(10, len(b)), syscall.ENOSPC
			}
			return len(b), nil
		}
		l := open(t, Config{Output: out, Report: slog.New(slog.NewTextHandler(report, nil))})
		write := func() {
			l.Write(whole())
			time.Sleep(gather) //nolint:forbidigo // because the bubble's clock is fake
			synctest.Wait()
		}
		for range 3 {
			write()
		}
		out.mu.Lock()
		full = false
		out.mu.Unlock()
		write()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if last := lines[len(lines)-1]; !json.Valid([]byte(last)) {
			t.Errorf("the line after the failure is torn: %q", out)
		}
		if l.Dropped() != 3 {
			t.Errorf("%d lines were dropped, want 3", l.Dropped())
		}
		if got := report.String(); strings.Count(got, "cannot be written") != 2 || !strings.Contains(got, "lines_lost=1") ||
			!strings.Contains(got, "no space left") {
			t.Errorf("the report says %q, want it at the first failure and at the end", got)
		}
	})
}

// Rotated: renamed, then reopened. Each line is in one of the two files.
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
				l.Write(whole())
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
		t.Error("a closed log is opened again")
	}
	want, n := line(Combined, whole()), 0
	for _, name := range []string{path, path + ".1", path + ".2", path + ".3"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for got := range strings.Lines(string(text)) {
			if got != want {
				t.Fatalf("torn: %q", got)
			}
			n++
		}
	}
	if n != 4*each || l.Dropped() != 0 {
		t.Errorf("%d lines and %d dropped of %d", n, l.Dropped(), 4*each)
	}
}

// An idle log goes on in the new file at once: the old one's space is free.
func TestReopenIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l := open(t, Config{File: path})
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reopen(); err != nil {
		t.Fatal(err)
	}
	l.Write(whole())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: line(JSON, whole()), path + ".1": ""} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s holds %q (%v)", name, text, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if err := fifo.Make(filepath.Join(dir, "pipe")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "name a file in the folder", filepath.Join(dir, "none", "access.log"): "make the folder",
		filepath.Join(dir, "pipe"): "a pipe without a reader",
	} {
		if _, err := Open(Config{File: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", path, err, want)
		}
		if err := Probe(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a probe of %s gives %v, want %q", path, err, want)
		}
	}
	if err := Probe(filepath.Join(dir, "probed.log")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("probes leave %v (%v)", entries, err)
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
		t.Error("a file in a folder that is gone is opened")
	}
	l.Write(whole())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(dir + ".away/access.log"); err != nil || len(text) == 0 {
		t.Errorf("after a Reopen that failed the old file holds %q (%v)", text, err)
	}
	if err := open(t, Config{Output: io.Discard}).Reopen(); err != nil {
		t.Errorf("a log without a file is reopened with %v", err)
	}
}

// A pipe whose reader went away is an error of the log's, not the end of the process.
func TestBrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	l := open(t, Config{Output: w})
	l.Write(whole())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l.Dropped() != 1 || !errors.Is(l.out.failed, syscall.EPIPE) {
		t.Errorf("%d lines dropped, %v", l.Dropped(), l.out.failed)
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	for _, f := range []Format{JSON, Combined} {
		l := open(t, Config{Format: f, Output: io.Discard})
		e := whole()
		if n := testing.AllocsPerRun(1000, func() { l.Write(e) }); n != 0 && !race.On {
			t.Errorf("a line of %v takes %v allocations, want 0", f, n)
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
			e := whole()
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
