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
