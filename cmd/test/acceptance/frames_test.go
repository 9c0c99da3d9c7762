package acceptance

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames is an HTTP/2 connection on which a test writes every frame itself.
type frames struct {
	*http2.Framer

	t     *testing.T
	conn  net.Conn
	block bytes.Buffer
	pack  *hpack.Encoder
	next  uint32
}

// outcome is the end of a stream.
type outcome string

// The outcomes other than a status.
const (
	reset  outcome = "reset"  // of the stream
	closed outcome = "closed" // of the connection
)

func dialFrames(t *testing.T, address string, settings ...http2.Setting) *frames {
	t.Helper()
	return framesOn(t, dial(t, "tcp", address).Conn, settings...)
}

// framesOn is dialFrames on an open connection.
func framesOn(t *testing.T, conn net.Conn, settings ...http2.Setting) *frames {
	t.Helper()
	f := &frames{Framer: http2.NewFramer(conn, conn), t: t, conn: conn, next: 1}
	f.pack = hpack.NewEncoder(&f.block)
	f.AllowIllegalWrites = true
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = f.WriteSettings(settings...)
	return f
}

// fields encodes a header: names and values in turns.
func (f *frames) fields(pairs ...string) []byte {
	f.block.Reset()
	for n := 0; n+1 < len(pairs); n += 2 {
		_ = f.pack.WriteField(hpack.HeaderField{Name: pairs[n], Value: pairs[n+1]})
	}
	return bytes.Clone(f.block.Bytes())
}

// open starts a stream with a header.
func (f *frames) open(end bool, pairs ...string) uint32 {
	id := f.next
	f.next += 2
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(pairs...), EndStream: end, EndHeaders: true})
	return id
}

// until reads frames until a stream has an outcome.
func (f *frames) until(id uint32) outcome {
	f.t.Helper()
	for {
		frame, err := f.ReadFrame()
		var broken http2.StreamError
		switch {
		case errors.As(err, &broken):
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.t.Error("nothing becomes of the stream, and the connection stays open")
			return closed
		case err != nil:
			return closed
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				_ = f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			if status := frame.PseudoValue("status"); frame.StreamID == id && status >= "200" {
				return outcome(status)
			}
		case *http2.RSTStreamFrame:
			if frame.StreamID == id {
				return reset
			}
		case *http2.GoAwayFrame:
			if frame.ErrCode != http2.ErrCodeNo && frame.LastStreamID < id {
				return closed
			}
		}
	}
}

// headerOf gives the header of a plain request, with changes. A name with a leading "-" is
// removed, another value replaces the usual one, and other fields are added.
func headerOf(changes ...string) []string {
	pairs := []string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/x"}
	for n := 0; n+1 < len(changes); n += 2 {
		name, value, found := changes[n], changes[n+1], false
		for at := 0; at+1 < len(pairs); at += 2 {
			if found = at < 8 && pairs[at] == strings.TrimPrefix(name, "-"); found {
				if pairs[at+1] = value; strings.HasPrefix(name, "-") {
					pairs = append(pairs[:at:at], pairs[at+2:]...)
				}
				break
			}
		}
		if !found {
			pairs = append(pairs, name, value)
		}
	}
	return pairs
}
