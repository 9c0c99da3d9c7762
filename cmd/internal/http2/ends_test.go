package http2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	wire "golang.org/x/net/http2"
)

// TestContextEnds checks that the context of a request ends with its stream and with its connection.
func TestContextEnds(t *testing.T) {
	for name, end := range map[string]func(c *client, id uint32){
		"reset":      func(c *client, id uint32) { _ = c.WriteRSTStream(id, wire.ErrCodeCancel) },
		"disconnect": func(c *client, _ uint32) { _ = c.conn.Close() },
		"a fault":    func(c *client, _ uint32) { _ = c.WriteWindowUpdate(0, maxWindow) },
		"close":      func(c *client, _ uint32) { c.server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failed, body error
				closed := false
				client := connect(t, func(w http.ResponseWriter, r *http.Request) {
					_, body = io.ReadAll(r.Body)
					failed = done(r.Context())
					w.(interface{ AfterClose(f func()) }).AfterClose(func() { closed = true })
				}, false).hello()
				end(client, client.open(false, ":method", "POST"))
				synctest.Wait()
				if !errors.Is(failed, context.Canceled) || body == nil || !closed {
					t.Errorf("the context says %v, the body %v, closed %v", failed, body, closed)
				}
			})
		})
	}
}

// TestContextEndsWithTheHandler checks that what the handler leaves behind ends.
func TestContextEndsWithTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left context.Context
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) { left = r.Context() }, false).hello() //nolint:fatcontext // because the test looks at the context later.
		client.open(true)
		synctest.Wait()
		if left.Err() == nil {
			t.Error("the context has not ended")
		}
	})
}

// TestShutdown checks that a server that shuts down serves the open streams, and no others.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := connect(t, func(http.ResponseWriter, *http.Request) { <-release }, false).hello()
		client.open(true)
		synctest.Wait()
		over := make(chan error, 1)
		go func() { over <- client.server.Shutdown(t.Context()) }()
		client.want("shutdown", "goaway 1 NO_ERROR")
		client.open(true)
		client.want("a late stream")
		close(release)
		if err := <-over; err != nil {
			t.Error(err)
		}
		client.want("the open stream", "1: :status=200 content-length=0 end")
		client.wantEnd("shutdown")
	})
}

// TestSecondGoAway checks that a fault behind GOAWAY does not name a later stream: the client may have sent it elsewhere.
func TestSecondGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, waits, false).hello()
		client.open(true)
		synctest.Wait()
		_ = client.WriteGoAway(0, wire.ErrCodeNo, nil)
		client.want("a client that leaves", "goaway 1 NO_ERROR")
		_ = client.WriteHeaders(wire.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		client.want("a fault", "goaway 1 COMPRESSION_ERROR")
	})
}

// TestShutdownWhileIdle checks that Shutdown closes idle connections soon, and stops to wait with its context.
func TestShutdownWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := connect(t, waits, false).hello()
		began := time.Now()
		if err := idle.server.Shutdown(t.Context()); err != nil || time.Since(began) > closeDelay {
			t.Errorf("Shutdown: %v after %v", err, time.Since(began))
		}
		busy := connect(t, waits, false).hello()
		busy.open(true)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := busy.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown with a stream: %v", err)
		}
	})
}

// TestLateConnection checks that a connection that comes behind a shutdown learns that its streams are not served, and that none comes
// behind Close.
func TestLateConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := connect(t, waits, false).hello()
		_ = first.conn.Close()
		if err := first.server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := dial(t, first.server, first.log, false)
		_ = late.WriteSettings()
		late.open(true)
		if seen := late.frames(); !slices.Contains(seen, "goaway 0 NO_ERROR") || slices.ContainsFunc(seen, func(s string) bool { return s[0] == '1' }) {
			t.Errorf("a late connection gets %v", seen)
		}
		late.wantEnd("a late connection")
		first.server.Close()
		dial(t, first.server, first.log, false).wantEnd("a closed server")
	})
}

// TestShutdownLingers checks that a client that writes while it reads the last frames is not cut off.
func TestShutdownLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, waits, false).hello()
		over := make(chan error, 1)
		go func() { over <- client.server.Shutdown(t.Context()) }()
		client.want("shutdown", "goaway 0 NO_ERROR")
		client.open(true)
		for n := range 3 {
			if err := client.WritePing(false, [8]byte{}); err != nil {
				t.Errorf("ping %d: %v", n, err)
			}
		}
		client.want("behind the end")
		_ = client.conn.Close()
		began := time.Now()
		if err := <-over; err != nil || time.Since(began) > 0 {
			t.Errorf("Shutdown: %v, %v after the client has closed", err, time.Since(began))
		}
	})
}

// TestConnectionClose checks that the field asks the client for no more streams, while the others go on.
func TestConnectionClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/open" {
				<-release
				return
			}
			w.Header().Set("Connection", "close")
		}, false).hello()
		client.open(true, ":path", "/open")
		synctest.Wait()
		client.open(true)
		client.want("close", "goaway 3 NO_ERROR", "3: :status=200 content-length=0 end")
		close(release)
		client.want("the other stream", "1: :status=200 content-length=0 end")
		client.wantEnd("close")
	})
}

// TestUnreadBody checks that the windows come back for a body that the handler does not read.
func TestUnreadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() }, false).hello()
		for n := range 8 { // More than the window of the connection.
			id := client.open(false, ":method", "POST")
			for range 3 {
				_ = client.WriteData(id, false, make([]byte, maxFrame))
			}
			if seen := client.frames(); client.hasEnded() || slices.ContainsFunc(seen, func(f string) bool { return strings.Contains(f, "FLOW") }) {
				t.Fatalf("request %d: %v", n, seen)
			}
		}
	})
}

// TestUpload checks that a body that is longer than all windows arrives.
func TestUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read int64
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) { read, _ = io.Copy(io.Discard, r.Body) }, false).hello()
		id := client.open(false, ":method", "POST")
		const frames = 64
		for range frames {
			_ = client.WriteData(id, false, make([]byte, maxFrame))
			synctest.Wait() // The handler reads, and the window grows.
		}
		_ = client.WriteData(id, true, nil)
		synctest.Wait()
		if read != frames*maxFrame {
			t.Errorf("%d bytes of %d arrived: %v", read, frames*maxFrame, client.frames())
		}
	})
}

// TestLateClose checks that a transport that closes a body after its handler has returned does not touch another request.
func TestLateClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept io.ReadCloser
		var text string
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) {
			if kept == nil {
				kept = r.Body
				return
			}
			_ = kept.Close()
			if _, err := kept.Read(make([]byte, 1)); err == nil {
				t.Error("the old body can be read")
			}
			read, _ := io.ReadAll(r.Body)
			text = string(read)
		}, false).hello()
		for range 2 {
			_ = client.WriteData(client.open(false, ":method", "POST"), true, []byte("hello"))
			synctest.Wait()
		}
		if text != "hello" {
			t.Errorf("the second body is %q", text)
		}
	})
}
