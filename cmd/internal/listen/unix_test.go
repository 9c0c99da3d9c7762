package listen

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// leftBehind creates the socket file of a process that has ended.
func leftBehind(t *testing.T, path string) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	leftBehind(t, path)
	l := listener(t, Config{Address: "unix:" + path})
	conns := accepted(l)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket has mode %v (%v), want 0660", info.Mode(), err)
	}
	dial(t, l.Addr())
	(<-conns).Close()
	if _, err := Open(t.Context(), Config{Address: "unix:" + path}); err == nil || !strings.Contains(err.Error(), "another process serves") {
		t.Errorf("a second Open of the path returned %v", err)
	}
	(<-conns).Close() // The second listener connects to check whether a process serves the path.
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close the file still exists: %v", err)
	}
}

func TestUnixSocketSparesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Address: "unix:" + file}); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("Open with a regular file at the path returned %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "dear" {
		t.Errorf("the file has the content %q (%v)", text, err)
	}
	// The file belongs to another process now and must stay.
	path := filepath.Join(dir, "x.sock")
	l := listener(t, Config{Address: "unix:" + path})
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	leftBehind(t, path)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other process's socket was removed: %v", err)
	}
}
