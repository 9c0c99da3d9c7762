package http2

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	wire "golang.org/x/net/http2"
)

// waits is a handler that waits until its client leaves.
func waits(_ http.ResponseWriter, r *http.Request) { _ = done(r.Context()) }

// TestBrokenProtocol checks faults of a client that end the connection, with GOAWAY and the reason.
func TestBrokenProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		send func(c *client)
		want string
	}{
		"a stream of the server": {func(c *client) { c.next = 2; c.open(true) }, "goaway 2 PROTOCOL_ERROR"},
		"an older stream":        {func(c *client) { c.next = 3; c.open(true); c.next = 1; c.open(true) }, "goaway 3 PROTOCOL_ERROR"},
		"data before a header":   {func(c *client) { _ = c.WriteData(1, true, []byte("x")) }, "goaway 1 PROTOCOL_ERROR"},
		"a reset before a header": {
			func(c *client) { _ = c.WriteRSTStream(1, wire.ErrCodeCancel) }, "goaway 1 PROTOCOL_ERROR",
		},
		"a window before a header":  {func(c *client) { _ = c.WriteWindowUpdate(1, 1) }, "goaway 1 PROTOCOL_ERROR"},
		"a window beyond its bound": {func(c *client) { _ = c.WriteWindowUpdate(0, maxWindow) }, "goaway 0 FLOW_CONTROL_ERROR"},
		"a push": {func(c *client) {
			_ = c.WritePushPromise(wire.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, "goaway 1 PROTOCOL_ERROR"},
		"a reply to no settings": {func(c *client) { _ = c.WriteSettingsAck() }, "goaway 0 PROTOCOL_ERROR"},
		"settings twice": {func(c *client) {
			s := wire.Setting{ID: wire.SettingMaxFrameSize, Val: 1 << 14}
			_ = c.WriteSettings(s, s)
		}, "goaway 0 PROTOCOL_ERROR"},
		"a header that is no header": {func(c *client) {
			_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: bytes.Repeat([]byte{0xff}, 100), EndHeaders: true})
		}, "goaway 1 COMPRESSION_ERROR"},
		"a long frame": {func(c *client) { _ = c.WriteRawFrame(wire.FrameData, 0, 1, make([]byte, maxFrame+1)) }, "goaway 0 FRAME_SIZE_ERROR"},
		"another frame in a header": {func(c *client) {
			_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(request()...)})
			_ = c.WritePing(false, [8]byte{})
		}, "goaway 0 PROTOCOL_ERROR"},
		"a header without end": {func(c *client) {
			_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(request()...)})
			for range 3 {
				_ = c.WriteContinuation(1, false, c.fields("x", strings.Repeat("y", testMaxHeader)))
			}
		}, "goaway 1 PROTOCOL_ERROR"},
		"a header in too many parts": {func(c *client) {
			_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(request()...)})
			for range mostUseless + 1 {
				_ = c.WriteContinuation(1, false, nil)
			}
		}, "goaway 1 ENHANCE_YOUR_CALM"},
		"a body of empty frames": {func(c *client) {
			id := c.open(false)
			for range mostUseless + 1 {
				_ = c.WriteData(id, false, nil)
			}
		}, "goaway 1 ENHANCE_YOUR_CALM"},
		"frames that are ignored": {func(c *client) {
			for n := range mostUseless/2 + 1 {
				_ = c.WritePriority(uint32(2*n+1), wire.PriorityParam{})
				_ = c.WriteRawFrame(0xbe, 0, 0, nil)
			}
		}, "goaway 1001 ENHANCE_YOUR_CALM"},
		"an invalid header without end": {func(c *client) {
			_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields("X", "1")})
			_ = c.WriteContinuation(1, false, c.fields("x", "1"))
		}, "goaway 1 PROTOCOL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, waits, false).hello()
				go c.send(client) // The server may stop to read.
				if seen := client.frames(); !slices.Contains(seen, c.want) {
					t.Errorf("got %v, want %s", seen, c.want)
				}
				client.wantEnd(name)
				if text := client.log.String(); name != "a long frame" && !strings.Contains(text, "server connection error") {
					t.Errorf("the log says %q", text)
				}
			})
		})
	}
}

// TestFirstFrame checks that a connection that does not begin with settings ends.
func TestFirstFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, waits, false)
		_ = client.WritePing(false, [8]byte{})
		client.wantEnd("no settings")
	})
}

