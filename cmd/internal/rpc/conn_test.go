package rpc

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/listen"
)

// marked is a connection of a listener, which records what the server says about it.
type marked struct {
	net.Conn

	state string
}

func (m *marked) Idle() { m.state = "idle" }
func (m *marked) Busy() { m.state = "busy" }
func (m *marked) Abort() {
	m.state = "aborted"
	_ = m.Conn.Close()
}

// piped returns a connection of a server, and its client.
func piped(t *testing.T) (c *conn, m *marked, client net.Conn) {
	t.Helper()
	client, served := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	m = &marked{Conn: served}
	return &conn{Conn: m, places: m, server: New(settings(&service{}))}, m, client
}

// TestQuietConnectionsAreIdle: a connection is busy from the end of its handshakes on, and idle
// after a check without a byte.
func TestQuietConnectionsAreIdle(t *testing.T) {
	c, m, client := piped(t)
	read := func() {
		go func() { _, _ = client.Write([]byte{1}) }()
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(1e9, 0)
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a byte of a handshake", read, ""},
		{"the end of the handshakes", func() { _ = c.SetDeadline(time.Time{}) }, "busy"},
		{"a check after a byte", func() { c.check(now, time.Hour) }, "busy"},
		{"a check after no byte", func() { c.check(now, time.Hour) }, "idle"},
		{"a byte", read, "busy"},
		{"a check", func() { c.check(now, time.Hour) }, "busy"},
	} {
		if step.do(); m.state != step.want {
			t.Errorf("after %s the connection is %q, want %q", step.what, m.state, step.want)
		}
	}
}

// TestClientThatDoesNotRead: a write that makes no progress for WriteTimeout ends the connection.
// Writes that make progress do not.
func TestClientThatDoesNotRead(t *testing.T) {
	c, m, client := piped(t)
	now := time.Unix(1e9, 0)
	for range 3 {
		go func() { _, _ = io.ReadFull(client, make([]byte, 1)) }()
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		c.check(now, time.Minute)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte{1})
		failed <- err
	}()
	eventually(t, "the write", func() bool { return c.writes.Load()%2 == 1 })
	c.check(now, time.Minute)
	c.check(now.Add(59*time.Second), time.Minute)
	if m.state == "aborted" {
		t.Fatal("the connection is closed before the timeout")
	}
	c.check(now.Add(time.Minute), time.Minute)
	if err := <-failed; err == nil || m.state != "aborted" {
		t.Errorf("the write ends with %v, and the connection is %q, want aborted", err, m.state)
	}
}

// sendPart opens a connection that sends a part of a request on each of some streams, and no more.
func sendPart(t *testing.T, at string, streams, length, sent int) net.Conn {
	t.Helper()
	c := newCaller(1 << 16)
	for range streams {
		c.call("Call", message(length)[:sent], true)
	}
	return c.send(t, at)
}

// partMemory is the memory of calls of sendPart.
func partMemory(streams, sent int) (sum int64) {
	for ; sent > 0; sent -= 16 << 10 {
		sum += frameMemory(int64(min(sent, 16<<10)))
	}
	return int64(streams) * (callBytes + sum)
}

// TestUnfinishedRequestsAreBounded: clients that never finish their requests hold at most
// MaxCallMemory bytes. The connection with the most bytes is closed, and other clients are served.
func TestUnfinishedRequestsAreBounded(t *testing.T) {
	c := settings(&service{})
	c.MaxCallMemory = 3 * partMemory(10, 60_000)
	r := serve(t, c, listen.Config{})
	client := dial(t, r.at, nil)
	small := sendPart(t, r.at, 1, 1<<20, 10_000)
	eventually(t, "the small request", func() bool { return r.Stats().CallMemory == partMemory(1, 10_000) })
	var large []net.Conn
	for range 4 { // Only one of them fits.
		large = append(large, sendPart(t, r.at, 10, 1<<20, 60_000))
	}
	for n := range 3 {
		eventually(t, "an eviction", func() bool { return r.Stats().Evicted >= uint64(n+1) })
	}
	eventually(t, "the last connection", func() bool { return r.Stats().CallMemory == partMemory(1, 10_000)+partMemory(10, 60_000) })
	if _, err := call(t, client, 100_000); err != nil {
		t.Errorf("a client beside them: %v", err)
	}
	if _, err := small.Write(nil); err != nil {
		t.Errorf("the small request: %v", err)
	}
	ended := 0
	for _, conn := range large {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // The connection that stays open takes all of its time.
		if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			ended++
		}
	}
	if ended != 3 {
		t.Errorf("%d connections with many bytes are closed, want 3", ended)
	}
}
