package http2

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	wire "golang.org/x/net/http2"
)

// TestPartOfAFrame checks that replies do not wait for the rest of the frame behind them.
func TestPartOfAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, waits, false).hello()
		var out bytes.Buffer
		framer := wire.NewFramer(&out, nil)
		_ = framer.WritePing(false, [8]byte{1})
		_ = framer.WritePing(false, [8]byte{2})
		sent := out.Bytes()
		_, _ = client.conn.Write(sent[:len(sent)-1])
		client.want("a frame and a part of the next", "ping true")
		_, _ = client.conn.Write(sent[len(sent)-1:])
		client.want("the rest", "ping true")
	})
}

// TestLateTrailers checks that trailers in flight for a stream that the server has ended do not end the connection.
func TestLateTrailers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, false).hello()
		id := client.open(false, ":method", "POST", "trailer", "x-sum")
		client.want("a refusal", "1: :status=429 content-length=0 end", "1: NO_ERROR")
		_ = client.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: client.fields("x-sum", "1"), EndStream: true, EndHeaders: true})
		client.want("trailers")
		client.open(true)
		client.want("the next stream", "3: :status=429 content-length=0 end")
	})
}

// TestRefusalsEnd checks that an answer to an invalid request does not wait for a window without a bound.
func TestRefusalsEnd(t *testing.T) {
	for name, fields := range map[string][]string{"400": {"connection", "x"}, "431": {"x", strings.Repeat("y", testMaxHeader+fieldsBeyond*fieldOverhead)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, waits, false).hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 0})
				client.open(true, fields...)
				client.frames()
				time.Sleep(refusalTimeout) //nolint:forbidigo // In a bubble.
				client.want("without a window", "1: INTERNAL_ERROR")
			})
		})
	}
}
