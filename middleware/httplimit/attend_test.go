package httplimit_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/atmost"
	"github.com/headgate/headgate/middleware/httplimit"
)

// limitedToOne wraps a handler in the middleware with a stage of one slot.
func limitedToOne(t *testing.T, next http.HandlerFunc) (http.Handler, *atmost.Stage) {
	t.Helper()
	slots := atmost.New(1, 0)
	g, err := guard.New(guard.Config{Stages: []guard.Stage{slots}})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(g, httplimit.Options{Log: slog.New(slog.DiscardHandler)})(next), slots
}

// wantReleased waits until no slot is used.
func wantReleased(t *testing.T, slots *atmost.Stage) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; runtime.GC() {
		used, _, waiting := slots.Slots()
		if used+waiting == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d slots are used and %d requests wait, want 0 and 0", used, waiting)
		}
		<-time.After(time.Millisecond)
	}
}

// hijack takes over the connection of a request.
func hijack(t *testing.T, w http.ResponseWriter) (net.Conn, *bufio.ReadWriter) {
	t.Helper()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		panic(http.ErrAbortHandler)
	}
	return conn, rw
}

// TestHijackedEnds checks that the slot of a hijacked connection is released, however the
// connection ends.
func TestHijackedEnds(t *testing.T) {
	for name, next := range map[string]func(http.ResponseWriter){
		"the client closes while a goroutine reads": func(w http.ResponseWriter) {
			conn, rw := hijack(t, w)
			go func() {
				defer conn.Close()
				_, _ = io.Copy(io.Discard, rw)
			}()
		},
		"the client closes, and the program drops the connection": func(w http.ResponseWriter) {
			conn, _ := hijack(t, w)
			go func() {
				_, _ = conn.Read(make([]byte, 1))
			}()
		},
		"the handler still writes to its ResponseWriter": func(w http.ResponseWriter) {
			conn, _ := hijack(t, w)
			defer conn.Close()
			w.WriteHeader(http.StatusTeapot)
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("a write after Hijack succeeded")
			}
		},
		"the handler flushes, and net/http panics": func(w http.ResponseWriter) {
			conn, _ := hijack(t, w)
			defer conn.Close()
			w.(http.Flusher).Flush()
		},
		"the handler panics": func(w http.ResponseWriter) {
			_, _ = hijack(t, w)
			panic(http.ErrAbortHandler)
		},
		"the handler closes twice": func(w http.ResponseWriter) {
			conn, _ := hijack(t, w)
			_, _ = conn.Close(), conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{})
			h, slots := limitedToOne(t, func(w http.ResponseWriter, _ *http.Request) {
				defer close(left)
				next(w)
			})
			s := httptest.NewUnstartedServer(h)
			s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			s.Start()
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-left
			_ = conn.Close()
			wantReleased(t, slots)
		})
	}
}

// TestAbortedHandler checks that a handler that aborts its response releases its slot.
func TestAbortedHandler(t *testing.T) {
	h, slots := limitedToOne(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	func() {
		defer func() {
			if recover() != http.ErrAbortHandler { //nolint:errorlint // It is the value of a panic.
				t.Error("the panic did not reach the server")
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	}()
	wantReleased(t, slots)
}

// wrapped is another middleware's writer. The original is reachable only by Unwrap.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestHijackBehindAWriter checks a writer of another middleware that does not implement
// http.Hijacker itself. Hijacking goes through our writer, so that the request ends with
// the connection.
func TestHijackBehindAWriter(t *testing.T) {
	conns := make(chan net.Conn, 1)
	h, slots := limitedToOne(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _ := hijack(t, w)
		conns <- conn
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(wrapped{w}, r)
		if used, _, _ := slots.Slots(); used != 1 {
			t.Errorf("%d slots are used while the connection is open, want 1", used)
		}
		_ = (<-conns).Close()
	}))
	defer s.Close()
	if resp, err := s.Client().Get(s.URL); err == nil {
		resp.Body.Close()
	}
	wantReleased(t, slots)
}

// pushing is a writer with Push and without Hijack.
type pushing struct{ *httptest.ResponseRecorder }

func (pushing) Push(string, *http.PushOptions) error { return http.ErrNotSupported }

type pushingConn struct{ pushing }

func (pushingConn) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

type plainConn struct{ *httptest.ResponseRecorder }

func (plainConn) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

// TestWriterKeepsItsMethods checks that a handler finds exactly the optional interfaces of
// the original writer.
func TestWriterKeepsItsMethods(t *testing.T) {
	for name, c := range map[string]struct {
		writer          http.ResponseWriter
		pushes, hijacks bool
	}{
		"plain":  {writer: httptest.NewRecorder()},
		"push":   {writer: pushing{httptest.NewRecorder()}, pushes: true},
		"hijack": {writer: plainConn{httptest.NewRecorder()}, hijacks: true},
		"both":   {writer: pushingConn{pushing{httptest.NewRecorder()}}, pushes: true, hijacks: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := limitedToOne(t, func(w http.ResponseWriter, _ *http.Request) {
				_, pushes := w.(http.Pusher)
				_, hijacks := w.(http.Hijacker)
				_, reads := w.(io.ReaderFrom)
				_, flushes := w.(http.Flusher)
				_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
				if pushes != c.pushes || hijacks != c.hijacks || reads != c.hijacks || !flushes || !unwraps {
					t.Errorf("got Push %v, Hijack %v, ReadFrom %v, Flush %v, Unwrap %v", pushes, hijacks, reads, flushes, unwraps)
				}
			})
			h.ServeHTTP(c.writer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
		})
	}
}
