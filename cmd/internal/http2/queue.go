package http2

import (
	"encoding/binary"
	"runtime"
	"slices"

	wire "golang.org/x/net/http2"
)

const (
	// frameHeader is the length of the header of a frame.
	frameHeader = 9
	// mostQueued is how many bytes of responses are queued. A response waits while there are so many.
	mostQueued = 32 << 10
	// mostControl bounds the bytes of control frames that are queued. A client that causes more and reads none is disconnected.
	mostControl = 64 << 10
	// bufferBytes is the size of a buffer that is used again. A header or control frames may make a buffer longer.
	bufferBytes = 40 << 10
)

// queue has the frames to write. An idle connection has no buffer.
type queue struct {
	out     []byte
	ended   []*stream // whose last frame is in out
	spare   []*stream
	control int  // bytes of control frames in out
	sending bool // a goroutine writes
	kicked  bool // a worker is about to write
	resized bool // the next header block says that the encoder uses no table
}

// dropQueue forgets what will not be written. The caller holds mu.
func (c *conn) dropQueue() {
	c.freeBuffer(c.queue.out)
	c.queue.out = nil
	c.dropped = append(c.dropped, c.queue.ended...)
	c.queue.ended = nil
}

// frame appends the header of a frame.
func (c *conn) frame(length int, kind wire.FrameType, flags wire.Flags, id uint32) {
	c.grow()
	q := &c.queue
	q.out = append(q.out, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	q.out = binary.BigEndian.AppendUint32(q.out, id)
}

// grow gives the connection a buffer.
func (c *conn) grow() {
	if c.queue.out != nil {
		return
	}
	if b, ok := c.server.buffers.Get().(*[bufferBytes]byte); ok {
		c.queue.out = b[:0]
		return
	}
	c.queue.out = make([]byte, 0, bufferBytes)
}

func (c *conn) queueControl(length int, kind wire.FrameType, flags wire.Flags, id uint32) {
	c.frame(length, kind, flags, id)
	c.queue.control += frameHeader + length
}

func (c *conn) queueSettings(settings ...wire.Setting) {
	const each = 6
	c.queueControl(each*len(settings), wire.FrameSettings, 0, 0)
	for _, s := range settings {
		c.queue.out = binary.BigEndian.AppendUint16(c.queue.out, uint16(s.ID))
		c.queue.out = binary.BigEndian.AppendUint32(c.queue.out, s.Val)
	}
}

func (c *conn) queuePing(ack bool, data [8]byte) {
	flags := wire.Flags(0)
	if ack {
		flags = wire.FlagPingAck
	}
	c.queueControl(len(data), wire.FramePing, flags, 0)
	c.queue.out = append(c.queue.out, data[:]...)
}

func (c *conn) queueGoAway(code wire.ErrCode) {
	c.away = true
	c.queueControl(8, wire.FrameGoAway, 0, 0)
	c.queue.out = binary.BigEndian.AppendUint32(c.queue.out, c.lastID)
	c.queue.out = binary.BigEndian.AppendUint32(c.queue.out, uint32(code))
}

func (c *conn) queueReset(id uint32, code wire.ErrCode) {
	c.queueControl(4, wire.FrameRSTStream, 0, id)
	c.queue.out = binary.BigEndian.AppendUint32(c.queue.out, uint32(code))
}

func (c *conn) queueWindow(id, n uint32) {
	c.queueControl(4, wire.FrameWindowUpdate, 0, id)
	c.queue.out = binary.BigEndian.AppendUint32(c.queue.out, n)
}

// giveBack adds n bytes to the window that the client has for the connection. The caller holds mu.
func (c *conn) giveBack(n int) {
	if send := c.receive.add(n); send > 0 {
		c.queueWindow(0, send)
	}
}

// queueHeader appends a header block, in several frames if it is long.
func (c *conn) queueHeader(id uint32, block []byte, end bool) {
	flags := wire.Flags(0)
	if end {
		flags = wire.FlagHeadersEndStream
	}
	if c.queue.resized {
		const noTable = 0x20 // A dynamic table of no size (RFC 7541, section 6.3).
		c.queue.resized = false
		block = append([]byte{noTable}, block...)
	}
	kind := wire.FrameHeaders
	for len(block) > maxFrame {
		c.frame(maxFrame, kind, flags, id)
		c.queue.out = append(c.queue.out, block[:maxFrame]...)
		kind, flags, block = wire.FrameContinuation, 0, block[maxFrame:]
	}
	c.frame(len(block), kind, flags|wire.FlagHeadersEndHeaders, id)
	c.queue.out = append(c.queue.out, block...)
}

// kick lets a worker write what is queued, for a caller that must not wait. The caller holds mu.
func (c *conn) kick() {
	if q := &c.queue; len(q.out) > 0 && !q.sending && !q.kicked && !c.complete {
		q.kicked = true
		c.server.workers.start(work{conn: c})
	}
}

// writeQueued is the work that kick starts.
func (c *conn) writeQueued() {
	c.mu.Lock()
	defer c.unlock()
	c.queue.kicked = false
	c.send()
}

// gather lets other goroutines run that may add frames, before send. The caller holds mu.
func (c *conn) gather() {
	if c.queue.sending || c.active < 2 {
		return
	}
	c.queue.sending = true
	c.unlock()
	runtime.Gosched()
	c.mu.Lock()
	c.queue.sending = false
}

// sendPart writes what is queued, unless another goroutine does or is about to. It is the send of a handler that goes on: streams that
// have ended are left to a worker, because their functions may take long. The caller holds mu.
func (c *conn) sendPart() {
	switch q := &c.queue; {
	case q.kicked:
	case len(q.ended) > 0:
		c.kick()
	default:
		c.send()
	}
}

// send writes once what is queued, unless another goroutine does. It leaves to a worker what is queued meanwhile: a handler would otherwise
// write for the other streams as long as they have something to send. send releases mu during the write. The caller holds mu.
func (c *conn) send() {
	q := &c.queue
	if q.sending {
		return
	}
	if len(q.out) > 0 && !c.gone && !c.complete {
		out, ended := q.out, q.ended
		q.out, q.control, q.sending = nil, 0, true
		q.ended, q.spare = q.spare[:0], nil
		c.unlock()
		_, err := c.Conn.Write(out)
		c.mu.Lock()
		q.sending = false
		c.freeBuffer(out)
		if err != nil {
			c.gone = true
			_ = c.Conn.Close() // The reader ends the streams.
		}
		c.kick()
		c.release(ended)
	}
	if c.gone && !q.sending {
		c.dropQueue()
	}
	c.closeIfDone()
}

// release releases streams whose last frame was written. It releases mu meanwhile. The caller holds mu.
func (c *conn) release(ended []*stream) {
	if len(ended) > 0 {
		c.unlock()
		for _, st := range ended {
			st.release()
		}
		c.mu.Lock()
	}
	for range ended {
		c.inactive()
	}
	clear(ended)
	c.queue.spare = ended
}

func (c *conn) freeBuffer(b []byte) {
	if cap(b) == bufferBytes {
		c.server.buffers.Put((*[bufferBytes]byte)(b[:bufferBytes]))
	}
}

// wakeNext wakes the stream that has waited longest of those that can go on. The stream calls wakeNext in turn when it has used
// what it needs: waking all would cost processor time for each small window. The caller holds mu.
func (c *conn) wakeNext() {
	if c.woken || len(c.queue.out) >= mostQueued {
		return
	}
	for n, st := range c.blocked {
		if st.sends && c.sendWindow <= 0 {
			continue // Its data needs the window of the connection.
		}
		c.blocked = slices.Delete(c.blocked, n, n+1)
		st.blocked, c.woken = false, true
		st.wake.Broadcast()
		return
	}
}
