package rpc

import "encoding/binary"

// Lengths and values of HTTP/2 (RFC 9113) and of gRPC messages.
const (
	prefaceLength = 24
	headerLength  = 9
	frameData     = 0x0
	frameHeaders  = 0x1
	frameReset    = 0x3
	flagEndStream = 0x1
	flagPadded    = 0x8
	prefixLength  = 5 // A byte for compression, and the length of the message.
)

// callBytes is the memory of a call in flight beside its messages: its goroutine, its metadata,
// and its state in grpc-go. TestMemoryOfCalls measures it.
const callBytes = 32 << 10

// frameBytes is the memory of a received DATA frame beside its bytes: its place in the queue of a
// stream. A client may send a message in frames of one byte.
const frameBytes = 128

// frameMemory is the memory of a received DATA frame of some bytes. grpc-go keeps the bytes in
// buffers of its pool, which has these sizes.
func frameMemory(length int64) int64 {
	for _, size := range [...]int64{4 << 10, 16 << 10} {
		if length > 1<<10 && length <= size {
			return frameBytes + size
		}
	}
	return frameBytes + length
}

// frames splits the bytes of one direction of an HTTP/2 connection into frames.
type frames struct {
	skip   int64 // Bytes to skip: the preface, and the rest of a frame.
	header [headerLength]byte
	have   int // Bytes of header.
}

// next takes bytes until a frame header is complete, and returns the other bytes.
func (f *frames) next(b []byte) (rest []byte, complete bool) {
	n := min(f.skip, int64(len(b)))
	f.skip -= n
	b = b[n:]
	taken := copy(f.header[f.have:], b)
	if f.have += taken; f.have < headerLength {
		return b[taken:], false
	}
	f.have = 0
	return b[taken:], true
}

func (f *frames) length() int64 { return int64(binary.BigEndian.Uint32(f.header[:4]) >> 8) }
func (f *frames) kind() byte    { return f.header[3] }
func (f *frames) flags() byte   { return f.header[4] }
func (f *frames) stream() uint32 {
	return binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31)
}

// calls follows the frames of one HTTP/2 connection. It counts the memory that the calls in
// flight may take: callBytes for each, and the bytes of its request. A call is in flight from its
// first HEADERS frame until the frame that ends the stream at the server is written, or a side
// resets the stream. So a call whose response the client does not read stays in flight. Of the
// finished messages of one stream, at most the window of a stream counts: gRPC stops a client that
// is further ahead of the service.
type calls struct {
	in, out frames

	data    int64 // Bytes of the message data of the current DATA frame.
	padding int64 // Bytes of padding after data.
	padded  bool  // The next byte is the length of the padding.
	ignored bool  // The stream of the current DATA frame has ended.
	stream  uint32
	current upload // The state of stream during a DATA frame.
	inData  bool

	last    uint32 // The highest stream that the client has begun.
	open    map[uint32]upload
	most    int
	tooMany bool // The client has more than most calls in flight.
	sum     int64
}

// upload is what one call has sent.
type upload struct {
	prefix [prefixLength]byte
	have   int   // Bytes of prefix.
	left   int64 // Bytes of the message that have not arrived.
	part   int64 // The memory of the unfinished message.
	before int64 // Bytes of finished messages, at most streamWindow.
}

func (u *upload) held() int64 { return u.part + u.before }

// newCalls follows a new connection with up to most calls in flight.
func newCalls(most int) *calls {
	return &calls{in: frames{skip: prefaceLength}, open: map[uint32]upload{}, most: most}
}

// held returns the bytes that the calls in flight may take.
func (c *calls) held() int64 { return c.sum + int64(len(c.open))*callBytes }

// received takes the next bytes of the client.
func (c *calls) received(b []byte) {
	for len(b) > 0 {
		if c.inData {
			b = c.takeData(b)
			continue
		}
		var complete bool
		if b, complete = c.in.next(b); complete {
			c.beginFrame()
		}
	}
}

// sent takes the next bytes of the server.
func (c *calls) sent(b []byte) {
	for len(b) > 0 {
		var complete bool
		if b, complete = c.out.next(b); !complete {
			continue
		}
		c.out.skip = c.out.length()
		switch kind := c.out.kind(); {
		case kind == frameReset, (kind == frameHeaders || kind == frameData) && c.out.flags()&flagEndStream != 0:
			c.remove(c.out.stream())
		}
	}
}

// beginFrame interprets the header of a client's frame.
func (c *calls) beginFrame() {
	length, flags, stream := c.in.length(), c.in.flags(), c.in.stream()
	switch c.in.kind() {
	case frameData:
		c.inData, c.stream, c.data, c.padding = true, stream, length, 0
		c.padded = flags&flagPadded != 0 && length > 0
		var known bool
		c.current, known = c.open[stream]
		c.current.part += frameMemory(length) - length
		c.ignored = !known
		c.endData()
		return
	case frameHeaders:
		c.begin(stream)
	case frameReset:
		c.remove(stream)
	}
	c.in.skip = length
}

// begin adds a call. A lower number is no new call, and grpc-go closes the connection.
func (c *calls) begin(stream uint32) {
	if stream <= c.last {
		return
	}
	c.last = stream
	if c.tooMany = len(c.open) >= c.most; !c.tooMany {
		c.open[stream] = upload{}
	}
}

// takeData takes bytes of a DATA frame and returns the bytes after them.
func (c *calls) takeData(b []byte) []byte {
	switch {
	case c.padded:
		c.padded = false
		c.padding = min(int64(b[0]), c.data-1)
		c.data -= 1 + c.padding
		b = b[1:]
	case c.data > 0:
		n := min(c.data, int64(len(b)))
		c.data -= n
		if !c.ignored {
			c.current.take(b[:n])
		}
		b = b[n:]
	default:
		n := min(c.padding, int64(len(b)))
		c.padding -= n
		b = b[n:]
	}
	c.endData()
	return b
}

// endData keeps the state of the stream after the last byte of a DATA frame.
func (c *calls) endData() {
	if c.padded || c.data > 0 || c.padding > 0 {
		return
	}
	c.inData = false
	before, known := c.open[c.stream]
	if c.ignored || !known { // The stream may have ended since the frame began.
		return
	}
	c.sum += c.current.held() - before.held()
	c.open[c.stream] = c.current
}

// remove ends a call.
func (c *calls) remove(stream uint32) {
	if u, known := c.open[stream]; known {
		delete(c.open, stream)
		c.sum -= u.held()
	}
}

// take takes bytes of the stream's messages.
func (u *upload) take(b []byte) {
	for len(b) > 0 {
		var n int
		if u.have < prefixLength {
			n = copy(u.prefix[u.have:], b)
			if u.have += n; u.have == prefixLength {
				u.left = int64(binary.BigEndian.Uint32(u.prefix[1:]))
			}
		} else {
			n = int(min(u.left, int64(len(b))))
			u.left -= int64(n)
		}
		b = b[n:]
		u.part += int64(n)
		if u.have == prefixLength && u.left == 0 {
			u.before = min(u.before+u.part, streamWindow)
			u.have, u.part = 0, 0
		}
	}
}
