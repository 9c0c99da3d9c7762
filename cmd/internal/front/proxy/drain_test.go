package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestDrainTellsClientsToGo checks that a draining server answers one more request on
// each open connection, and then closes the connection.
func TestDrainTellsClientsToGo(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(fine))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(p, ServerConfig{Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	used, unused := connect(t, ln.Addr()), connect(t, ln.Addr())
	if _, last := used.request(t); last {
		t.Error("the first response closed the connection, want it open")
	}
	silent := connect(t, ln.Addr())
	eventually(t, "all connections to be open", func() bool { return s.open.Load() == 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // The grace is half a second.
	defer cancel()
	drained := make(chan error, 1)
	began := time.Now()
	go func() { drained <- s.Drain(ctx) }()
	if err := <-served; err != nil {
		t.Error(err)
	}
	// Dialing the port would prove nothing, because another program may use the port now.
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a draining server accepted a connection: got %v, want net.ErrClosed", err)
	}
	for name, c := range map[string]*talker{"used": used, "unused": unused} {
		if status, last := c.request(t); status != http.StatusOK || !last {
			t.Errorf("the %s connection got status %d, last response: %v; want 200, true", name, status, last)
		}
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("reading the silent connection: got error %v, want EOF", err)
	}
	if elapsed := time.Since(began); elapsed < 400*time.Millisecond || elapsed > 3*time.Second {
		t.Errorf("Drain took %v, want little more than the grace for the silent connection", elapsed)
	}
}

// talker is a connection that sends one request after another.
type talker struct {
	net.Conn

	answers *bufio.Reader
}

func connect(t *testing.T, to net.Addr) *talker {
	t.Helper()
	conn, err := net.Dial(to.Network(), to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return &talker{conn, bufio.NewReader(conn)}
}

// request sends a request. It returns the status, and whether the connection closes.
func (c *talker) request(t *testing.T) (status int, last bool) {
	t.Helper()
	fmt.Fprint(c, "GET /v1/product HTTP/1.1\r\nHost: a\r\n\r\n")
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, resp.Close
}

// TestDrainOfNothing checks that a drain without connections ends at once.
func TestDrainOfNothing(t *testing.T) {
	s := NewServer(beforeHandler(t, http.HandlerFunc(fine)), ServerConfig{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	if err := s.Drain(ctx); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("Drain took %v and returned %v, want no delay and no error", time.Since(began), err)
	}
}

// TestHandOver checks that busy clients on persistent connections see no error while one
// server drains and another takes over its socket.
func TestHandOver(t *testing.T) {
	for _, c := range []struct {
		name      string
		protocols func(*http.Protocols)
	}{{"HTTP/1.1", http1Only}, {"HTTP/2", http2}} {
		t.Run(c.name, func(t *testing.T) {
			// Each server represents a process, and waits only for its own requests.
			process := func() *Proxy {
				return beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
			}
			holder, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close()
			url := "http://" + holder.Addr().String() + "/v1/product"
			server := inherit(t, process(), holder)
			var clients sync.WaitGroup
			var requests atomic.Int64
			stop := make(chan struct{})
			for range 4 {
				client := httpClient(t, nil, c.protocols)
				clients.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if err := post(t.Context(), client, url); err != nil {
							t.Error(err)
							return
						}
						requests.Add(1)
					}
				})
			}
			for range 4 {
				seen := requests.Load()
				eventually(t, "traffic", func() bool { return requests.Load() >= seen+100 || t.Failed() })
				next := inherit(t, process(), holder)
				server.stop(t)
				server = next
			}
			close(stop)
			clients.Wait()
			server.stop(t)
			t.Logf("%d requests", requests.Load())
		})
	}
}

// post sends a POST request, which a transport may not retry on its own.
func post(ctx context.Context, c *http.Client, url string) error {
	r, w := io.Pipe()
	go func() { fmt.Fprint(w, "ping"); w.Close() }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, r)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ping" || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("got status %d, body %q: %w", resp.StatusCode, body, err)
	}
	return nil
}

// successor is a server on a copy of a socket, as in another process.
type successor struct {
	*Server

	served chan error
}

func inherit(t *testing.T, p *Proxy, holder net.Listener) *successor {
	t.Helper()
	file, err := holder.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ln, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &successor{NewServer(p, ServerConfig{Log: slog.New(slog.DiscardHandler)}), make(chan error, 1)}
	go func() { s.served <- s.Serve(ln) }()
	return s
}

func (s *successor) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	if err := <-s.served; err != nil {
		t.Error(err)
	}
}
