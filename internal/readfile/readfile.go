// Package readfile reads files at paths from an operator, with limits on time and memory.
//
// The package reads only regular files and links to them. A named pipe without a writer,
// a terminal or a device could block the reader forever or never end.
package readfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/errortype"
)

// Timeout limits one read, because a network file system may never answer. The largest
// file is a region database of 512 MiB, which needs 54 MB/s to arrive in time.
const Timeout = 10 * time.Second

// ErrNotRegular means that the path is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// ErrTimeout means that the file system did not answer within Timeout.
var ErrTimeout = fmt.Errorf("the file system did not answer within %s", Timeout)

// Head returns the first n bytes of a regular file, or the full file if it is shorter. To
// limit the size of a file, read one byte more than the limit. The error is an
// *fs.PathError.
//
// After ErrTimeout the file system call continues in a goroutine until the file system
// answers. A caller that reads repeatedly should use one Pending, which has at most one
// such goroutine for each path.
func Head(path string, n int64) ([]byte, error) {
	var one Pending[[]byte]
	return one.Do(path, func() ([]byte, error) { return HeadNow(path, n) })
}

// HeadNow is Head without Timeout, for use in Pending.Do.
func HeadNow(path string, n int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	size := int64(0)
	if info, failed := file.Stat(); failed == nil {
		size = min(info.Size(), n) // Growth would copy a large file several times. The size of a kernel file is 0 or a guess.
	}
	data := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = data.ReadFrom(io.LimitReader(file, n))
	if closed := file.Close(); err == nil {
		err = closed
	}
	return data.Bytes(), err
}

// Open opens a regular file for reading. Open does not wait for a writer or for another
// process's lease. A read of a kernel file that blocks ends after Timeout.
func Open(path string) (*os.File, error) {
	// Opening a device may have effects, so check the type first.
	info, err := os.Stat(path)
	if bad, found := errortype.As[*fs.PathError](err); found {
		bad.Op = "open" // the caller called Open, not Stat
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
		err = regular(path, info) // The path may refer to another file since the check.
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	_ = file.SetReadDeadline(time.Now().Add(Timeout)) // Files on disks do not support deadlines.
	return file, nil
}

func regular(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w but %s", ErrNotRegular, kindOf(info.Mode()))}
}

// kindOf names the kind of a file that is not regular.
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
