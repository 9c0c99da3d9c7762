package http2

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	wire "golang.org/x/net/http2"
)

// TestFlushReturns checks that a handler that flushes does not go on to write for another stream.
func TestFlushReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flushed atomic.Bool
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/flush" {
				_ = http.NewResponseController(w).Flush()
				flushed.Store(true)
				return
			}
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 10_000))
			}
		}, true)
		framer := wire.NewFramer(io.Discard, client.conn)
		read := func(frames int) {
			for range frames {
				if _, err := framer.ReadFrame(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		}
		read(2)
		_ = client.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 30})
		_ = client.WriteWindowUpdate(0, 1<<30)
		read(1)
		client.open(true, ":path", "/flush")
		synctest.Wait() // The handler writes its header, which the client does not read.
		client.open(true, ":path", "/endless")
		synctest.Wait()
		if flushed.Load() {
			t.Error("the header is not written, but the flush has returned")
		}
		read(20)
		if !flushed.Load() {
			t.Error("the flush has not returned, although its header is written")
		}
	})
}

// TestSlowAfterClose checks that a function of AfterClose does not keep other streams from sending.
func TestSlowAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				w.(interface{ AfterClose(f func()) }).AfterClose(func() { <-release })
			}
		}, false).hello()
		client.open(true, ":path", "/slow")
		client.want("the slow stream", "1: :status=200 content-length=0 end")
		client.open(true)
		client.want("another stream", "3: :status=200 content-length=0 end")
	})
}

// TestPanicAfterClose checks that a function of AfterClose that panics ends nothing.
func TestPanicAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/bad" {
				w.(interface{ AfterClose(f func()) }).AfterClose(func() { panic("oh") })
			}
		}, false).hello()
		client.open(true, ":path", "/bad")
		client.want("a panic", "1: :status=200 content-length=0 end")
		client.open(true)
		client.want("the next", "3: :status=200 content-length=0 end")
		if text := client.log.String(); !strings.Contains(text, "panic after serving") || !strings.Contains(text, "oh") {
			t.Errorf("the log says %q", text)
		}
	})
}

// TestTurns checks that streams that wait for the window of the connection get it in turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 10_000))
			}
		}, false).hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 20})
		before := map[uint32]int{}
		for range testStreams {
			id := client.open(true)
			before[id] = 0
		}
		for id := range before {
			before[id] = len(client.body(id))
		}
		const rounds = 5
		for range rounds * testStreams {
			_ = client.WriteWindowUpdate(0, 1)
			synctest.Wait()
		}
		for id, had := range before {
			if got := len(client.body(id)) - had; got != rounds {
				t.Errorf("stream %d got %d bytes of %d, want %d", id, got, rounds*testStreams, rounds)
			}
		}
	})
}

// TestSmallWindows checks that no stream waits when the client has given all that the responses need.
func TestSmallWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length, step = 50_000, 500
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			for range length / step {
				_, _ = w.Write(make([]byte, step))
			}
		}, false).hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 0})
		for range testStreams {
			client.open(true)
		}
		for range length / step {
			for n := range uint32(testStreams) {
				_ = client.WriteWindowUpdate(2*n+1, step)
			}
			_ = client.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 0})
			_ = client.WriteWindowUpdate(0, step*testStreams)
		}
		for n := range uint32(testStreams) {
			if got := len(client.body(2*n + 1)); got != length {
				t.Errorf("stream %d got %d bytes of %d", 2*n+1, got, length)
			}
		}
	})
}
