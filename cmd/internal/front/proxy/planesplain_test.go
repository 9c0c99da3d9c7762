package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/guard/report"
)

// plainConn has only what every system has: no descriptor, and nothing that tells what the peer does.
type plainConn struct{ net.Conn }

func (c plainConn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// plainListener hides what its connections can do.
type plainListener struct{ net.Listener }

// countedReads counts the reads of plain connections that wait.
type countedReads struct {
	net.Listener

	reads *atomic.Int64
}

func (l countedReads) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return readCounter{plainConn{c}, l.reads}, err
}

type readCounter struct {
	plainConn

	reads *atomic.Int64
}

func (c readCounter) Read(p []byte) (int, error) {
	c.reads.Add(1)
	defer c.reads.Add(-1)
	return c.Conn.Read(p)
}

func (l plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return plainConn{c}, nil
}

// dialPlain hides what the connections of dial can do.
func dialPlain(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return plainConn{c}, nil
	}
}

// TestPlanesPlain sends the corpus to the standard plane and to a fast plane whose connections, to clients and to the upstream, have no
// descriptor.
func TestPlanesPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pair{newPlane(t, false, planeSetup{}), newPlane(t, true, planeSetup{plain: true})}
		defer p.stop()
		for i, c := range corpus() {
			if i%rarely() == 0 {
				p.check(t, c)
			}
		}
		if n := p.fastRequests(); n < 100/int64(rarely()) {
			t.Errorf("%d requests took the fast path, want at least %d", n, 100/rarely())
		}
	})
}

// TestPlainClientLeaves checks that a request whose client disconnects ends soon, with a body and without, on the fast path and lent to
// net/http, and after another request on the connection.
func TestPlainClientLeaves(t *testing.T) {
	const before = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
	for _, row := range []struct {
		name, before, sent string
		path               report.Path
	}{
		{"first", "", "GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n", report.PathFast},
		{"second", before, "GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n", report.PathFast},
		{"body", before, "POST /slow HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc", report.PathFast},
		{"lent", before, "GET /slow HTTP/1.1\r\nHost: a.example\r\nTrailer: A\r\n\r\n", report.PathTrailer},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var upstream answering
				p := newPlane(t, true, planeSetup{plain: true, script: upstream.serve})
				defer p.stop()
				conn, err := p.clients.(*memoryListener).connect(p.clients.Addr())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = conn.Write([]byte(row.before))
				synctest.Wait()
				upstream.next.Store(&upstreamAnswer{})
				served := p.traffic.ServedBy(row.path)
				_, _ = conn.Write([]byte(row.sent))
				time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
				synctest.Wait()
				if n := p.traffic.InFlight.Load(); n != 1 || p.traffic.ServedBy(row.path) != served+1 {
					t.Fatalf("%d requests in flight, %d on path %s", n, p.traffic.ServedBy(row.path)-served, row.path)
				}
				_ = conn.Close()
				time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
				synctest.Wait()
				if n := p.traffic.InFlight.Load(); n != 0 {
					t.Errorf("%d requests in flight one second after their client has left", n)
				}
				p.upstream.stop()
			})
		})
	}
}

// TestPlainTLS checks that a connection with TLS serves further requests after the proxy has read ahead during a slow one, and that a
// slow request ends when its client leaves.
func TestPlainTLS(t *testing.T) {
	var reads atomic.Int64
	ended := make(chan struct{})
	p := beforeHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/last" {
			<-r.Context().Done()
			close(ended)
			return
		}
		for reads.Load() == 0 { // Until the proxy reads ahead.
			<-time.After(time.Millisecond)
		}
		fine(w, r)
	}), onThePlane(true))
	served, trusting := certificate(t)
	ln := opening(t, "tcp", "127.0.0.1:0")
	_, at := start(t, p, countedReads{ln, &reads}, ServerConfig{TLS: served, checkEvery: 10 * time.Millisecond})
	conn, err := tls.Dial("tcp", at, trusting)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(conn)
	for range 3 {
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %v, error %v", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	_, _ = conn.Write([]byte("GET /last HTTP/1.1\r\nHost: a\r\n\r\n"))
	eventually(t, "the last request", func() bool { return p.traffic.InFlight.Load() == 1 })
	_ = conn.Close()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the request did not end after its client has left")
	}
}
