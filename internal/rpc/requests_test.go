package rpc

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"pgregory.net/rapid"
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

// TestUnfinishedRequests tells the story of one connection, frame by frame.
func TestUnfinishedRequests(t *testing.T) {
	r, in, out := newRequests(3), newWire(), newWire()
	in.WriteString(http2.ClientPreface)
	for _, step := range []struct {
		what string
		do   func()
		want int64
	}{
		{"settings", func() { _ = in.framer.WriteSettings() }, 0},
		{"a whole call", func() { _ = in.framer.WriteData(1, true, message(50)) }, 0},
		{"the start of a request", func() { _ = in.framer.WriteData(3, false, message(1000)[:300]) }, 300},
		{"the start of a prefix", func() { _ = in.framer.WriteData(5, false, message(10)[:3]) }, 303},
		{"the next part", func() { _ = in.framer.WriteData(3, false, message(1000)[300:600]) }, 603},
		{"a ping", func() { _ = in.framer.WritePing(false, [8]byte{}) }, 603},
		{"the rest of the prefix and the message", func() { _ = in.framer.WriteData(5, true, message(10)[3:]) }, 600},
		{"the client gives up", func() { _ = in.framer.WriteRSTStream(3, http2.ErrCodeCancel) }, 0},
		{"a finished message of an open stream", func() { _ = in.framer.WriteData(7, false, message(95)) }, 100},
		{"a long message counts up to a window", func() { _ = in.framer.WriteData(7, false, message(90_000)) }, streamWindow},
		{"a padded part", func() { _ = in.framer.WriteDataPadded(7, false, message(20)[:15], make([]byte, 30)) }, streamWindow + 15},
		{"padding with the end", func() { _ = in.framer.WriteDataPadded(7, true, message(20)[15:], make([]byte, 5)) }, 0},
		{"a request that the server resets", func() { _ = in.framer.WriteData(9, false, message(500)[:200]) }, 200},
		{"the reset", func() { _ = out.framer.WriteRSTStream(9, http2.ErrCodeNo) }, 0},
		{"what was on its way", func() { _ = in.framer.WriteData(9, false, message(500)[200:400]) }, 0},
		{"an empty frame", func() { _ = in.framer.WriteData(11, false, nil) }, 0},
	} {
		step.do()
		r.received(in.Bytes())
		r.sent(out.Bytes())
		in.Reset()
		out.Reset()
		if got := r.held(); got != step.want || r.tooMany {
			t.Errorf("after %s: got %d bytes, too many %v, want %d", step.what, got, r.tooMany, step.want)
		}
	}
	for stream := uint32(21); stream < 29; stream += 2 {
		_ = in.framer.WriteData(stream, false, []byte{0})
	}
	r.received(in.Bytes())
	if !r.tooMany {
		t.Error("four unfinished requests are accepted, want at most three")
	}
}

// slow is the twin of requests: it has whole frames, and keeps whole streams.
type slow struct {
	streams map[uint32][]byte
	reset   map[uint32]bool
}

func (s *slow) held() (sum int64) {
	for _, data := range s.streams {
		finished := int64(0)
		for len(data) >= prefixLength {
			end := prefixLength + int(binary.BigEndian.Uint32(data[1:]))
			if len(data) < end {
				break
			}
			finished += int64(end)
			data = data[end:]
		}
		sum += min(finished, streamWindow) + int64(len(data))
	}
	return sum
}

// TestRequestsEqualTheirTwin sends random frames in random pieces.
func TestRequestsEqualTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, twin := newRequests(1000), &slow{map[uint32][]byte{}, map[uint32]bool{}}
		r.received([]byte(http2.ClientPreface))
		in, out := newWire(), newWire()
		for range rapid.IntRange(1, 40).Draw(t, "frames") {
			stream := uint32(rapid.IntRange(0, 4).Draw(t, "stream"))*2 + 1
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				_ = in.framer.WriteRSTStream(stream, http2.ErrCodeCancel)
				delete(twin.streams, stream)
			case 1:
				_ = out.framer.WriteRSTStream(stream, http2.ErrCodeNo)
				delete(twin.streams, stream)
				twin.reset[stream] = true
			case 2:
				_ = in.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384})
				_ = out.framer.WriteWindowUpdate(stream, 5)
			default:
				drawData(t, in.framer, twin, stream)
			}
			feed(t, &in.Buffer, r.received)
			feed(t, &out.Buffer, r.sent)
			if got, want := r.held(), twin.held(); got != want {
				t.Fatalf("got %d bytes, want %d", got, want)
			}
		}
	})
}

// drawData sends a DATA frame with whole messages and a part of one.
func drawData(t *rapid.T, framer *http2.Framer, twin *slow, stream uint32) {
	data := message(rapid.IntRange(0, 16000).Draw(t, "length"))
	data = data[:rapid.IntRange(0, len(data)).Draw(t, "cut")]
	data = slices.Concat(message(rapid.IntRange(0, 30).Draw(t, "first")), data)
	ends := rapid.Bool().Draw(t, "ends")
	padding := make([]byte, rapid.IntRange(0, 255).Draw(t, "padding"))
	_ = framer.WriteDataPadded(stream, ends, data, padding)
	switch {
	case twin.reset[stream]:
	case ends:
		delete(twin.streams, stream)
	default:
		twin.streams[stream] = append(twin.streams[stream], data...)
	}
}

func feed(t *rapid.T, from *bytes.Buffer, to func([]byte)) {
	for from.Len() > 0 {
		piece, _ := io.ReadAll(io.LimitReader(from, int64(rapid.IntRange(1, 30_000).Draw(t, "piece"))))
		to(piece)
	}
}
