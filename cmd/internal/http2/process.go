package http2

import (
	"errors"
	"net/http"
	"time"

	wire "golang.org/x/net/http2"
)

// mostWaiting bounds the streams of all connections that wait for a handler: each has a header that no place of the proxy counts. Only a
// client that resets streams faster than their handlers return has such streams.
const mostWaiting = 1024

// mostSettings bounds the settings of one frame.
const mostSettings = 100

// mostUseless bounds the frames in a row that neither open a stream nor move a byte of a body. Each costs the client as much as the server,
// and the bound ends a connection that sends nothing else.
const mostUseless = 1000

// errProtocol ends the connection of a client that does not follow the protocol.
const errProtocol = wire.ConnectionError(wire.ErrCodeProtocol)

// process processes a frame. A wire.StreamError resets its stream, and a wire.ConnectionError ends the connection. The caller holds mu.
func (c *conn) process(frame wire.Frame) error {
	settings, ok := frame.(*wire.SettingsFrame)
	if !c.sawSettings && !ok {
		return errProtocol
	}
	c.sawSettings = true
	if c.isUseless(frame) {
		return errUseless
	}
	if data, ok := frame.(*wire.DataFrame); ok {
		return c.processData(data)
	}
	if c.away && frame.Header().StreamID > c.lastID {
		return nil // GOAWAY has told the client that the stream is not served.
	}
	switch f := frame.(type) {
	case *wire.HeadersFrame:
		return c.processHeaders(f)
	case *wire.WindowUpdateFrame:
		return c.processWindow(f)
	case *wire.RSTStreamFrame:
		return c.processReset(f)
	case *wire.PingFrame:
		return c.processPing(f)
	case *wire.PriorityFrame:
		return dependsOnItself(f.StreamID, f.PriorityParam)
	case *wire.GoAwayFrame:
		if f.ErrCode != wire.ErrCodeNo {
			c.server.warnf("http2: received GOAWAY %+v, starting graceful shutdown", f)
		}
		c.goAway()
		return nil
	case *wire.PushPromiseFrame:
		return errProtocol
	}
	if settings != nil {
		return c.processSettings(settings)
	}
	return nil // A frame of an unknown kind is ignored.
}

// errUseless ends the connection of a client that only keeps the server busy.
const errUseless = wire.ConnectionError(wire.ErrCodeEnhanceYourCalm)

// isUseless reports whether a frame is one too many of those that have no effect: empty ones of bodies, and those of kinds that the server
// ignores.
func (c *conn) isUseless(frame wire.Frame) bool {
	switch f := frame.(type) {
	case *wire.HeadersFrame:
		c.useless = 0
		return false
	case *wire.DataFrame:
		if len(f.Data()) > 0 || f.StreamEnded() {
			c.useless = 0
			return false
		}
	case *wire.PriorityFrame, *wire.UnknownFrame:
	default:
		return false // The bound of queued control frames holds for those with a reply.
	}
	c.useless++
	return c.useless > mostUseless
}

// dependsOnItself checks a priority, which has no other effect.
func dependsOnItself(id uint32, p wire.PriorityParam) error {
	if id == p.StreamDep {
		return streamError(id, wire.ErrCodeProtocol)
	}
	return nil
}

func streamError(id uint32, code wire.ErrCode) error {
	return wire.StreamError{StreamID: id, Code: code}
}

// isIdle reports whether the client has not opened a stream yet.
func (c *conn) isIdle(id uint32) bool { return id%2 == 0 || id > c.lastID }

func (c *conn) processSettings(f *wire.SettingsFrame) error {
	if f.IsAck() {
		if c.unacked--; c.unacked < 0 {
			return errProtocol
		}
		return nil
	}
	if f.NumSettings() > mostSettings || f.HasDuplicates() {
		return errProtocol
	}
	if err := f.ForeachSetting(c.processSetting); err != nil {
		return err //nolint:wrapcheck // because the kind of the error says what ends.
	}
	c.queueControl(0, wire.FrameSettings, wire.FlagSettingsAck, 0)
	return nil
}

func (c *conn) processSetting(s wire.Setting) error {
	if err := s.Valid(); err != nil {
		return err //nolint:wrapcheck // because the kind of the error says what ends.
	}
	switch s.ID { //nolint:exhaustive // because the others have no effect on a server that pushes nothing.
	case wire.SettingHeaderTableSize:
		c.queue.resized = true
	case wire.SettingInitialWindowSize:
		growth := int32(s.Val) - c.initialWindow
		c.initialWindow += growth
		for _, st := range c.streams {
			if !st.grow(growth) {
				return wire.ConnectionError(wire.ErrCodeFlowControl)
			}
		}
	}
	return nil
}

func (c *conn) processPing(f *wire.PingFrame) error {
	if !f.IsAck() {
		c.queuePing(true, f.Data)
		return nil
	}
	if k := &c.clock; f.Data == k.ping {
		k.pingedAt = time.Time{}
	}
	return nil
}

func (c *conn) processWindow(f *wire.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if !grow(&c.sendWindow, int32(f.Increment)) {
			return wire.ConnectionError(wire.ErrCodeFlowControl)
		}
		return nil
	}
	if c.isIdle(f.StreamID) {
		return errProtocol
	}
	st := c.streams[f.StreamID]
	if st == nil {
		return nil // The stream has ended.
	}
	if !st.grow(int32(f.Increment)) {
		return streamError(f.StreamID, wire.ErrCodeFlowControl)
	}
	return nil
}

func (c *conn) processReset(f *wire.RSTStreamFrame) error {
	if c.isIdle(f.StreamID) {
		return errProtocol
	}
	if st := c.streams[f.StreamID]; st != nil {
		c.closeStream(st, errReset)
		c.inactive()
	}
	return nil
}

