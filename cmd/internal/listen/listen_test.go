package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// listener opens c and closes the listener at the end of the test.
func listener(t *testing.T, c Config) *Listener {
	t.Helper()
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// accepted returns a channel of the accepted connections.
func accepted(l net.Listener) <-chan net.Conn {
	conns := make(chan net.Conn)
	go func() {
		defer close(conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	return conns
}

func dial(t *testing.T, at net.Addr) net.Conn {
	t.Helper()
	c, err := net.DialTimeout(at.Network(), at.String(), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestOpenRefuses(t *testing.T) {
	taken := listener(t, Config{Address: "127.0.0.1:0"})
	for address, want := range map[string]string{
		"":                                   "write host:port",
		"8080":                               "write host:port",
		"127.0.0.1:x":                        "unknown port",
		"192.0.2.77:8080":                    "this machine does not have the address",
		taken.Addr().String():                "shows the process",
		"unix:":                              "must begin with /",
		"unix:run/x.sock":                    "must begin with /",
		"unix:@abstract":                     "must begin with /",
		"unix:/" + strings.Repeat("x", 200):  "at most 107 bytes",
		"unix:" + t.TempDir() + "/no/x.sock": "create the folder",
		"systemd":                            "socket unit",
		"systemd:web":                        "socket unit",
	} {
		l, err := Open(t.Context(), Config{Address: address})
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q) returned %v, want an error with %q", address, err, want)
		}
	}
}

// TestConnectionLimit checks the connection limit. Accept waits while every connection has a
// request in flight. After one is closed, the next connection is served.
func TestConnectionLimit(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: 2})
	conns := accepted(l)
	dial(t, l.Addr())
	first := <-conns
	first.(user).Busy()
	dial(t, l.Addr())
	second := <-conns
	second.(user).Busy()
	dial(t, l.Addr())
	waits(t, "the listener to reach its limit", func() bool { return l.Stats().Pauses == 1 })
	if got := l.Stats(); got.Open != 2 || got.Limit != 2 || got.Accepted != 2 {
		t.Errorf("unexpected counters at the limit: %+v", got)
	}
	select {
	case <-conns:
		t.Fatal("a third connection was accepted at a limit of 2")
	case <-time.After(20 * time.Millisecond):
	}
	first.Close()
	first.Close() // A second Close must not release another place.
	third := <-conns
	if got := l.Stats(); got.Open != 2 || got.Accepted != 3 {
		t.Errorf("unexpected counters after one connection was closed: %+v", got)
	}
	second.Close()
	third.Close()
	if got := l.Stats(); got.Open != 0 {
		t.Errorf("unexpected counters after all connections were closed: %+v", got)
	}
}

// waits polls for an effect of another goroutine.
func waits(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("waited 5 s for %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// TestCloseEndsAccept checks that Close ends Accept. An accepted connection that waits for
// its place is still served, because no other process can accept it again.
func TestCloseEndsAccept(t *testing.T) {
	for name, limit := range map[string]int{"waiting for a connection": 0, "waiting for a place": 1} {
		t.Run(name, func(t *testing.T) {
			l := listener(t, Config{Address: "127.0.0.1:0", MaxConnections: limit})
			ended := make(chan error, 1)
			for range limit + 1 {
				dial(t, l.Addr())
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						ended <- err
						return
					}
					c.(user).Busy()
					t.Cleanup(func() { c.Close() })
				}
			}()
			waits(t, "a connection", func() bool { return l.Stats().Open == 1 && (limit == 0 || l.Stats().Pauses == 1) })
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("the second Close returned %v, want nil", err)
			}
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept returned %v, want net.ErrClosed", err)
			}
		})
	}
}

// TestCloseWrite checks that CloseWrite works through every layer.
func TestCloseWrite(t *testing.T) {
	l := listener(t, Config{Address: "127.0.0.1:0"})
	conns := accepted(l)
	client := dial(t, l.Addr())
	server := <-conns
	defer server.Close()
	if err := server.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the client read %v, want EOF", err)
	}
	piped, other := net.Pipe()
	defer other.Close()
	defer piped.Close()
	if err := closeWrite(piped); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite of a pipe returned %v, want ErrUnsupported", err)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if l, err := Open(ctx, Config{Address: "localhost:0"}); err == nil {
		l.Close()
		t.Error("Open with a canceled context returned a listener")
	}
}
