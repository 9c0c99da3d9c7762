package readfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenOfALeasedFile: another process's lease makes a plain open wait for up to 45 seconds.
func TestOpenOfALeasedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const setLease = 1024 // F_SETLEASE
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), setLease, syscall.F_WRLCK); errno != 0 {
		t.Fatalf("the file takes no lease: %v", errno)
	}
	if _, err := Head(path, 1); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("a leased file gives %v, want %v", err, syscall.EWOULDBLOCK)
	}
}
