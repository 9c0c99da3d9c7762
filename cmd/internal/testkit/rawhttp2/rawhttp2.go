// Package rawhttp2 sends HTTP/2 requests with header fields that client libraries refuse to send.
package rawhttp2

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// timeout bounds the wait for an answer on a busy machine.
const timeout = 20 * time.Second

// Send sends one request without TLS. pairs are names and values of header fields in turn. Send
// returns the header fields of the answer, including trailers.
func Send(tb testing.TB, address string, body []byte, pairs ...string) map[string]string {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", address, timeout) //nolint:noctx // the time is bounded
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(timeout))
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for n := 0; n+1 < len(pairs); n += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: pairs[n], Value: pairs[n+1]})
	}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = framer.WriteData(1, true, body)
	return answer(tb, framer)
}

// answer reads until the stream has ended.
func answer(tb testing.TB, framer *http2.Framer) map[string]string {
	tb.Helper()
	fields := map[string]string{}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			tb.Fatalf("the answer breaks off after %v: %v", fields, err)
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = framer.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				fields[field.Name] = field.Value
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			tb.Fatalf("the stream is reset after %v: %v", fields, frame)
		}
		if h := frame.Header(); h.StreamID == 1 && h.Flags.Has(http2.FlagDataEndStream) {
			return fields
		}
	}
}
