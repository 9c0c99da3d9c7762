package http2

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/internal/testkit/logs"
)

// Bounds of the server of a test.
const (
	testStreams    = 4
	testMaxHeader  = 4 << 10
	testIdle       = 30 * time.Second
	testPing       = 60 * time.Second
	testPong       = 15 * time.Second
	testWindow     = 64 << 10
	testConnWindow = 128 << 10
)

// client is a client of HTTP/2 that writes every frame itself, in a bubble of synctest.
type client struct {
	*wire.Framer

	t      *testing.T
	conn   net.Conn
	server *Server
	log    *logs.Text
	states []http.ConnState
	block  bytes.Buffer
	pack   *hpack.Encoder
	next   uint32
	served chan struct{} // closed when Serve has returned

	mu     sync.Mutex // guards the fields below
	seen   []string   // the frames of the server, in words
	bodies map[uint32]*strings.Builder
	ended  bool // the server has closed the connection
}

// connect serves h to a client. The client reads all frames unless deaf is true.
func connect(t *testing.T, h http.HandlerFunc, deaf bool) *client {
	t.Helper()
	log := new(logs.Text)
	return dial(t, New(Config{
		Handler: h, Idle: testIdle, MaxHeader: testMaxHeader, MaxStreams: testStreams, PingAfter: testPing, PingTimeout: testPong,
		ReceiveStream: testWindow, ReceiveConnection: testConnWindow, Log: slog.New(slog.NewTextHandler(log, nil)),
	}), log, deaf)
}

// dial lets a server serve a client.
func dial(t *testing.T, s *Server, log *logs.Text, deaf bool) *client {
	t.Helper()
	c := &client{t: t, server: s, log: log, next: 1, bodies: map[uint32]*strings.Builder{}, served: make(chan struct{})}
	near, far := net.Pipe()
	c.conn = near
	c.Framer = wire.NewFramer(near, near)
	c.AllowIllegalWrites = true
	c.pack = hpack.NewEncoder(&c.block)
	go func() {
		defer close(c.served)
		c.server.Serve(&Client{Conn: far, Context: t.Context(), State: func(s http.ConnState) { c.states = append(c.states, s) }})
	}()
	if !deaf {
		go c.read()
	}
	t.Cleanup(func() {
		_ = near.Close()
		<-c.served
	})
	return c
}

// read notes the frames of the server, until the connection ends.
func (c *client) read() {
	framer := wire.NewFramer(io.Discard, c.conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		c.mu.Lock()
		if c.ended = err != nil; err == nil {
			c.note(frame)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// note describes a frame.
func (c *client) note(frame wire.Frame) {
	id, end := frame.Header().StreamID, ""
	if frame.Header().Flags.Has(wire.FlagDataEndStream) {
		end = " end"
	}
	text := ""
	switch f := frame.(type) {
	case *wire.MetaHeadersFrame:
		text = fmt.Sprintf("%d:", id)
		for _, field := range f.Fields {
			if field.Name != "date" {
				text += " " + field.Name + "=" + field.Value
			}
		}
		text += end
	case *wire.DataFrame:
		if c.bodies[id] == nil {
			c.bodies[id] = new(strings.Builder)
		}
		_, _ = c.bodies[id].Write(f.Data())
		if end != "" {
			text = fmt.Sprintf("%d: end", id)
		}
	case *wire.RSTStreamFrame:
		text = fmt.Sprintf("%d: %v", id, f.ErrCode)
	case *wire.GoAwayFrame:
		text = fmt.Sprintf("goaway %d %v", f.LastStreamID, f.ErrCode)
	case *wire.PingFrame:
		text = fmt.Sprintf("ping %v", f.IsAck())
	case *wire.WindowUpdateFrame:
		text = fmt.Sprintf("%d: window %d", id, f.Increment)
	}
	if text != "" {
		c.seen = append(c.seen, text)
	}
}

// frames returns the frames of the server since the last call, when the server has stopped to act.
func (c *client) frames() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// hasEnded reports whether the server has closed the connection.
func (c *client) hasEnded() bool {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// hello sends the settings and acknowledges those of the server.
func (c *client) hello(settings ...wire.Setting) *client {
	_ = c.WriteSettings(settings...)
	_ = c.WriteSettingsAck()
	c.frames()
	return c
}

// fields encodes a header of names and values in turn.
func (c *client) fields(pairs ...string) []byte {
	c.block.Reset()
	for n := 0; n+1 < len(pairs); n += 2 {
		_ = c.pack.WriteField(hpack.HeaderField{Name: pairs[n], Value: pairs[n+1]})
	}
	return bytes.Clone(c.block.Bytes())
}

// request returns the fields of a request. Given pseudo fields replace those of a plain request.
func request(pairs ...string) []string {
	all := []string{":method", "GET", ":scheme", "https", ":authority", "a", ":path", "/"}
	for n := 0; n < len(pairs); n += 2 {
		if at := slices.Index(all, pairs[n]); at >= 0 && strings.HasPrefix(pairs[n], ":") {
			all[at+1] = pairs[n+1]
			continue
		}
		all = append(all, pairs[n], pairs[n+1])
	}
	return all
}

// open opens a stream.
func (c *client) open(end bool, pairs ...string) uint32 {
	id := c.next
	c.next += 2
	_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(request(pairs...)...), EndStream: end, EndHeaders: true})
	return id
}

// want checks the frames of the server since the last call.
func (c *client) want(name string, frames ...string) {
	c.t.Helper()
	if got, want := strings.Join(c.frames(), "\n"), strings.Join(frames, "\n"); got != want {
		c.t.Errorf("%s: got frames\n%s\nwant\n%s", name, got, want)
	}
}

// body returns what has arrived of a body.
func (c *client) body(id uint32) string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bodies[id] == nil {
		return ""
	}
	return c.bodies[id].String()
}

// wantEnd checks that the server has closed the connection, at most some seconds later.
func (c *client) wantEnd(name string) {
	c.t.Helper()
	time.Sleep(2 * time.Second) //nolint:forbidigo // In a bubble.
	if !c.hasEnded() {
		c.t.Errorf("%s: the connection is open", name)
	}
	if n := len(c.states); n == 0 || c.states[n-1] != http.StateClosed {
		c.t.Errorf("%s: the states are %v", name, c.states)
	}
}

// done waits until the context of a request ends.
func done(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
