package resp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// onRedis serves with a store in Redis, for which decisions wait up to a timeout.
func onRedis(t *testing.T, timeout time.Duration) (at string, server *testserver.Server) {
	t.Helper()
	server = testserver.Start(t)
	store, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	_, at = startWithin(t, store, timeout, Config{}, WriteTimeout)
	return at, server
}

// TestSharedStore: clients of two servers share the limits that they send, also with different periods.
func TestSharedStore(t *testing.T) {
	at, server := onRedis(t, storePatience)
	store, err := redis.Open(redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	_, other := startOn(t, store, Config{}, WriteTimeout)
	one, two := dial(t, at), dial(t, other)
	allowed := 0
	for i := range 30 {
		c := []net.Conn{one, two}[i%2]
		period := []int{86400, 3600}[i/2%2] // 10 at once, and no further one within a second.
		if _, err := fmt.Fprintf(c, "CL.THROTTLE key 9 1 %d\r\n", period); err != nil {
			t.Fatal(err)
		}
		if lines := answer(t, c, 6); lines[1] == ":0" {
			allowed++
		}
	}
	if allowed != 10 {
		t.Errorf("%d requests pass, want 10", allowed)
	}
}

// answer reads lines of an answer.
func answer(t *testing.T, c net.Conn, n int) []string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	lines := make([]string, 0, n)
	var line strings.Builder
	for b := make([]byte, 1); len(lines) < n; {
		if _, err := c.Read(b); err != nil {
			t.Fatalf("%v after %q", err, lines)
		}
		if b[0] != '\n' {
			line.WriteByte(b[0])
			continue
		}
		lines = append(lines, strings.TrimSuffix(line.String(), "\r"))
		line.Reset()
	}
	return lines
}

// TestUnavailable: without its store, the server says that it cannot decide, and decides again when the
// store is back.
func TestUnavailable(t *testing.T) {
	at, server := onRedis(t, 200*time.Millisecond)
	c := dial(t, at)
	server.Pause()
	for _, command := range []string{"CL.THROTTLE key 9 1 60", "THROTTLE key 9 1 60", "HG.DECIDE ip=192.0.2.1"} {
		if _, err := io.WriteString(c, command+"\r\n"); err != nil {
			t.Fatal(err)
		}
		if lines := answer(t, c, 1); !strings.HasPrefix(lines[0], "-UNAVAILABLE the store could not decide: the log of headgate server says why") {
			t.Errorf("%s: got %q", command, lines)
		}
	}
	server.Resume()
	for began := time.Now(); ; {
		if _, err := io.WriteString(c, "CL.THROTTLE other 9 1 60\r\n"); err != nil {
			t.Fatal(err)
		}
		if lines := answer(t, c, 1); lines[0] == "*5" {
			answer(t, c, 5)
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatal("the store is back, and nothing is decided")
		}
	}
}

// TestManyLimits: clients that send ever other limits cannot fill the store: the least recently used one
// leaves, and its counts stay.
func TestManyLimits(t *testing.T) {
	_, at := startServer(t, &clock{}, 0)
	c := dial(t, at)
	exchange(t, c, "CL.THROTTLE key 4 1 86400 5\r\n", five(0, 5, 0, -1, 432000))
	for i := range 500 {
		exchange(t, c, fmt.Sprintf("CL.THROTTLE other%d %d 1 60\r\n", i, i+10), five(0, int64(i)+11, int64(i)+10, -1, 60))
	}
	exchange(t, c, "CL.THROTTLE key 4 1 86400\r\n", five(1, 5, 0, 86400, 432000))
}

// TestTLS: a client with TLS is answered, and one without it is not.
func TestTLS(t *testing.T) {
	files := testserver.NewCertificates(t)
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	_, at := startOn(t, memoryStore(t), Config{TLS: settings}, WriteTimeout)
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: files.Client.RootCAs, ServerName: "127.0.0.1"}}
	c, err := dialer.DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exchange(t, c, "PING\r\nCL.THROTTLE a 1 1 60\r\n", "+PONG\r\n"+five(0, 2, 1, -1, 60))
	plain := dial(t, at)
	_, _ = io.WriteString(plain, "PING\r\n")
	_ = plain.SetReadDeadline(time.Now().Add(30 * time.Second))
	if text, err := io.ReadAll(plain); strings.Contains(string(text), "PONG") {
		t.Errorf("a client without TLS gets %q, %v", text, err)
	}
}

// TestUnread: a client that does not read its answers is closed, and holds little until then.
func TestUnread(t *testing.T) {
	s, at := startOn(t, memoryStore(t), Config{}, 300*time.Millisecond)
	c := dial(t, at)
	_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
	full := strings.Repeat("INFO\r\n", 1000)
	var err error
	for n := 0; err == nil; n++ {
		if n > 100_000 {
			t.Fatal("the server reads on, and the client does not")
		}
		_, err = io.WriteString(c, full)
	}
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // It comes from the connection.
		t.Fatalf("the connection stays open: %v", err)
	}
	for began := time.Now(); s.Stats().Open > 0; {
		if time.Since(began) > 30*time.Second {
			t.Fatal("the connection stays open")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// TestLastAnswers: a client that sends without pause, and reads slowly, gets the answer to each command that was decided
// before its connection ends: by a drain, and because its token ended.
func TestLastAnswers(t *testing.T) {
	for name, end := range map[string]func(context.Context, *Server) error{
		"drain": func(ctx context.Context, s *Server) error { return s.Drain(ctx) },
		"revoke": func(_ context.Context, s *Server) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for c := range s.conns {
				c.revoke()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, at := startOn(t, memoryStore(t), Config{}, WriteTimeout)
			c := dial(t, at)
			go func() {
				for commands := bytes.Repeat([]byte("PING\r\n"), 1000); ; {
					if _, err := c.Write(commands); err != nil {
						return
					}
				}
			}()
			ended := make(chan error, 1)
			go func() {
				for s.Stats().Commands < 200_000 {
					<-time.After(time.Millisecond)
				}
				ended <- end(t.Context(), s)
			}()
			got, err := 0, error(nil)
			for part := make([]byte, 64<<10); err == nil; {
				var n int
				n, err = c.Read(part)
				got += n
				<-time.After(time.Millisecond)
			}
			if want := int(s.Stats().Commands) * len("+PONG\r\n"); got != want || err != io.EOF { //nolint:errorlint // net.Conn gives it bare.
				t.Errorf("got %d bytes of answers, then %v, want %d, then EOF", got, err, want)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDrain: what has arrived is answered, then the connections end.
func TestDrain(t *testing.T) {
	s, at := startOn(t, memoryStore(t), Config{}, WriteTimeout)
	idle := dial(t, at)
	exchange(t, idle, "PING\r\n", "+PONG\r\n")
	var clients sync.WaitGroup
	for range 8 {
		c := dial(t, at)
		clients.Go(func() {
			answers := bufio.NewReader(c)
			for {
				if _, err := io.WriteString(c, "PING\r\n"); err != nil {
					return
				}
				if line, err := answers.ReadString('\n'); err != nil && line != "" || err == nil && line != "+PONG\r\n" {
					t.Errorf("got %q, %v", line, err)
				} else if err != nil {
					return
				}
			}
		})
	}
	for began := s.Stats().Commands; s.Stats().Commands < began+1000; {
		<-time.After(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	clients.Wait()
	if ctx.Err() != nil || s.Stats().Open != 0 {
		t.Errorf("%d connections are open after the drain, %v", s.Stats().Open, ctx.Err())
	}
}
