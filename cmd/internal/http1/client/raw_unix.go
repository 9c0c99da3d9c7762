//go:build unix

package client

import (
	"io"
	"os"
	"syscall"

	"github.com/headgate/headgate/cmd/internal/http1/socket"
)

// raw is the descriptor of a connection, if the connection has one.
type raw struct {
	conn syscall.RawConn // nil without a descriptor

	// The callbacks are made once for a connection, because making one allocates.
	look    func(fd uintptr)
	talk    func(fd uintptr) bool
	check   bool // talk must check the connection first
	isQuiet bool

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

func (r *raw) lookAt(fd uintptr) { r.isQuiet = socket.Quiet(fd) }

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
	if len(r.out) == 0 {
		return r.read(fd)
	}
	if r.check && !socket.Quiet(fd) {
		r.err = errStale
		return true
	}
	r.write(fd)
	return r.err != nil || len(r.out) > 0
}

// write writes as much of out as the connection takes at once.
func (r *raw) write(fd uintptr) {
	switch n, errno := socket.Write(fd, r.out); errno {
	case 0:
		r.out = r.out[n:]
	case syscall.EAGAIN:
	default:
		r.err = os.NewSyscallError("write", errno)
	}
}

// read returns false if no byte has arrived.
func (r *raw) read(fd uintptr) (done bool) {
	n, errno := socket.Read(fd, r.in)
	switch {
	case errno == syscall.EAGAIN:
		return false
	case errno != 0:
		r.err = os.NewSyscallError("read", errno)
	case n == 0:
		r.err = io.EOF
	default:
		r.got = n
	}
	return true
}
