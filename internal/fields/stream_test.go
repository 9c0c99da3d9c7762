package fields

import (
	"encoding/binary"
	"net/http"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// listening is a stage that counts calls of Stream.
type listening struct{ streams int }

func (*listening) Rule() guard.Rule { return guard.Rule{Rule: rule.Rule{Name: "listening"}} }

func (*listening) Facts() guard.Facts { return guard.Facts{} }

func (*listening) Enter(*guard.Pass) headgate.Decision { return headgate.Decision{} }

func (*listening) Leave(*guard.Pass, *guard.Outcome) {}

func (l *listening) Stream(*guard.Pass) { l.streams++ }

func typed(contentType string) http.Header { return http.Header{"Content-Type": {contentType}} }

// framed returns gRPC messages with payloads of these lengths.
func framed(lengths ...int) (body []byte) {
	for _, n := range lengths {
		body = binary.BigEndian.AppendUint32(append(body, 0), uint32(n))
		body = append(body, make([]byte, n)...)
	}
	return body
}

// forwarded returns the ticket of a forwarded request, and its stage.
func forwarded(t *testing.T) (*guard.Ticket, *listening) {
	t.Helper()
	l := new(listening)
	g, err := guard.New(guard.Config{Stages: []guard.Stage{l}})
	if err != nil {
		t.Fatal(err)
	}
	ticket := &guard.Ticket{Answer: &guard.Answer{}}
	if err := g.Admit(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, ticket); err != nil {
		t.Fatal(err)
	}
	ticket.Forward()
	return ticket, l
}

// TestStreamDetector checks which answers are streams.
func TestStreamDetector(t *testing.T) {
	one, three := framed(3), framed(3, 0, 9)
	for _, c := range []struct {
		contentType     string
		body            []byte
		atHeader, atEnd int
	}{
		{"", three, 0, 0},
		{"text/plain", three, 0, 0},
		{"text/event-stream", nil, 1, 1},
		{" Text/Event-Stream ; charset=utf-8", three, 1, 1},
		{"text/event-streams", three, 0, 0},
		{"multipart/mixed; boundary=text/event-stream", three, 0, 0},
		{"application/grpc", one, 0, 0},
		{"application/grpc", three, 0, 1},
		{"Application/GRPC+proto", three, 0, 1},
		{"application/grpc+json; charset=utf-8", three, 0, 1},
		{"application/grpc-web", three, 0, 0},
		{"application/grpc-web+proto", three, 0, 0},
		{"application/grpcx", three, 0, 0},
		{"application/grp", three, 0, 0},
	} {
		ticket, l := forwarded(t)
		d := DetectStream(ticket)
		d.Header(http.StatusOK, Map(typed(c.contentType)))
		if l.streams != c.atHeader {
			t.Errorf("%q: %d streams at the header, want %d", c.contentType, l.streams, c.atHeader)
		}
		d.Body(c.body)
		if l.streams != c.atEnd {
			t.Errorf("%q: %d streams at the end, want %d", c.contentType, l.streams, c.atEnd)
		}
		ticket.Done(guard.Outcome{})
	}
}

// TestStreamIsDetectedOnce checks that the stages learn a stream once, and that nothing happens
// without a ticket.
func TestStreamIsDetectedOnce(t *testing.T) {
	ticket, l := forwarded(t)
	d := DetectStream(ticket)
	d.Header(http.StatusOK, Map(typed("application/grpc")))
	d.Body(framed(1, 1))
	d.Body(framed(1))
	d.Header(http.StatusOK, Map(typed("text/event-stream")))
	if d.Stream(); l.streams != 1 {
		t.Errorf("the stage was told of %d streams, want 1", l.streams)
	}
	d = DetectStream(nil)
	d.Header(http.StatusOK, Map(typed("application/grpc")))
	d.Body(framed(1, 1))
	if d.Stream(); d.Counts() {
		t.Error("the body of a request without a ticket is counted")
	}
}

// TestHugeMessage checks the longest message: its length must not overflow.
func TestHugeMessage(t *testing.T) {
	m := message{}
	if m.endsWithin([]byte{0, 0xff, 0xff, 0xff, 0xff}) {
		t.Fatal("the message ends with its prefix")
	}
	chunk, left := make([]byte, 1<<20), uint64(1<<32-1)
	for ; left > uint64(len(chunk)); left -= uint64(len(chunk)) {
		if m.endsWithin(chunk) {
			t.Fatalf("the message ends %d bytes early", left)
		}
	}
	if m.endsWithin(chunk[:left]) {
		t.Error("the message ends with a second message that has not begun")
	}
	if !m.endsWithin(chunk[:1]) {
		t.Error("a byte after the message is not seen")
	}
}

// secondMessage is the slow twin of message: it returns where the second message of a whole body
// begins, or the length of the body.
func secondMessage(body []byte) int {
	if len(body) < prefix {
		return len(body)
	}
	end := prefix + uint64(binary.BigEndian.Uint32(body[1:]))
	return int(min(end, uint64(len(body))))
}

// FuzzMessage checks message against secondMessage, for any bytes in parts of any length.
func FuzzMessage(f *testing.F) {
	f.Add([]byte{}, []byte{1})
	f.Add(framed(3), []byte{1})
	f.Add(framed(0, 0), []byte{5, 1})
	f.Add(framed(300, 7), []byte{2, 0, 200})
	f.Add([]byte("\x00\xff\xff\xff\xff and bytes of no format"), []byte{3, 0, 4})
	f.Fuzz(func(t *testing.T, body, lengths []byte) {
		at, want := 0, secondMessage(body)
		for m, n := (message{}), 0; at < len(body); n++ {
			length := len(body)
			if n < len(lengths) {
				length = int(lengths[n])
			}
			chunk := body[at:min(at+length, len(body))]
			at += len(chunk)
			got := m.endsWithin(chunk)
			if got != (at > want) {
				t.Fatalf("after %d of %d bytes: a second message %v, but it begins at %d", at, len(body), got, want)
			}
			if got {
				return
			}
		}
	})
}

// TestStreamDetectorAllocates checks that a StreamDetector allocates nothing.
func TestStreamDetectorAllocates(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	ticket, _ := forwarded(t)
	calls, events, both := typed("application/grpc+proto"), typed("text/event-stream"), framed(9, 1)
	if n := testing.AllocsPerRun(100, func() {
		d := DetectStream(ticket)
		d.Header(http.StatusOK, Map(calls))
		d.Body(both[:3])
		d.Body(both[3:])
		d = DetectStream(ticket)
		d.Header(http.StatusOK, Map(events))
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