// TestBrokenStreams checks faults of a client that end only their stream.
func TestBrokenStreams(t *testing.T) {
	post := []string{":method", "POST"}
	for name, c := range map[string]struct {
		send func(c *client)
		want string
	}{
		"more than the length": {func(c *client) {
			_ = c.WriteData(c.open(false, append(post, "content-length", "1")...), true, []byte("xy"))
		}, "1: PROTOCOL_ERROR"},
		"data behind the end":      {func(c *client) { _ = c.WriteData(c.open(true), true, []byte("x")) }, "1: STREAM_CLOSED"},
		"a header behind the end":  {func(c *client) { c.open(true); c.next = 1; c.open(true) }, "1: STREAM_CLOSED"},
		"a trailer without an end": {func(c *client) { c.open(false, post...); c.next = 1; c.open(false) }, "1: PROTOCOL_ERROR"},
		"a window of its own":      {func(c *client) { _ = c.WriteWindowUpdate(c.open(true), maxWindow) }, "1: FLOW_CONTROL_ERROR"},
		"its own parent": {func(c *client) {
			_ = c.WriteHeaders(wire.HeadersFrameParam{
				StreamID: 1, BlockFragment: c.fields(request()...), EndHeaders: true, Priority: wire.PriorityParam{StreamDep: 1, Weight: 1},
			})
			c.next = 3
		}, "1: PROTOCOL_ERROR"},
		"more than the window": {func(c *client) {
			id := c.open(false, post...)
			for range testWindow / maxFrame {
				_ = c.WriteData(id, false, make([]byte, maxFrame))
			}
			_ = c.WriteData(id, false, make([]byte, 1))
		}, "1: FLOW_CONTROL_ERROR"},
		"too many streams": {func(c *client) {
			for range testStreams + 1 {
				c.open(true)
			}
			_ = c.WriteRSTStream(1, wire.ErrCodeCancel)
		}, "9: PROTOCOL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/next" {
						waits(w, r)
					}
				}, false).hello()
				c.send(client)
				if seen := client.frames(); len(seen) == 0 || seen[0] != c.want {
					t.Errorf("got %v, want %s", seen, c.want)
				}
				id := client.open(true, ":path", "/next")
				if seen := client.frames(); len(seen) != 1 || !strings.Contains(seen[0], ":status=200") {
					t.Errorf("stream %d: got %v", id, seen)
				}
			})
		})
	}
}

// TestHandlersAreBounded checks that streams wait while resets leave as many handlers as streams are allowed, and that those
// that were reset before their handler started are not served.
func TestHandlersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var running, most, served atomic.Int64
		client := connect(t, func(http.ResponseWriter, *http.Request) {
			served.Add(1)
			most.Store(max(most.Load(), running.Add(1)))
			<-release
			running.Add(-1)
		}, false).hello()
		for range 3 * testStreams {
			_ = client.WriteRSTStream(client.open(true), wire.ErrCodeCancel)
		}
		last := client.open(true)
		synctest.Wait()
		if running.Load() != testStreams {
			t.Errorf("%d handlers run, want %d", running.Load(), testStreams)
		}
		close(release)
		client.want("the last stream", "25: :status=200 content-length=0 end")
		if most.Load() != testStreams || served.Load() != testStreams+1 || last != 25 {
			t.Errorf("%d handlers at once, %d in all, the last stream is %d", most.Load(), served.Load(), last)
		}
	})
}

// TestWaitingInTotal checks that streams are refused, and may be sent again, while streams of all connections wait for handlers.
func TestWaitingInTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := connect(t, func(http.ResponseWriter, *http.Request) { <-release }, false).hello()
		for range testStreams {
			_ = client.WriteRSTStream(client.open(true), wire.ErrCodeCancel)
		}
		synctest.Wait()
		client.server.waiting.Store(mostWaiting - 1) // Those of other connections.
		client.open(true)
		client.open(true)
		client.want("one stream too many", "11: REFUSED_STREAM")
		close(release)
		client.want("the one before", "9: :status=200 content-length=0 end")
		if n := client.server.waiting.Load(); n != mostWaiting-1 {
			t.Errorf("%d streams wait, want those of the others", n)
		}
	})
}

