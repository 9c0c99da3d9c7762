package fields

import (
	"strings"

	"github.com/headgate/headgate/guard"
)

// StreamDetector calls Ticket.Answers when the answer to a forwarded request begins, and Ticket.Stream,
// at most once, when the answer becomes a stream:
//
//   - an upgraded connection, when it begins
//   - server-sent events (text/event-stream), when their header is written
//   - a gRPC call (application/grpc), when the second message of its answer begins
//
// Only the answer counts. Otherwise the client of a unary method could free its slot with a
// second message or a header, while the service still works on the first message.
//
// The goroutine that calls the methods must be the one that calls Ticket.Done afterwards. The
// zero StreamDetector does nothing.
type StreamDetector struct {
	ticket *guard.Ticket // nil after Stream
	grpc   bool
	first  message
}

// DetectStream returns the StreamDetector for a request. t may be nil.
func DetectStream(t *guard.Ticket) StreamDetector { return StreamDetector{ticket: t} }

// Header reads the status and the header of the service's final response. Call Header before the header is written.
// The response may be 101.
func (d *StreamDetector) Header(status int, h Header) {
	if d.ticket == nil {
		return
	}
	d.ticket.Answers(status)
	switch kind := mediaType(h); {
	case strings.EqualFold(kind, "text/event-stream"):
		d.Stream()
	case isGRPC(kind):
		d.grpc = true
	}
}

// Body reads the next bytes of the response, before they are written. It does not change or
// keep them.
func (d *StreamDetector) Body(b []byte) {
	if d.grpc && d.ticket != nil && d.first.endsWithin(b) {
		d.Stream()
	}
}

// Counts reports whether Body still needs the bytes of the response.
func (d *StreamDetector) Counts() bool { return d.grpc && d.ticket != nil }

// Stream tells the stages that the request is a stream. Call it when a connection is upgraded.
func (d *StreamDetector) Stream() {
	if t := d.ticket; t != nil {
		d.ticket = nil // A stage may panic.
		t.Stream()
	}
}

// mediaType returns the Content-Type without its parameters.
func mediaType(h Header) string {
	lines := h.Lines("Content-Type")
	if len(lines) == 0 {
		return ""
	}
	kind, _, _ := strings.Cut(lines[0], ";")
	return strings.Trim(kind, " \t")
}

// isGRPC reports whether a media type is application/grpc, also with a suffix such as +proto.
// Messages of grpc-web differ.
func isGRPC(kind string) bool {
	const grpc = "application/grpc"
	return len(kind) >= len(grpc) && strings.EqualFold(kind[:len(grpc)], grpc) &&
		(len(kind) == len(grpc) || kind[len(grpc)] == '+')
}

// prefix is the length of a gRPC message's prefix: a flag and the length of the payload in four
// bytes, the highest first.
const prefix = 5

// message finds the end of the first gRPC message of a body that arrives in parts. All bytes are
// valid: a body of another format has an end at an arbitrary place.
type message struct {
	prefixed uint8  // bytes of the prefix that have arrived
	left     uint32 // bytes of the payload to come, once the prefix is complete
}

// endsWithin reports whether b has a byte after the end of the message. It reads at most five
// bytes of b. After true, it must not be called again.
func (m *message) endsWithin(b []byte) bool {
	for ; m.prefixed < prefix && len(b) > 0; b = b[1:] {
		if m.prefixed > 0 {
			m.left = m.left<<8 | uint32(b[0])
		}
		m.prefixed++
	}
	if uint64(len(b)) > uint64(m.left) {
		return true
	}
	m.left -= uint32(len(b)) // At most left, and 0 before the prefix is complete.
	return false
}
