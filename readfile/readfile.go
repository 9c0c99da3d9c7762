// Package readfile reads files whose paths an operator wrote, in a bounded time and a bounded amount of memory.
//
// Only regular files are read, and links to them. A named pipe without a writer, a terminal or a
// device in the place of a file would block its reader for good, or never end.
package readfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Timeout bounds one reading: a file system that a network carries may never answer. The largest file that is
// read, a region database of 512 MiB, arrives within it at 54 MB/s.
const Timeout = 10 * time.Second

// ErrNotRegular says that a path names no regular file.
var ErrNotRegular = errors.New("not a regular file")

// ErrTimeout says that a file system did not answer within Timeout.
var ErrTimeout = fmt.Errorf("the file system did not answer within %s", Timeout)

// Head gives the first n bytes of a regular file, or all when the file has fewer. To bound a file, ask for
// one byte more than it may have. The error is an *fs.PathError.
//
// After ErrTimeout the call to the file system goes on in a goroutine until the file system answers. A caller
// that reads again and again uses one Pending, which has at most one such goroutine for a path.
func Head(path string, n int64) ([]byte, error) {
	var one Pending[[]byte]
	return one.Do(path, func() ([]byte, error) { return HeadNow(path, n) })
}

// HeadNow is Head without Timeout, for use within Pending.Do.
func HeadNow(path string, n int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, n))
	if closed := file.Close(); err == nil {
		err = closed
	}
	return data, err
}

// Open opens a regular file for reading. Opening itself does not wait for a writer or for another process's
// lease, and a read of a kernel file that would wait ends after Timeout.
func Open(path string) (*os.File, error) {
	// A device may act when it is opened: look before.
	info, err := os.Stat(path)
	if bad, found := errors.AsType[*fs.PathError](err); found {
		bad.Op = "open" // which is what the caller asked for
	}
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = regular(path, info) // The path may name another file by now.
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_ = file.SetReadDeadline(time.Now().Add(Timeout)) // Files on disks have no deadlines.
	return file, nil
}

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w but %s", ErrNotRegular, kindOf(info.Mode()))}
}

// kindOf names what stands in the place of a file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a special file"
	}
}
