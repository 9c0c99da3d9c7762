//go:build unix

package client

import (
	"io"
	"os"
	"syscall"
)

// raw is the descriptor of a connection, if the connection has one.
type raw struct {
	conn syscall.RawConn // nil without a descriptor

	// The callbacks are made once for a connection, because making one allocates.
	look    func(fd uintptr)
	talk    func(fd uintptr) bool
	check   bool // talk must check the connection first
	isQuiet bool
	peeked  [1]byte

	out []byte // what talk must write
	in  []byte // where talk reads into
	got int    // bytes that talk read
	err error
}

func (r *raw) use(conn any) {
	able, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := able.SyscallConn(); err == nil {
		r.conn, r.look, r.talk = raw, r.lookAt, r.talkTo
	}
}

func (r *raw) known() bool { return r.conn != nil }

// quiet reports whether an idle connection is open and has no unread bytes.
func (r *raw) quiet() bool {
	return r.conn.Control(r.look) == nil && r.isQuiet
}

func (r *raw) lookAt(fd uintptr) {
	for {
		_, _, err := syscall.Recvfrom(int(fd), r.peeked[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != syscall.EINTR {
			r.isQuiet = err == syscall.EAGAIN
			return
		}
	}
}

// begin prepares exchange: it writes out, and then reads into in. check says that the
// connection was idle.
func (r *raw) begin(out, in []byte, check bool) {
	r.out, r.in, r.check, r.got, r.err = out, in, check, 0, nil
}

// exchange writes and reads in one call of the descriptor's Read. The runtime prepares the
// wait for the answer before the request is written. Therefore no answer is missed, and a
// read that finds nothing yet is saved. exchange may be called again after an error of the
// deadline. It returns early if the connection does not take all of out.
func (r *raw) exchange() (n int, err error) {
	if err := r.conn.Read(r.talk); err != nil {
		return 0, err
	}
	return r.got, r.err
}

// unsent returns the bytes that exchange has not written.
func (r *raw) unsent() []byte { return r.out }

func (r *raw) talkTo(fd uintptr) (done bool) {
	if len(r.out) > 0 {
		if r.check {
			if r.lookAt(fd); !r.isQuiet {
				r.err = errStale
				return true
			}
		}
		r.write(int(fd))
		return r.err != nil || len(r.out) > 0
	}
	return r.read(int(fd))
}

// write writes as much of out as the connection takes.
func (r *raw) write(fd int) {
	for {
		n, err := syscall.Write(fd, r.out)
		switch err {
		case nil:
			r.out = r.out[n:]
			return
		case syscall.EINTR:
		case syscall.EAGAIN:
			return
		default:
			r.err = os.NewSyscallError("write", err)
			return
		}
	}
}

// read returns false if no byte has arrived.
func (r *raw) read(fd int) (done bool) {
	for {
		n, err := syscall.Read(fd, r.in)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			r.err = os.NewSyscallError("read", err)
		case n == 0:
			r.err = io.EOF
		default:
			r.got = n
		}
		return true
	}
}
