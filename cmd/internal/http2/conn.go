package http2

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	wire "golang.org/x/net/http2"

	"github.com/headgate/headgate/cmd/internal/http1/server"
)

const (
	// maxFrame is the largest payload of a frame in both directions. The protocol allows no smaller value.
	maxFrame = 16 << 10
	// firstWindow is the window of a connection and of its streams before settings.
	firstWindow = 65535
	// readBytes is the size of the buffer for reads. A longer frame is read without the buffer.
	readBytes = 4 << 10
)

// conn is a connection that is served.
type conn struct {
	*Client

	server   *Server
	remote   string
	in       *bufio.Reader
	framer   *wire.Framer
	header   headerReader      // used by the reader only
	useless  int               // frames in a row without an effect, used by the reader only
	lastRead atomic.Int64      // when bytes arrived, in Unix nanoseconds
	names    map[string]string // canonical names of fields, used by the reader only

	mu      sync.Mutex // guards the fields below; it is released by unlock
	queue   queue
	gone    bool // nothing more is written
	streams map[uint32]*stream
	lastID  uint32    // of the streams that the client has opened
	active  int       // streams that are open, or whose last frame is not written
	blocked []*stream // that wait for space in the queue or for the window of the connection, in this order
	woken   bool      // one of them is about to go on
	// running is the number of handlers, and waiting has the streams that wait for one. The client may have reset such streams.
	running       int
	waiting       []*stream
	sendWindow    int32
	initialWindow int32 // of the streams that are sent to
	receive       inflow
	unacked       int  // SETTINGS frames that the client has not acknowledged
	sawSettings   bool // of the client
	canceled      []*server.Context
	dropped       []*stream // to release; nothing uses them any more
	away          bool      // GOAWAY was queued
	lingering     bool      // after an error of the client, the connection only waits for the client to read why
	closing       bool      // the server shuts down
	closesWrite   bool      // unlock closes the sending side
	complete      bool      // nothing more is written, because the server shuts down
	clock         clock
}

// newConn returns a connection whose preface was read.
func newConn(s *Server, client *Client) *conn {
	c := &conn{Client: client, server: s, streams: map[uint32]*stream{}, sendWindow: firstWindow, initialWindow: firstWindow}
	if at := client.Conn.RemoteAddr(); at != nil {
		c.remote = at.String()
	}
	c.in = bufio.NewReaderSize(source{client.Conn, c}, readBytes)
	c.framer = wire.NewFramer(io.Discard, c.in)
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.framer.SetReuseFrames()
	c.header.init(s.config.MaxHeader)
	c.receive.left = firstWindow
	return c
}

// source notes when bytes arrive.
type source struct {
	net.Conn

	conn *conn
}

// Read implements io.Reader.
func (s source) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.conn.lastRead.Store(time.Now().UnixNano())
	return n, err //nolint:wrapcheck // because the framer compares the error.
}

// serve serves streams until the connection ends. With late set, the server is closing, and the client learns that no stream is served.
func (c *conn) serve(late bool) {
	c.begin()
	if late {
		c.shutdown()
	}
	for c.next() {
		continue
	}
	if c.lingers() {
		_ = c.Conn.SetReadDeadline(time.Now().Add(closeDelay))
		_, _ = io.Copy(io.Discard, c.Conn) // The client closes, or the time is over.
	}
	c.leave()
}

// begin sends the settings.
func (c *conn) begin() {
	config := &c.server.config
	c.mu.Lock()
	defer c.unlock()
	c.queueSettings(
		wire.Setting{ID: wire.SettingMaxFrameSize, Val: maxFrame},
		wire.Setting{ID: wire.SettingMaxConcurrentStreams, Val: uint32(config.MaxStreams)},
		wire.Setting{ID: wire.SettingMaxHeaderListSize, Val: c.header.most},
		wire.Setting{ID: wire.SettingHeaderTableSize, Val: tableBytes},
		wire.Setting{ID: wire.SettingInitialWindowSize, Val: uint32(config.ReceiveStream)},
	)
	c.unacked++
	c.giveBack(int(config.ReceiveConnection - firstWindow))
	c.State(http.StateActive)
	c.State(http.StateIdle)
	c.clock.start(c, time.Now())
	c.send()
}

