package rpc

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/internal/testkit/property"
)

// message is a gRPC message of some bytes, with its prefix.
func message(length int) []byte {
	m := make([]byte, prefixLength+length)
	binary.BigEndian.PutUint32(m[1:], uint32(length))
	return m
}

// wire collects the frames of one direction.
type wire struct {
	bytes.Buffer

	framer *http2.Framer
}

func newWire() *wire {
	w := new(wire)
	w.framer = http2.NewFramer(&w.Buffer, nil)
	return w
}

// TestCallsInFlight tells the story of one connection, frame by frame. Want has the number of calls
// and the bytes of their requests.
func TestCallsInFlight(t *testing.T) {
	c, in, out := newCalls(3), newWire(), newWire()
	in.WriteString(http2.ClientPreface)
	begin := func(stream uint32) {
		_ = in.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x82}, EndHeaders: true})
	}
	end := func(stream uint32) {
		_ = out.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x88}, EndHeaders: true, EndStream: true})
	}
	const f = frameBytes
	for _, step := range []struct {
		what  string
		do    func()
		calls int64
		bytes int64
	}{
		{"settings", func() { _ = in.framer.WriteSettings() }, 0, 0},
		{"the headers of a call", func() { begin(1) }, 1, 0},
		{"its message, to the end", func() { _ = in.framer.WriteData(1, true, message(50)) }, 1, f + 55},
		{"the first headers of the response", func() {
			_ = out.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true})
		}, 1, f + 55},
		{"the response", func() { _ = out.framer.WriteData(1, false, message(10)) }, 1, f + 55},
		{"the trailers", func() { end(1) }, 0, 0},
		{"the start of a request", func() { begin(3); _ = in.framer.WriteData(3, false, message(1000)[:300]) }, 1, f + 300},
		{"the start of a prefix", func() { begin(5); _ = in.framer.WriteData(5, false, message(10)[:3]) }, 2, 2*f + 303},
		{"the next part", func() { _ = in.framer.WriteData(3, false, message(1000)[300:600]) }, 2, 3*f + 603},
		{"a ping", func() { _ = in.framer.WritePing(false, [8]byte{}) }, 2, 3*f + 603},
		{"the rest of the prefix and the message", func() { _ = in.framer.WriteData(5, true, message(10)[3:]) }, 2, 4*f + 615},
		{"the client gives up", func() { _ = in.framer.WriteRSTStream(3, http2.ErrCodeCancel) }, 1, 2*f + 15},
		{"the server gives up", func() { _ = out.framer.WriteRSTStream(5, http2.ErrCodeNo) }, 0, 0},
		{"a finished message of an open stream", func() { begin(7); _ = in.framer.WriteData(7, false, message(95)) }, 1, f + 100},
		{"a frame in a buffer of 16 KiB", func() { _ = in.framer.WriteData(7, false, message(90_000)[:5000]) }, 1, 2*f + 100 + 16<<10},
		{"a long message counts up to a window", func() { _ = in.framer.WriteData(7, false, message(90_000)[5000:]) }, 1, streamWindow},
		{"a padded part", func() { _ = in.framer.WriteDataPadded(7, false, message(20)[:15], make([]byte, 30)) }, 1, streamWindow + f + 15},
		{"padding with the end", func() { _ = in.framer.WriteDataPadded(7, true, message(20)[15:], make([]byte, 5)) }, 1, streamWindow},
		{"an end with data", func() { _ = out.framer.WriteData(7, true, nil) }, 0, 0},
		{"a request that the server resets", func() { begin(9); _ = in.framer.WriteData(9, false, message(500)[:200]) }, 1, f + 200},
		{"the reset", func() { _ = out.framer.WriteRSTStream(9, http2.ErrCodeNo) }, 0, 0},
		{"what was on its way", func() { _ = in.framer.WriteData(9, false, message(500)[200:400]) }, 0, 0},
		{"trailers of an ended stream", func() { begin(9) }, 0, 0},
		{"an empty frame", func() { begin(11); _ = in.framer.WriteData(11, false, nil) }, 1, f},
		{"the end of the last call", func() { end(11) }, 0, 0},
	} {
		step.do()
		c.received(in.Bytes())
		c.sent(out.Bytes())
		in.Reset()
		out.Reset()
		if got, want := c.held(), step.calls*callBytes+step.bytes; got != want || c.tooMany {
			t.Errorf("after %s: got %d bytes, too many %v, want %d", step.what, got, c.tooMany, want)
		}
	}
	for stream := uint32(21); stream < 29; stream += 2 {
		begin(stream)
	}
	c.received(in.Bytes())
	if !c.tooMany {
		t.Error("four calls are accepted, want at most three")
	}
}

