package http2

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/internal/testkit/logs"
)

// FuzzFrames sends any bytes behind the preface. The server neither panics nor keeps a connection whose client has left, and
// its own frames are well formed.
func FuzzFrames(f *testing.F) {
	var out, block bytes.Buffer
	framer, pack := wire.NewFramer(&out, nil), hpack.NewEncoder(&block)
	_ = framer.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 10})
	for n, path := range []string{"/", "/long", "/body"} {
		block.Reset()
		for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", path}, {"trailer", "x"}} {
			_ = pack.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		id := uint32(2*n + 1)
		_ = framer.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		_ = framer.WriteData(id, n == 0, []byte("hello"))
		_ = framer.WriteWindowUpdate(id, 100)
	}
	_ = framer.WritePing(false, [8]byte{})
	_ = framer.WriteRSTStream(3, wire.ErrCodeCancel)
	_ = framer.WriteGoAway(0, wire.ErrCodeNo, nil)
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, sent []byte) {
		text := new(logs.Text)
		s := New(Config{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/body":
					_, _ = io.Copy(w, r.Body)
				case "/long":
					_, _ = w.Write(make([]byte, 100_000))
				}
			}),
			MaxHeader: testMaxHeader, MaxStreams: testStreams, PingAfter: testPing, PingTimeout: testPong,
			ReceiveStream: testWindow, ReceiveConnection: testConnWindow, Log: slog.New(slog.NewTextHandler(text, nil)),
		})
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.Serve(&Client{Conn: far, Context: t.Context(), State: func(http.ConnState) {}})
		}()
		go func() {
			_ = near.SetWriteDeadline(time.Now().Add(5 * time.Second))
			_, _ = near.Write(sent)
			_ = near.Close()
		}()
		reader := wire.NewFramer(nil, near)
		for {
			_, err := reader.ReadFrame()
			if err == nil {
				continue
			}
			if _, malformed := err.(wire.ConnectionError); malformed { //nolint:errorlint // because the framer returns the error itself.
				t.Errorf("the server sends a malformed frame: %v", err)
			}
			break
		}
		<-served
		if strings.Contains(text.String(), "panic") {
			t.Errorf("the log says %s", text)
		}
	})
}
