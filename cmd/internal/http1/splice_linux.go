package http1

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Splice moves the next n bytes from src to dst, and returns how many bytes it wrote to dst.
// The bytes stay in the kernel if both connections are TCP or unix stream sockets. Splice
// respects the deadlines of the connections. After an error neither connection can be used
// again: bytes may be lost between them. io.ErrUnexpectedEOF means that src ended early.
func Splice(dst, src net.Conn, n int64, p Progress) (moved int64, err error) {
	to, canWrite := rawConn(dst)
	from, canRead := rawConn(src)
	if !canWrite || !canRead {
		return copyBytes(dst, src, n, p)
	}
	pipe, ok := newPipe()
	if !ok {
		return copyBytes(dst, src, n, p)
	}
	moved, err = pipe.move(to, from, n, p)
	unable := pipe.filled == 0 && moved == 0 && errors.Is(err, unix.EINVAL)
	pipe.release()
	if unable { // The connections are not stream sockets.
		return copyBytes(dst, src, n, p)
	}
	return moved, err
}

func rawConn(c net.Conn) (raw syscall.RawConn, ok bool) {
	able, ok := c.(syscall.Conn)
	if !ok {
		return nil, false
	}
	raw, err := able.SyscallConn()
	return raw, err == nil
}

func (p *pipe) move(dst, src syscall.RawConn, n int64, progress Progress) (moved int64, err error) {
	for moved < n {
		if err := p.fill(src, n-moved); err != nil {
			return moved, err
		}
		for p.filled > 0 {
			progress.beforeWrite()
			out, err := p.drain(dst)
			moved += int64(out)
			progress.wrote(out)
			if err != nil {
				return moved, err
			}
		}
	}
	return moved, nil
}

// fill moves bytes from src into the empty pipe. It waits for src.
func (p *pipe) fill(src syscall.RawConn, most int64) error {
	p.most = int(min(most, pipeBytes))
	if err := src.Read(p.read); err != nil {
		return err
	}
	switch {
	case p.err != nil:
		return os.NewSyscallError("splice", p.err)
	case p.n == 0:
		return io.ErrUnexpectedEOF
	}
	p.filled = p.n
	return nil
}

// readFrom is the callback of fill.
func (p *pipe) readFrom(fd uintptr) (done bool) {
	p.n, p.err = splice(int(fd), p.w, p.most)
	return !errors.Is(p.err, unix.EAGAIN) // The pipe is empty, so the connection has no bytes.
}

// drain moves bytes from the pipe to dst. It waits for dst.
func (p *pipe) drain(dst syscall.RawConn) (n int, err error) {
	if err := dst.Write(p.write); err != nil {
		return 0, &WriteError{err}
	}
	if p.err != nil {
		return 0, &WriteError{os.NewSyscallError("splice", p.err)}
	}
	p.filled -= p.n
	return p.n, nil
}

// writeTo is the callback of drain.
func (p *pipe) writeTo(fd uintptr) (done bool) {
	p.n, p.err = splice(p.r, int(fd), p.filled)
	return !errors.Is(p.err, unix.EAGAIN) // The pipe has bytes, so the connection is full.
}

func splice(from, to, most int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, unix.EINTR) {
			return int(n), err
		}
	}
}