// TestEarlyResets checks that a client that resets many streams while handlers run is disconnected.
func TestEarlyResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		client := connect(t, func(http.ResponseWriter, *http.Request) { <-release }, false).hello()
		for range testStreams + 4*testStreams + 2 {
			_ = client.WriteRSTStream(client.open(true), wire.ErrCodeCancel)
		}
		client.want("early resets", "goaway 43 ENHANCE_YOUR_CALM")
		client.wantEnd("early resets")
	})
}

// TestDeafClient checks that a client that reads nothing is disconnected when it causes many frames, and that responses to it wait.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
		}, true)
		go func() {
			_ = client.WriteSettings()
			_ = client.WriteWindowUpdate(0, 1<<30)
			client.open(true)
			for client.WritePing(false, [8]byte{}) == nil {
				continue
			}
		}()
		<-client.served
		for c := range client.server.conns {
			t.Errorf("the connection of %s is served", c.remote)
		}
	})
}

// TestQueueIsBounded checks how much of a response is queued for a client that does not read.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
		}, true)
		_ = client.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 30})
		_ = client.WriteWindowUpdate(0, 1<<30)
		for range testStreams {
			client.open(true)
		}
		synctest.Wait()
		client.server.mu.Lock()
		defer client.server.mu.Unlock()
		for c := range client.server.conns {
			c.mu.Lock()
			if n := len(c.queue.out); n > mostQueued+maxFrame {
				t.Errorf("%d bytes are queued", n)
			}
			c.mu.Unlock()
		}
	})
}

// TestEmptyBodyKeepsNoLargeBuffer checks what a body holds when its handler has read what has arrived.
func TestEmptyBodyKeepsNoLargeBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived := make(chan struct{})
		kept := -1
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) {
			<-arrived
			_, _ = io.ReadFull(r.Body, make([]byte, 3*maxFrame))
			b, _ := r.Body.(*body)
			b.conn.mu.Lock()
			defer b.conn.mu.Unlock()
			kept = cap(b.data)
		}, false).hello()
		id := client.open(false, ":method", "POST")
		for range 3 {
			_ = client.WriteData(id, false, make([]byte, maxFrame))
		}
		synctest.Wait()
		close(arrived)
		synctest.Wait()
		if kept < 0 || kept > mostKept {
			t.Errorf("an empty body keeps %d bytes, want at most %d", kept, mostKept)
		}
	})
}

// TestTimes checks what happens to a connection in time.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(c *client)
		after time.Duration
		want  []string
		log   string
	}{
		{"no settings", func(*client) {}, settingsTimeout, nil, "timeout waiting for SETTINGS frames"},
		{"idle", func(c *client) { c.hello() }, testIdle + closeDelay, []string{"goaway 0 NO_ERROR"}, ""},
		{"idle after a request", func(c *client) {
			c.hello()
			c.open(true, ":path", "/short")
			c.want("", "1: :status=200 content-length=0 end")
		}, testIdle + closeDelay, []string{"goaway 1 NO_ERROR"}, ""},
		{"a header that does not end", func(c *client) {
			c.hello()
			_ = c.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(request()...)})
		}, testIdle + closeDelay, []string{"goaway 0 NO_ERROR"}, ""},
		{"no reply to a ping", func(c *client) { c.hello(); c.open(true) }, testPing + testPong, []string{"ping false"}, "timeout waiting for PING response"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/short" {
						waits(w, r)
					}
				}, false)
				client.frames()
				began := time.Now()
				c.begin(client)
				<-client.served
				if took := time.Since(began); took < c.after || took > c.after+time.Second {
					t.Errorf("the connection ended after %v, want %v", took, c.after)
				}
				if seen := client.frames(); !slices.Equal(seen, c.want) {
					t.Errorf("got %v, want %v", seen, c.want)
				}
				if text := client.log.String(); !strings.Contains(text, c.log) || c.log == "" && text != "" {
					t.Errorf("the log says %q", text)
				}
			})
		})
	}
}

// TestPongKeepsTheConnection checks that a client with a stream that answers pings stays connected.
func TestPongKeepsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, waits, false).hello()
		client.open(true)
		for range 5 {
			time.Sleep(testPing) //nolint:forbidigo // In a bubble.
			client.want("a ping", "ping false")
			var data [8]byte
			client.server.mu.Lock()
			for c := range client.server.conns {
				c.mu.Lock()
				data = c.clock.ping
				c.mu.Unlock()
			}
			client.server.mu.Unlock()
			_ = client.WritePing(true, data)
			synctest.Wait()
		}
		if client.hasEnded() {
			t.Error("the connection has ended")
		}
	})
}
