package app

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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/httpserver"
	"github.com/headgate/headgate/internal/config"
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
	t.Parallel()
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
	s := &httpserver.Server{
		Setting: "admin.listen", Address: "127.0.0.1:0", Handler: h,
		Connections: config.AdminConnections, Body: httpserver.OperatorBody, Idle: httpserver.OperatorIdle,
	}
	if err := s.Open(t.Context(), nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve() }()
	t.Cleanup(func() {
		// net/http delays the close of a connection with an unread body. Close does not wait for it.
		eventually(t, "the end of the connections", func() bool { return s.Stats().Open == 0 })
		now, end := context.WithCancel(context.WithoutCancel(t.Context()))
		end()
		_ = s.Close(now)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.At()
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

// TestLateBodiesGiveWay checks that clients that never send their bodies are disconnected when the listener is full,
// before their time for the body ends. A handler may read the body, or leave it to net/http.
func TestLateBodiesGiveWay(t *testing.T) {
	for _, path := range []string{"/read", "/left"} {
		var running atomic.Int64
		ends := make(chan error, 10*config.AdminConnections)
		at := serveBeside(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if running.Add(1); r.URL.Path == "/read" {
				_, err := io.Copy(io.Discard, r.Body)
				ends <- err
			}
		}))
		gaveWay := false
		// A machine that is busy for the whole time for a body needs another attempt.
		for attempt := int64(1); attempt <= 3 && !gaveWay; attempt++ {
			running.Store(0)
			began := time.Now()
			late := connect(t, at, config.AdminConnections, "POST "+path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
			eventually(t, "the start of the requests", func() bool { return running.Load() >= config.AdminConnections })
			if status, _ := get(t, at+"/short"); status != http.StatusOK {
				t.Errorf("%s: answered %d", path, status)
			}
			gaveWay = time.Since(began) < httpserver.ReadBody
			eventually(t, "the end of a connection", func() bool { return closed(late) > 0 })
		}
		if !gaveWay {
			t.Errorf("%s: a new client waited until the time for a body was over", path)
		}
		for len(ends) > 0 {
			if err := <-ends; err == nil {
				t.Errorf("%s: a handler got a body that was not sent", path)
			}
		}
	}
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
		"a long body":    fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", 2*httpserver.OperatorBody, strings.Repeat("x", 2*httpserver.OperatorBody)),
	} {
		conn := connect(t, at, 1, sent)[0]
		_ = conn.SetReadDeadline(time.Now().Add(httpserver.ReadBody + 20*time.Second))
		if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection stays open after %s", name)
		}
		if err := <-failed; err == nil {
			t.Errorf("the server reads %s to its end", name)
		}
	}
}
