package http1

import "golang.org/x/sys/unix"

const (
	// pipeBytes is the capacity of a pipe in Linux. With 256 KiB, loopback connections lost
	// segments, and waited ten milliseconds for each megabyte.
	pipeBytes = 64 << 10
	// mostPipes bounds the pipes that are kept.
	mostPipes = 64
)

// pipe carries bytes between two connections.
type pipe struct {
	r, w   int
	filled int // bytes in the pipe

	// The callbacks of the connections, and what they exchange with their callers.
	read, write func(fd uintptr) bool
	most, n     int
	err         error
}

var pipeTable = make(chan *pipe, mostPipes)

// newPipe returns an empty pipe. It returns false if the process has no free descriptor.
func newPipe() (p *pipe, ok bool) {
	select {
	case p = <-pipeTable:
		return p, true
	default:
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, false
	}
	p = &pipe{r: fds[0], w: fds[1]}
	p.read, p.write = p.readFrom, p.writeTo
	return p, true
}

// release keeps an empty pipe for the next call. Other pipes have bytes of a broken
// exchange, and are closed.
func (p *pipe) release() {
	if p.filled == 0 {
		select {
		case pipeTable <- p:
			return
		default:
		}
	}
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}
