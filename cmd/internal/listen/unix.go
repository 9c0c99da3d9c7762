package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxUnixPath is the maximum length of a path in the kernel's address, without the
	// terminating zero.
	maxUnixPath = 107
	// socketMode lets the group connect, for example a web server or a sidecar.
	socketMode = 0o660
	// probeTimeout bounds a connect to a server on this machine.
	probeTimeout = time.Second
)

// openUnix listens on a socket file. It removes a file that an earlier process left behind,
// if no process serves it.
func openUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := checkUnixPath(path); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	ln, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, advise(err)
	}
	u := &unixListener{Listener: ln, path: path}
	if unix, ok := ln.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // Unlinking by path could remove the file of another process.
	}
	if err = os.Chmod(path, socketMode); err == nil {
		u.file, err = os.Lstat(path)
	}
	if err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen: unix:%s: %w: make sure that no other process uses the path", path, err)
	}
	return u, nil
}

func checkUnixPath(path string) error {
	if !filepath.IsAbs(path) || len(path) > maxUnixPath {
		return fmt.Errorf("listen: unix:%s: the path must begin with / and have at most %d bytes: write another", path, maxUnixPath)
	}
	return nil
}

// Probe checks whether Open could create the socket file of an address, without creating it. A
// socket that a process serves is valid, because that process may be the one to replace. For
// other addresses, Probe checks nothing.
func Probe(address string) error {
	path, found := strings.CutPrefix(address, "unix:")
	if !found {
		return nil
	}
	if err := checkUnixPath(path); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen: %s exists and is not a socket: remove it, or choose another path", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".headgate-probe-")
	if err != nil {
		return advise(err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// removeStale removes a socket that refuses connections, because no process serves it.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen: %w: allow the user of the process to read the folder", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen: %s exists and is not a socket: remove it, or choose another path", path)
	}
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("listen: another process serves unix:%s: stop it, or choose another path", path)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("listen: unix:%s may be in use: %w: stop the process that serves it, or remove the file", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen: the stale socket of an ended process could not be removed: %w: remove it", err)
	}
	return nil
}

// unixListener removes its socket file when it is closed, if the file is still its own.
type unixListener struct {
	net.Listener

	path string
	file os.FileInfo
	once sync.Once
}

// Close implements net.Listener. It removes the file first, so that no client connects to a
// closed socket.
func (u *unixListener) Close() error {
	u.once.Do(func() {
		if now, err := os.Lstat(u.path); err == nil && os.SameFile(now, u.file) {
			_ = os.Remove(u.path)
		}
	})
	return u.Listener.Close()
}
