package resp

import (
	"errors"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// buffer has the bytes of a connection that are not answered yet.
type buffer [bufferSize]byte

// conn is the connection of a client. Its goroutine alone uses it, but for wake and net.
type conn struct {
	server *Server
	net    net.Conn // with TLS, if there is TLS
	id     int64
	name   string
	three  bool // RESP3
	busy   activity
	access caller
	ending atomic.Bool // The connection ends after the commands that have arrived.
	// answered means that all answers are sent: the connection only waits for the client to close it.
	answered atomic.Bool

	uses  atomic.Int64 // memory for bytes that have arrived and for answers
	in    *buffer      // nil while there are no bytes
	end   int
	since time.Time // of the last complete command
	idle  http1.Deadline
	one   [1]byte

	raw rawSocket
}

// activity is a connection of package listen: at the bound of connections, a new one replaces an idle
// one.
type activity interface {
	Idle()
	Busy()
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	defer func() { c.leave(recover()) }()
	if !c.handshake() {
		return
	}
	c.identify()
	c.since = time.Now()
	for c.read() == nil {
		if !c.answer() {
			return
		}
	}
	if c.ends() {
		c.finish()
	}
}

// leave closes the connection. A panic, whose value is fault, ends only its connection.
func (c *conn) leave(fault any) {
	if fault != nil {
		c.server.log.Error("panic while serving a Redis client", "panic", fault, "stack", string(debug.Stack()))
	}
	c.drop()
	c.access.session.Close()
	_ = c.net.Close()
	c.server.remove(c)
}

// read waits for bytes, until the idle timeout has passed since the last complete command.
func (c *conn) read() error {
	due := c.since.Add(c.server.idle)
	for now := time.Now(); ; now = time.Now() {
		if set, at := c.idle.Arm(now, max(due.Sub(now), 1)); set {
			_ = c.net.SetReadDeadline(at)
		}
		if c.ends() { // Drain and revoke set what it reads before they end the reads.
			return net.ErrClosed
		}
		err := c.fill()
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.ends() || c.idle.Fired(time.Now(), due) {
			return err
		}
		_ = c.net.SetReadDeadline(due)
	}
}

// ends reports whether no further command is read.
func (c *conn) ends() bool { return c.server.closing.Load() || c.ending.Load() }

// fill reads what has arrived, at least one byte.
func (c *conn) fill() error {
	if c.raw.conn != nil {
		return c.fillRaw()
	}
	if c.in == nil { // A buffer is taken when there is something to read.
		n, err := c.net.Read(c.one[:])
		if n == 0 {
			return ended(err)
		}
		c.take()
		c.in[0], c.end = c.one[0], 1
		return nil
	}
	n, err := c.net.Read(c.in[c.end:])
	if c.end += n; n == 0 {
		return ended(err)
	}
	return nil
}

func ended(err error) error {
	if err == nil {
		return net.ErrClosed
	}
	return err
}

// take takes a buffer.
func (c *conn) take() {
	if c.in == nil {
		b, ok := c.server.buffers.Get().(*buffer)
		if !ok {
			b = new(buffer)
		}
		c.in, c.end = b, 0
		c.uses.Store(bufferSize)
	}
}

// drop gives the buffer back.
func (c *conn) drop() {
	if c.in != nil {
		c.server.buffers.Put(c.in)
		c.in, c.end = nil, 0
		c.uses.Store(0)
	}
}

// answer answers all complete commands. It reports false when the connection ends.
func (c *conn) answer() (goesOn bool) {
	if c.busy != nil {
		c.busy.Busy()
	}
	w, ok := c.server.works.Get().(*work)
	if !ok {
		w = &work{guard: c.server.guard}
	}
	w.out.three = c.three
	c.uses.Store(bufferSize + workSize)
	at, last := 0, false
	for !last {
		n, ends, ok := c.answerSome(w, c.in[at:c.end])
		if !ok {
			return false // The memory of w is not used again.
		}
		last = ends
		if n == 0 {
			break
		}
		at += n
	}
	if !c.flush(w) {
		return false
	}
	w.release()
	c.server.works.Put(w)
	c.uses.Store(bufferSize)
	if last {
		c.finish()
		return false
	}
	return c.keep(at)
}

// longestFinish bounds the time of finish.
const longestFinish = time.Second

// finish ends the sending side, and discards what the client still sends, until it closes the connection: the
// kernel drops the last answers of a connection that is closed with bytes to read. A connection without
// bytes gets no buffer.
func (c *conn) finish() {
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.answered.Store(true)
	into := c.one[:]
	for end := time.Now().Add(longestFinish); ; {
		_ = c.net.SetReadDeadline(end)
		_, err := c.net.Read(into)
		switch {
		case err == nil:
			c.take()
			into = c.in[:]
		case !errors.Is(err, os.ErrDeadlineExceeded): // Drain and revoke set deadlines in the past.
			return
		}
		if !time.Now().Before(end) {
			return
		}
	}
}

// keep keeps the bytes after at, which begin a command.
func (c *conn) keep(at int) bool {
	if at > 0 {
		c.since = time.Now()
	}
	if c.end = copy(c.in[:], c.in[at:c.end]); c.end == 0 {
		c.drop()
	}
	if c.busy != nil {
		c.busy.Idle()
	}
	return true
}

// answerSome answers the first commands of b, and gives their length. ok is false when the client cannot
// be written to.
func (c *conn) answerSome(w *work, b []byte) (n int, last, ok bool) {
	w.begin(&c.access)
	n, last, err := w.read(b)
	if n == 0 && err == nil && len(b) == bufferSize {
		err = faultf("the command is longer than %d bytes", bufferSize)
		last = true
	}
	w.decideAll(c.server.ctx)
	faults := 0
	for i := range w.commands {
		if len(w.out.b) > outputSize-answerSize && !c.flush(w) {
			return n, last, false
		}
		if !c.reply(w, &w.commands[i]) {
			faults++
		}
	}
	if err != nil {
		w.out.failure("ERR", err.Error())
	}
	c.server.stats.count(len(w.commands), faults)
	return n, last, true
}

// flush writes the answers.
func (c *conn) flush(w *work) bool {
	if len(w.out.b) == 0 {
		return true
	}
	err := c.write(w.out.b)
	w.out.b = w.out.b[:0]
	return err == nil
}

// rawSocket is the descriptor of a connection without TLS, on systems where the connection can wait
// without a buffer.
type rawSocket struct {
	conn     syscall.RawConn // nil otherwise
	received func()
	try, put func(fd uintptr) bool
	n        int
	err      error
	unsent   []byte
}

// pools are the memory of connections at work.
type pools struct {
	buffers sync.Pool // of *buffer
	works   sync.Pool // of *work
}
