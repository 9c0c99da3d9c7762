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
	// maxUnixPath is what the kernel's address takes, without the zero at its end.
	maxUnixPath = 107
	// socketMode lets the group connect: a web server, a mesh, a sidecar.
	socketMode = 0o660
	// probeTimeout is how long a server of this machine may take to answer a connect.
	probeTimeout = time.Second
)

// openUnix listens on a socket file. One that an earlier process left behind is
// removed when nobody answers on it any more.
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
		unix.SetUnlinkOnClose(false) // It would remove the file of whoever listens there by then.
	}
	if err = os.Chmod(path, socketMode); err == nil {
		u.file, err = os.Lstat(path)
	}
	if err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("listen: unix:%s: %w: see that nothing else uses the path", path, err)
	}
	return u, nil
}

func checkUnixPath(path string) error {
	if !filepath.IsAbs(path) || len(path) > maxUnixPath {
		return fmt.Errorf("listen: unix:%s: the path must begin with / and have at most %d bytes: write another", path, maxUnixPath)
	}
	return nil
}

// Probe tells whether Open could make the socket file of an address, and makes none. A socket that a process serves
// is no fault: it may be the process that is replaced. Of other addresses only the form is checked.
func Probe(address string) error {
	path, found := strings.CutPrefix(address, "unix:")
	if !found {
		return nil
	}
	if err := checkUnixPath(path); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen: %s is there and no socket: remove it, or choose another path", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".headgate-probe-")
	if err != nil {
		return advise(err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// removeStale removes a socket that refuses connections: nobody listens on it.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen: %w: see that the folder may be read", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen: %s is there and no socket: remove it, or choose another path", path)
	}
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("listen: another process serves unix:%s: stop it, or choose another path", path)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("listen: unix:%s may be in use: %w: stop what serves it, or remove the file", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen: the socket of a process that is gone is in the way: %w: remove it", err)
	}
	return nil
}

// unixListener removes its file when it is closed, if it is still its own.
type unixListener struct {
	net.Listener

	path string
	file os.FileInfo
	once sync.Once
}

// Close implements net.Listener. The file goes first, so that nobody connects to
// a socket that is no longer listened on.
func (u *unixListener) Close() error {
	u.once.Do(func() {
		if now, err := os.Lstat(u.path); err == nil && os.SameFile(now, u.file) {
			_ = os.Remove(u.path)
		}
	})
	return u.Listener.Close()
}
