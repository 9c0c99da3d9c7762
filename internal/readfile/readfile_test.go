package readfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/testkit/fifo"
)

func TestHead(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("content"), 0o600))
	must(os.Mkdir(at("..data"), 0o700))
	must(os.WriteFile(at("..data/key"), []byte("key"), 0o600))
	must(os.Symlink("..data/key", at("link")))
	must(fifo.Make(at("pipe")))
	must(os.Symlink("pipe", at("link to a pipe")))
	ln, err := net.Listen("unix", at("socket"))
	must(err)
	defer ln.Close()
	for _, row := range []struct {
		path string
		n    int64
		want string
		err  error
		says string
	}{
		{at("file"), 100, "content", nil, ""},
		{at("file"), 4, "cont", nil, ""},
		{at("link"), 100, "key", nil, ""},
		{at("none"), 100, "", fs.ErrNotExist, "no such file"},
		{at("pipe"), 100, "", ErrNotRegular, "not a regular file but a pipe"},
		{at("link to a pipe"), 100, "", ErrNotRegular, "not a regular file but a pipe"},
		{at("socket"), 100, "", ErrNotRegular, "not a regular file but a socket"},
		{folder, 100, "", ErrNotRegular, "not a regular file but a folder"},
		{"/dev/zero", 100, "", ErrNotRegular, "not a regular file but a device"},
	} {
		got, err := Head(row.path, row.n)
		if string(got) != row.want || !errors.Is(err, row.err) || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %q and %v, want %q and %q", row.path, got, err, row.want, row.says)
		}
		if _, isPath := errortype.As[*fs.PathError](err); err != nil && !isPath {
			t.Errorf("got error %v of type %T", err, err)
		}
	}
}

// TestTimeout checks that a call that does not end uses one goroutine for any number of
// Do calls. When the call ends, Do returns its result.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pending[string]
		var begun atomic.Int32
		answer := make(chan string)
		stuck := func() (string, error) { begun.Add(1); return <-answer, nil }
		for range 3 {
			began := time.Now()
			if _, err := p.Do("/stuck", stuck); !errors.Is(err, ErrTimeout) || time.Since(began) != Timeout {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		}
		if text, err := p.Do("/other", func() (string, error) { return "other", nil }); text != "other" || err != nil {
			t.Errorf("another path: got %q, %v", text, err)
		}
		if n := begun.Load(); n != 1 {
			t.Errorf("got %d calls, want 1", n)
		}
		go func() {
			synctest.Wait() // Until Do waits: an earlier answer would end the call, and Do would begin another one.
			answer <- "late"
		}()
		if text, err := p.Do("/stuck", stuck); text != "late" || err != nil {
			t.Errorf("after the end of the call: got %q, %v", text, err)
		}
		if text, err := p.Do("/stuck", func() (string, error) { return "new", nil }); text != "new" || err != nil {
			t.Errorf("the next call: got %q, %v", text, err)
		}
	})
}

// TestLargeFileIsReadOnce checks that a file of 32 MiB needs little more memory than its size. Growth in steps
// took 74 MiB, and the time of the copies.
func TestLargeFileIsReadOnce(t *testing.T) {
	const size, most = 32 << 20, 40 << 20
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, err := HeadNow(path, size+1)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; err != nil || len(text) != size || allocated > most {
		t.Errorf("got %d bytes, %v, and %d bytes of memory; want %d bytes and at most %d of memory", len(text), err, allocated, size, most)
	}
}
