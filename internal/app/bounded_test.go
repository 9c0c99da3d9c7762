package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/config"
)

// connect opens n connections and sends the text on each. They end with the test.
func connect(t *testing.T, at string, n int, sent string) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
	}
	return conns
}

// closed counts the connections that the server has closed.
func closed(conns []net.Conn) (n int) {
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			n++
		}
	}
	return n
}

// TestSideConnectionsAreBounded checks the limit of connections on the admin listeners.
// Silent connections give way to new clients.
func TestSideConnectionsAreBounded(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Stop() }()
	for name, at := range map[string]string{"admin": i.Addresses().Admin, "health": i.Addresses().Health} {
		silent := connect(t, at, 2*config.AdminConnections, "")
		if status, _ := get(t, at+"/healthz"); status != http.StatusOK {
			t.Errorf("%s answers %d", name, status)
		}
		eventually(t, "the end of the silent connections beyond the bound", func() bool { return closed(silent) >= config.AdminConnections })
	}
}

// serveBeside serves h with the settings of the admin listener.
func serveBeside(t *testing.T, h http.Handler) string {
	t.Helper()
	s := &side{
		setting: "admin.listen", at: "127.0.0.1:0", handler: h,
		connections: config.AdminConnections, body: adminBody, idle: adminIdle,
	}
	if err := s.open(t.Context(), nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.serve() }()
	t.Cleanup(func() {
		// net/http delays the close of a connection with an unread body. Close does not wait for it.
		eventually(t, "the end of the connections", func() bool { return s.socket.Stats().Open == 0 })
		s.server.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.address()
}

// TestUnreadAnswersOfTheAdminListener checks that clients that send requests and read no
// answers are disconnected when the listener is full.
func TestUnreadAnswersOfTheAdminListener(t *testing.T) {
	var running atomic.Int64
	at := serveBeside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			running.Add(1)
			defer running.Add(-1)
			_, _ = w.Write(make([]byte, 32<<20))
		}
	}))
	connect(t, at, config.AdminConnections, strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 10))
	eventually(t, "the start of the answers", func() bool { return running.Load() == config.AdminConnections })
	for range 4 {
		if status, _ := get(t, at+"/short"); status != http.StatusOK {
			t.Errorf("answered %d", status)
		}
	}
	eventually(t, "the end of an unread answer", func() bool { return running.Load() < config.AdminConnections })
}

// TestBodiesForTheAdminListener checks that a missing body and a body that is too long end
// their connection.
func TestBodiesForTheAdminListener(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 2)
	at := serveBeside(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		failed <- err
	}))
	for name, sent := range map[string]string{
		"a missing body": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
		"a long body":    fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", 2*adminBody, strings.Repeat("x", 2*adminBody)),
	} {
		conn := connect(t, at, 1, sent)[0]
		_ = conn.SetReadDeadline(time.Now().Add(adminReadBody + 20*time.Second))
		if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection stays open after %s", name)
		}
		if err := <-failed; err == nil {
			t.Errorf("the server reads %s to its end", name)
		}
	}
}
