package readfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenOfALeasedFile checks a file with the lease of another process. A plain open
// would wait for up to 45 seconds.
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
		t.Fatalf("cannot set a lease on the file: %v", errno)
	}
	if _, err := Head(path, 1); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("a leased file: got %v, want %v", err, syscall.EWOULDBLOCK)
	}
}