// next reads and processes one frame. It returns false when the connection ends.
func (c *conn) next() bool {
	frame, err := c.read()
	c.mu.Lock()
	defer c.unlock()
	if c.gone || c.complete {
		return false
	}
	if err == nil {
		err = c.process(frame)
	}
	c.header.forget()
	if _, fatal := errors.AsType[wire.ConnectionError](err); fatal && frame != nil && !c.away { // The id in GOAWAY never increases.
		c.lastID = max(c.lastID, frame.Header().StreamID)
	}
	if !c.settle(err) || c.queue.control > mostControl {
		return false
	}
	if !c.frameBuffered() {
		c.kick()
	}
	return true
}

// read reads a frame, and the header that it begins. Beside an error, the frame is the one that has the fault, or nil if the
// framer does not say.
func (c *conn) read() (wire.Frame, error) {
	frame, err := c.framer.ReadFrame()
	if err != nil {
		return nil, err //nolint:wrapcheck // because the kind of the error says what ends.
	}
	if f, ok := frame.(*wire.HeadersFrame); ok {
		return c.readHeader(f)
	}
	return frame, nil
}

// frameBuffered reports whether the next frame has arrived.
func (c *conn) frameBuffered() bool {
	buffered := c.in.Buffered()
	if buffered < frameHeader {
		return false
	}
	b, _ := c.in.Peek(3)
	return buffered >= frameHeader+(int(b[0])<<16|int(b[1])<<8|int(b[2]))
}

// settle reacts to the error of a frame. It returns false when the connection ends. The caller holds mu.
func (c *conn) settle(err error) bool {
	if err == nil {
		return true
	}
	if fault, ok := errors.AsType[wire.StreamError](err); ok {
		c.reset(fault.StreamID, fault.Code, err)
		return true
	}
	if fault, ok := errors.AsType[wire.ConnectionError](err); ok {
		c.server.warnf("http2: server connection error from %v: %v", c.remote, err)
		c.giveUp(wire.ErrCode(fault))
	} else if errors.Is(err, wire.ErrFrameTooLarge) {
		c.giveUp(wire.ErrCodeFrameSize)
	}
	return false
}

// giveUp ends all streams, and tells the client why. The caller holds mu.
func (c *conn) giveUp(code wire.ErrCode) {
	c.queueGoAway(code)
	c.lingering = true
	c.closeStreams()
	c.kick()
}

func (c *conn) lingers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.lingering || c.complete) && !c.gone
}

// leave ends all streams and closes the connection.
func (c *conn) leave() {
	_ = c.Conn.Close()
	c.mu.Lock()
	c.gone = true
	c.clock.stop()
	c.closeStreams()
	c.server.waiting.Add(-int64(len(c.waiting)))
	c.dropped, c.waiting = append(c.dropped, c.waiting...), nil
	if !c.queue.sending {
		c.dropQueue()
	}
	c.unlock()
	c.State(http.StateClosed)
}

// closeStreams ends all streams. The caller holds mu.
func (c *conn) closeStreams() {
	for _, st := range c.streams {
		c.closeStream(st, errDisconnected)
	}
}

// unlock lets a stream go on that waits, releases mu, and then ends the contexts of the streams that have ended: a context may call
// functions that use mu.
func (c *conn) unlock() {
	c.wakeNext()
	canceled, dropped, closesWrite := c.canceled, c.dropped, c.closesWrite
	c.canceled, c.dropped, c.closesWrite = nil, nil, false
	c.mu.Unlock()
	if closesWrite { // Without mu, because TLS may wait for the client.
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // Otherwise the clock closes the connection.
		}
	}
	for _, ctx := range canceled {
		ctx.End()
	}
	for _, st := range dropped {
		st.release()
	}
}

// shutdown asks the client to open no more streams, and closes the connection when it has none.
func (c *conn) shutdown() {
	c.mu.Lock()
	defer c.unlock()
	c.closing = true
	c.goAway()
	c.kick()
	c.closeIfDone()
}

// goAway asks the client to open no more streams. The caller holds mu.
func (c *conn) goAway() {
	if c.away {
		return
	}
	c.queueGoAway(wire.ErrCodeNo)
	c.clock.setClose(c)
}

// closeIfDone ends the connection of a server that shuts down, when all was written. The client has closeDelay to read it and to
// close: bytes that arrive at a closed socket would cost it what it has not read. The caller holds mu.
func (c *conn) closeIfDone() {
	if !c.closing || c.complete || c.active > 0 || c.queue.sending || len(c.queue.out) > 0 {
		return
	}
	c.complete, c.closesWrite = true, true
	c.clock.setClose(c)
}

// inactive notes that a stream has ended and its last frame was written. The caller holds mu.
func (c *conn) inactive() {
	if c.active--; c.active > 0 || c.gone {
		return
	}
	c.State(http.StateIdle)
	c.clock.idle(c)
}