// processData adds the bytes of a body to its stream.
func (c *conn) processData(f *wire.DataFrame) error {
	id, length := f.StreamID, f.Length
	if !c.away && c.isIdle(id) {
		return errProtocol
	}
	if !c.receive.take(length) {
		return streamError(id, wire.ErrCodeFlowControl)
	}
	st := c.streams[id]
	switch {
	case st == nil && id > c.lastID:
		c.giveBack(int(length)) // The stream came after GOAWAY.
		return nil
	case st == nil || st.remoteEnded:
		c.giveBack(int(length))
		return streamError(id, wire.ErrCodeStreamClosed)
	}
	b := st.body
	if b.declared >= 0 && b.received+int64(len(f.Data())) > b.declared {
		c.giveBack(int(length))
		b.fail(errTooMuch)
		return streamError(id, wire.ErrCodeProtocol)
	}
	if !b.window.take(length) {
		c.giveBack(int(length))
		return streamError(id, wire.ErrCodeFlowControl)
	}
	given := int(length)
	if !b.closed {
		given -= len(f.Data())
		b.add(f.Data())
		if send := b.window.add(given); send > 0 {
			c.queueWindow(id, send)
		}
	}
	if given > 0 {
		c.giveBack(given) // Padding, or the whole frame when the handler reads no more.
	}
	if f.StreamEnded() {
		st.endBody()
	}
	return nil
}

// processHeaders opens a stream, or ends the body of an open stream with trailers.
func (c *conn) processHeaders(f *wire.HeadersFrame) error {
	id := f.StreamID
	if id%2 != 1 {
		return errProtocol
	}
	if st := c.streams[id]; st != nil {
		if st.remoteEnded {
			return streamError(id, wire.ErrCodeStreamClosed)
		}
		return c.processTrailers(st, f)
	}
	if id <= c.lastID {
		if f.StreamEnded() && c.header.pseudo == 0 {
			return nil // Trailers that were in flight while the server ended the stream.
		}
		return errProtocol
	}
	c.lastID = id
	if len(c.streams) >= c.server.config.MaxStreams {
		if c.unacked == 0 {
			return streamError(id, wire.ErrCodeProtocol)
		}
		return streamError(id, wire.ErrCodeRefusedStream)
	}
	if f.HasPriority() {
		if err := dependsOnItself(id, f.Priority); err != nil {
			return err
		}
	}
	st := c.newStream(id, f.StreamEnded())
	if !c.prepare(st) {
		c.dropped = append(c.dropped, st)
		return streamError(id, wire.ErrCodeProtocol)
	}
	return c.open(st)
}

// open starts the handler of a stream, or lets the stream wait for one.
func (c *conn) open(st *stream) error {
	if c.running >= c.server.config.MaxStreams && len(c.waiting) > 4*c.server.config.MaxStreams {
		c.dropped = append(c.dropped, st)
		return wire.ConnectionError(wire.ErrCodeEnhanceYourCalm)
	}
	waits := c.running >= c.server.config.MaxStreams
	if waits && c.server.waiting.Add(1) > mostWaiting {
		c.server.waiting.Add(-1)
		c.dropped = append(c.dropped, st)
		return streamError(st.id, wire.ErrCodeRefusedStream) // The client may send it again.
	}
	c.streams[st.id] = st
	if c.active++; c.active == 1 {
		c.State(http.StateActive)
	}
	if waits {
		c.waiting = append(c.waiting, st)
		return nil
	}
	c.running++
	c.server.workers.start(work{stream: st})
	return nil
}

// handled notes that a handler has returned, and starts that of the next stream. The caller holds mu.
func (c *conn) handled() {
	c.running--
	for len(c.waiting) > 0 && c.running < c.server.config.MaxStreams {
		st := c.waiting[0]
		c.waiting[0] = nil
		c.server.waiting.Add(-1)
		if c.waiting = c.waiting[1:]; len(c.waiting) == 0 {
			c.waiting = nil
		}
		if st.closed {
			c.dropped = append(c.dropped, st) // The client has reset the stream.
			continue
		}
		c.running++
		c.server.workers.start(work{stream: st})
	}
}

func (c *conn) processTrailers(st *stream, f *wire.HeadersFrame) error {
	if !f.StreamEnded() || c.header.pseudo > 0 {
		return streamError(st.id, wire.ErrCodeProtocol)
	}
	if err := st.body.addTrailers(c); err != nil {
		return streamError(st.id, wire.ErrCodeProtocol)
	}
	st.endBody()
	return nil
}

// reset ends a stream. The caller holds mu.
func (c *conn) reset(id uint32, code wire.ErrCode, err error) {
	c.queueReset(id, code)
	if st := c.streams[id]; st != nil {
		c.closeStream(st, err)
		c.inactive()
	}
}

// closeStream ends a stream. The caller holds mu, and notes inactive.
func (c *conn) closeStream(st *stream, err error) {
	st.closed, st.err = true, err
	delete(c.streams, st.id)
	if b := st.body; b != nil {
		c.giveBack(b.unread())
		b.fail(err)
	}
	c.canceled = append(c.canceled, st.ctx)
	st.wake.Broadcast()
}

var (
	errDisconnected = errors.New("http2: the client has disconnected")
	errReset        = errors.New("http2: the client has reset the stream")
	errTooMuch      = errors.New("http2: the body is longer than its Content-Length")
	errTooLittle    = errors.New("http2: the body is shorter than its Content-Length")
	errBodyClosed   = errors.New("http2: the body is closed")
	errComplete     = errors.New("http2: the response is complete")
)
