package rpc

import "encoding/binary"

// Lengths and values of HTTP/2 (RFC 9113) and of gRPC messages.
const (
	prefaceLength = 24
	headerLength  = 9
	frameData     = 0x0
	frameReset    = 0x3
	flagEndStream = 0x1
	flagPadded    = 0x8
	prefixLength  = 5 // A byte for compression, and the length of the message.
)

// maxReset bounds the remembered streams that the server has reset. A client sends for such a
// stream only until the reset arrives.
const maxReset = 1024

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

// requests follows the bytes that a client sends on one HTTP/2 connection. It counts the bytes
// that the server may keep in memory for requests whose stream the client has not ended: the
// bytes of the unfinished message, and the messages before it up to the window of a stream. gRPC
// stops a client that is further ahead of the service. When the server resets a stream, it keeps
// nothing of the stream, and discards what still arrives.
//
// A small call sends its only message in one frame, which ends the stream. Such a call needs no
// entry, and costs the inspection of two frame headers.
type requests struct {
	in, out frames

	data    int64 // Bytes of the message data of the current DATA frame.
	padding int64 // Bytes of padding after data.
	padded  bool  // The next byte is the length of the padding.
	ends    bool  // The current DATA frame ends its stream.
	ignored bool  // The server has reset the stream of the current DATA frame.
	stream  uint32
	current upload // The state of stream during a DATA frame.
	inData  bool

	open    map[uint32]upload
	most    int
	tooMany bool  // The client has more than most streams with unfinished requests.
	sum     int64 // The sum over open, without current.
	reset   map[uint32]struct{}
}

// upload is the state of one stream that its client has not ended.
type upload struct {
	prefix [prefixLength]byte
	have   int   // Bytes of prefix.
	left   int64 // Bytes of the message that have not arrived.
	part   int64 // Bytes of the unfinished message that have arrived.
	before int64 // Bytes of finished messages, at most streamWindow.
}

func (u *upload) held() int64 { return u.part + u.before }

// newRequests follows a new connection with up to most unfinished streams.
func newRequests(most int) *requests {
	return &requests{in: frames{skip: prefaceLength}, open: map[uint32]upload{}, most: most, reset: map[uint32]struct{}{}}
}

// held returns the bytes that the server may keep.
func (r *requests) held() int64 { return r.sum }

// received takes the next bytes of the client.
func (r *requests) received(b []byte) {
	for len(b) > 0 {
		if r.inData {
			b = r.takeData(b)
			continue
		}
		var complete bool
		if b, complete = r.in.next(b); complete {
			r.beginFrame()
		}
	}
}

// sent takes the next bytes of the server.
func (r *requests) sent(b []byte) {
	for len(b) > 0 {
		var complete bool
		if b, complete = r.out.next(b); !complete {
			continue
		}
		r.out.skip = r.out.length()
		if r.out.kind() == frameReset {
			r.endByServer(r.out.stream())
		}
	}
}

// endByServer forgets a stream that the server has reset.
func (r *requests) endByServer(stream uint32) {
	r.remove(stream)
	if r.inData && r.stream == stream {
		r.ignored, r.current = true, upload{}
	}
	if len(r.reset) >= maxReset {
		clear(r.reset)
	}
	r.reset[stream] = struct{}{}
}

// beginFrame interprets the header of a client's frame.
func (r *requests) beginFrame() {
	length, flags, stream := r.in.length(), r.in.flags(), r.in.stream()
	switch r.in.kind() {
	case frameData:
		r.inData, r.stream, r.data, r.padding = true, stream, length, 0
		r.padded, r.ends = flags&flagPadded != 0 && length > 0, flags&flagEndStream != 0
		r.ignored = false
		if len(r.reset) > 0 {
			_, r.ignored = r.reset[stream]
		}
		r.current = r.remove(stream)
		r.endData()
	case frameReset:
		r.remove(stream)
		r.in.skip = length
	default:
		r.in.skip = length
	}
}

// takeData takes bytes of a DATA frame and returns the bytes after them.
func (r *requests) takeData(b []byte) []byte {
	switch {
	case r.padded:
		r.padded = false
		r.padding = min(int64(b[0]), r.data-1)
		r.data -= 1 + r.padding
		b = b[1:]
	case r.data > 0:
		n := min(r.data, int64(len(b)))
		r.data -= n
		if !r.ignored {
			r.current.take(b[:n])
		}
		b = b[n:]
	default:
		n := min(r.padding, int64(len(b)))
		r.padding -= n
		b = b[n:]
	}
	r.endData()
	return b
}

// endData keeps the state of the stream after the last byte of a DATA frame.
func (r *requests) endData() {
	if r.padded || r.data > 0 || r.padding > 0 {
		return
	}
	r.inData = false
	if r.ends || r.current.held() == 0 {
		return
	}
	if len(r.open) >= r.most {
		r.tooMany = true
		return
	}
	r.open[r.stream] = r.current
	r.sum += r.current.held()
}

// remove ends the entry of a stream and returns its state.
func (r *requests) remove(stream uint32) upload {
	if len(r.open) == 0 {
		return upload{}
	}
	u := r.open[stream]
	delete(r.open, stream)
	r.sum -= u.held()
	return u
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