// slow is the twin of calls: it has whole frames, and keeps whole streams.
type slow struct {
	streams map[uint32]*slowStream
	last    uint32
}

type slowStream struct {
	data  []byte
	frame []int64 // The memory beside its bytes of the frame that each byte came in, at its first byte.
}

func (s *slow) held() (sum int64) {
	for _, stream := range s.streams {
		finished, data, frame := int64(0), stream.data, stream.frame
		for len(data) >= prefixLength {
			end := prefixLength + int(binary.BigEndian.Uint32(data[1:]))
			if len(data) < end {
				break
			}
			finished = min(finished+memory(frame[:end]), streamWindow)
			data, frame = data[end:], frame[end:]
		}
		sum += callBytes + finished + memory(frame)
	}
	return sum
}

// memory is the memory of bytes with their frames.
func memory(frame []int64) (sum int64) {
	for _, beside := range frame {
		sum += 1 + beside
	}
	return sum
}

// TestCallsEqualTheirTwin sends random frames in random pieces.
func TestCallsEqualTheirTwin(t *testing.T) {
	property.Check(t, func(t *property.T) {
		c, twin := newCalls(1000), &slow{streams: map[uint32]*slowStream{}}
		c.received([]byte(http2.ClientPreface))
		in, out := newWire(), newWire()
		for range property.IntRange(1, 40).Draw(t, "frames") {
			stream := uint32(property.IntRange(0, 4).Draw(t, "stream"))*2 + 1
			switch property.IntRange(0, 7).Draw(t, "kind") {
			case 0:
				_ = in.framer.WriteRSTStream(stream, http2.ErrCodeCancel)
				delete(twin.streams, stream)
			case 1:
				_ = out.framer.WriteRSTStream(stream, http2.ErrCodeNo)
				delete(twin.streams, stream)
			case 2:
				_ = in.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384})
				_ = out.framer.WriteWindowUpdate(stream, 5)
			case 3:
				ends := property.Bool().Draw(t, "ends")
				_ = out.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, EndStream: ends})
				if ends {
					delete(twin.streams, stream)
				}
			case 4:
				_ = in.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true})
				if stream > twin.last {
					twin.last, twin.streams[stream] = stream, &slowStream{}
				}
			default:
				drawData(t, in.framer, twin, stream)
			}
			feed(t, &in.Buffer, c.received)
			feed(t, &out.Buffer, c.sent)
			if got, want := c.held(), twin.held(); got != want {
				t.Fatalf("got %d bytes, want %d", got, want)
			}
		}
	})
}

// drawData sends a DATA frame with whole messages and a part of one.
func drawData(t *property.T, framer *http2.Framer, twin *slow, stream uint32) {
	data := message(property.IntRange(0, 16000).Draw(t, "length"))
	data = data[:property.IntRange(0, len(data)).Draw(t, "cut")]
	data = slices.Concat(message(property.IntRange(0, 30).Draw(t, "first")), data)
	padding := make([]byte, property.IntRange(0, 255).Draw(t, "padding"))
	_ = framer.WriteDataPadded(stream, property.Bool().Draw(t, "ends"), data, padding)
	if open := twin.streams[stream]; open != nil {
		length := int64(len(data) + 1 + len(padding))
		frame := make([]int64, len(data))
		frame[0] = frameMemory(length) - length
		open.data, open.frame = append(open.data, data...), append(open.frame, frame...)
	}
}

func feed(t *property.T, from *bytes.Buffer, to func([]byte)) {
	for from.Len() > 0 {
		piece, _ := io.ReadAll(io.LimitReader(from, int64(property.IntRange(1, 30_000).Draw(t, "piece"))))
		to(piece)
	}
}
