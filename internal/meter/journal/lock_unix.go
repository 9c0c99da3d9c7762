//go:build unix

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock takes the lock of a folder. The machine frees it when the process ends, however it ends.
func lock(folder string) (*os.File, error) {
	name := filepath.Join(folder, lockFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("journal %s is in use by another process: give each instance a folder of its own", folder)
	}
	return nil, fmt.Errorf("lock %s: %w", name, err)
}
