package http2

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	wire "golang.org/x/net/http2"
)

// TestResponses checks the frames of responses.
func TestResponses(t *testing.T) {
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	for _, c := range []struct {
		name    string
		fields  []string
		handler http.HandlerFunc
		want    []string
	}{
		{"nothing", nil, func(http.ResponseWriter, *http.Request) {}, []string{"1: :status=200 content-length=0 end"}},
		{"a status", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, []string{"1: :status=418 content-length=0 end"}},
		{"no content", nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, []string{"1: :status=204 end"}},
		{"a body", nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }, []string{"1: :status=200 content-length=4", "1: end"}},
		{"HEAD", []string{":method", "HEAD"}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }, []string{"1: :status=200 content-length=4 end"}},
		{
			"a flush", nil, func(w http.ResponseWriter, _ *http.Request) {
				flush(w)
				_, _ = io.WriteString(w, "fine")
			}, []string{"1: :status=200", "1: end"},
		},
		{
			"a long body", nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 60_000)) },
			[]string{"1: :status=200", "1: end"},
		},
		{
			"a declared length", nil, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "4")
				if _, err := io.WriteString(w, "fine, but too long"); !errors.Is(err, http.ErrContentLength) {
					t.Errorf("a body that is too long: %v", err)
				}
			}, []string{"1: :status=200 content-length=4 end"},
		},
		{
			"informational", nil, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Link", "</a>")
				w.WriteHeader(http.StatusEarlyHints)
				clear(w.Header())
				w.WriteHeader(http.StatusOK)
			}, []string{"1: :status=103 link=</a>", "1: :status=200 content-length=0 end"},
		},
		{
			"announced trailers", nil, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "Grpc-Status")
				_, _ = io.WriteString(w, "x")
				flush(w)
				w.Header().Set("Grpc-Status", "0")
			}, []string{"1: :status=200 trailer=Grpc-Status", "1: grpc-status=0 end"},
		},
		{
			"trailers by prefix", nil, func(w http.ResponseWriter, _ *http.Request) {
				flush(w)
				w.Header().Set(http.TrailerPrefix+"Grpc-Status", "7")
			}, []string{"1: :status=200", "1: grpc-status=7 end"},
		},
		{
			"invalid fields", nil, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["a b"] = []string{"1"}
				w.Header()["X-A"] = []string{"a\nb"}
				w.Header()["Transfer-Encoding"] = []string{"chunked"}
			}, []string{"1: :status=200 content-length=0 end"},
		},
		{"an abort", nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"1: INTERNAL_ERROR"}},
		{
			"expect", []string{":method", "POST", "expect", "100-continue"}, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = r.Body.Read(nil)
			}, []string{"1: :status=100", "1: :status=200 content-length=0 end", "1: NO_ERROR"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := connect(t, c.handler, false).hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 20})
				client.open(len(c.fields) < 4, c.fields...)
				client.want(c.name, c.want...)
				if text := client.log.String(); text != "" {
					t.Errorf("the log says %q", text)
				}
			})
		})
	}
}

// TestPanicIsLogged checks that a panic ends only its stream.
func TestPanicIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/bad" {
				panic("oh")
			}
		}, false).hello()
		client.open(true, ":path", "/bad")
		client.want("a panic", "1: INTERNAL_ERROR")
		client.open(true)
		client.want("the next", "3: :status=200 content-length=0 end")
		if text := client.log.String(); !strings.Contains(text, "panic serving") || !strings.Contains(text, "oh") {
			t.Errorf("the log says %q", text)
		}
	})
}

// TestWindows checks that a body waits for the windows of its stream and of the connection.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100_000)) }, false)
		client.hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 10})
		client.open(true)
		client.want("a window of 10", "1: :status=200")
		if got := len(client.body(1)); got != 10 {
			t.Errorf("%d bytes within a window of 10", got)
		}
		_ = client.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 20})
		synctest.Wait()
		if got := len(client.body(1)); got != 20 {
			t.Errorf("%d bytes within a window of 20", got)
		}
		_ = client.WriteWindowUpdate(1, 1<<20)
		synctest.Wait()
		if got := len(client.body(1)); got != firstWindow {
			t.Errorf("%d bytes within the window of the connection", got)
		}
		_ = client.WriteWindowUpdate(0, 1<<20)
		client.want("all windows", "1: end")
		if got := len(client.body(1)); got != 100_000 {
			t.Errorf("%d bytes of 100000", got)
		}
	})
}

// TestPause checks that the client has what a handler has written before it pauses, except for what is held until a flush.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "30000")
			_, _ = w.Write(make([]byte, 20_000))
			waits(w, r)
		}, false).hello()
		client.open(true)
		client.want("a pause", "1: :status=200 content-length=30000")
		if got := len(client.body(1)); got != 20_000 {
			t.Errorf("%d bytes of 20000 are sent", got)
		}
	})
}

// TestWriteDeadline checks that a stream whose client gives no window ends, and that the connection goes on.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		var closed time.Duration
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/long" {
				return
			}
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(3 * time.Second))
			began := time.Now()
			w.(interface{ AfterClose(f func()) }).AfterClose(func() { closed = time.Since(began) })
			_, failed = io.WriteString(w, strings.Repeat("x", 10_000))
		}, false).hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 0})
		client.open(true, ":path", "/long")
		client.want("no window", "1: :status=200")
		time.Sleep(4 * time.Second) //nolint:forbidigo // In a bubble.
		client.want("after the deadline", "1: INTERNAL_ERROR")
		if !errors.Is(failed, os.ErrDeadlineExceeded) || closed != 3*time.Second {
			t.Errorf("the handler got %v, and the stream ended after %v", failed, closed)
		}
		client.open(true)
		client.want("the next", "3: :status=200 content-length=0 end")
	})
}

// TestAfterClose checks that a stream is not over while the last frame is not written.
func TestAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over, returned := false, false
		client := connect(t, func(w http.ResponseWriter, _ *http.Request) {
			w.(interface{ AfterClose(f func()) }).AfterClose(func() { over = true })
			_, _ = io.WriteString(w, "fine")
			returned = true
		}, false).hello(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 0})
		client.open(true)
		synctest.Wait()
		if !returned || over {
			t.Errorf("returned %v, over %v", returned, over)
		}
		_ = client.WriteWindowUpdate(1, 10)
		synctest.Wait()
		if !over {
			t.Error("the stream is not over after its last frame")
		}
	})
}

// TestReadDeadline checks that a body that does not come ends the read, and only that.
func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed error
		var rest string
		client := connect(t, func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			_ = control.SetReadDeadline(time.Now().Add(3 * time.Second))
			_, failed = r.Body.Read(make([]byte, 1))
			_ = control.SetReadDeadline(time.Time{})
			read, _ := io.ReadAll(r.Body)
			rest = string(read)
		}, false).hello()
		id := client.open(false, ":method", "POST")
		time.Sleep(4 * time.Second) //nolint:forbidigo // In a bubble.
		synctest.Wait()
		if !errors.Is(failed, os.ErrDeadlineExceeded) {
			t.Errorf("the read got %v", failed)
		}
		_ = client.WriteData(id, true, []byte("late"))
		client.want("a late body", "1: :status=200 content-length=0 end")
		if rest != "late" {
			t.Errorf("the handler read %q", rest)
		}
	})
}
