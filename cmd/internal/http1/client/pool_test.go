package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// TestNoByteOfAnAnswerReachesTheNextRequest sends extra bytes after an answer, in the same
// write or after the client has kept the connection.
func TestNoByteOfAnAnswerReachesTheNextRequest(t *testing.T) {
	const stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nSTRAY"
	for _, text := range []string{plain, chunked, noContent, interims + plain} {
		for _, later := range []bool{false, true} {
			kept := make(chan struct{})
			written := make(chan struct{})
			s := serve(t, "tcp", func(p *peer) {
				for {
					if _, ok := p.head(); !ok {
						return
					}
					if p.number > 0 {
						_, _ = io.WriteString(p, text)
						continue
					}
					if !later {
						_, _ = io.WriteString(p, text+stray)
						continue
					}
					_, _ = io.WriteString(p, text)
					<-kept
					_, _ = io.WriteString(p, stray)
					close(written)
				}
			})
			c := s.client(t, nil)
			first := do(t, c, get())
			if later {
				close(kept)
				<-written
			}
			second := do(t, c, get())
			if second.body != first.body || first.err != nil || second.err != nil || s.accepted() != 2 {
				t.Errorf("%.20q later %v: %q, then %q on connection %d", text, later, first.body, second.body, s.accepted())
			}
		}
	}
}

func TestUnreadAnswerClosesItsConnection(t *testing.T) {
	for _, text := range []string{plain, chunked} {
		s := serve(t, "tcp", answers(text))
		c := s.client(t, nil)
		var a client.Answer
		if err := c.Do(t.Context(), get(), &a); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Read(make([]byte, 4)); n != 4 || err != nil {
			t.Fatalf("read %d, %v", n, err)
		}
		a.Close()
		a.Close()
		if again := do(t, c, get()); again.body != "hello" || s.accepted() != 2 {
			t.Errorf("%q on connection %d, want the second", again.body, s.accepted())
		}
	}
}

func TestPoolIsBoundedAndTakesTheNewestFirst(t *testing.T) {
	ended := make(chan int, 8)
	var gate sync.WaitGroup
	gate.Add(3)
	s := serve(t, "tcp", func(p *peer) {
		defer func() { ended <- p.number }()
		for first := true; ; first = false {
			if _, ok := p.head(); !ok {
				return
			}
			if first && p.number < 3 { // The first three requests use three connections.
				gate.Done()
				gate.Wait()
			}
			_, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"+string(rune('0'+p.number)))
		}
	})
	c := s.client(t, func(c *client.Config) { c.MaxIdle = 2 })
	var open [3]client.Answer
	var all sync.WaitGroup
	for i := range open {
		all.Go(func() {
			if err := c.Do(t.Context(), get(), &open[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var numbers []int
	for i := range open {
		numbers = append(numbers, int(open[i].Buffered()[0]-'0'))
		open[i].Close()
	}
	if evicted := <-ended; evicted != numbers[0] {
		t.Errorf("connection %d was closed, want the oldest, %d", evicted, numbers[0])
	}
	for range 2 {
		if a := do(t, c, get()); int(a.body[0]-'0') != numbers[2] {
			t.Errorf("connection %s serves, want the newest, %d", a.body, numbers[2])
		}
	}
	c.CloseIdleConnections()
	if a, b := <-ended, <-ended; a+b != numbers[1]+numbers[2] {
		t.Errorf("connections %d and %d were closed", a, b)
	}
}

// pipe is a service in memory, which a bubble of synctest needs.
func pipe(dials *atomic.Int32) func(ctx context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		dials.Add(1)
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			answers(plain)(newPeer(theirs))
		}()
		return quietConn{ours}, nil
	}
}

func TestIdleConnectionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		c := client.New(client.Config{Dial: pipe(&dials), MaxIdle: 8, IdleTimeout: time.Minute})
		do(t, c, get())
		time.Sleep(59 * time.Second) //nolint:forbidigo // because the clock belongs to the bubble.
		do(t, c, get())
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections before the idle timeout, want 1", n)
		}
		time.Sleep(61 * time.Second) //nolint:forbidigo // as above.
		synctest.Wait()
		do(t, c, get())
		if n := dials.Load(); n != 2 {
			t.Errorf("%d connections after the idle timeout, want 2", n)
		}
		time.Sleep(time.Hour) //nolint:forbidigo // as above: every goroutine of the bubble ends, or the test fails.
	})
}

func TestWithoutAPoolEachRequestConnects(t *testing.T) {
	s := serve(t, "tcp", answers(plain))
	c := s.client(t, func(c *client.Config) { c.MaxIdle = 0 })
	for range 3 {
		do(t, c, get())
	}
	if n := s.accepted(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// quietConn is a connection without a descriptor, for which every check is fine.
type quietConn struct{ net.Conn }

func (quietConn) Quiet() bool { return true }

// TestRetry closes or resets the connection at the second request.
func TestRetry(t *testing.T) {
	const sent = "body"
	for _, c := range []struct {
		story  string
		method string
		body   string
		before string // what the service sends before it closes
		again  bool
	}{
		{"GET", "GET", "", "", true},
		{"HEAD", "HEAD", "", "", true},
		{"OPTIONS", "OPTIONS", "", "", true},
		{"TRACE", "TRACE", "", "", true},
		{"POST", "POST", "", "", false},
		{"PUT", "PUT", "", "", false},
		{"DELETE", "DELETE", "", "", false},
		{"GET with a body", "GET", sent, "", false},
		{"GET after a part of the header", "GET", "", "HTTP/1.1 200 OK\r\n", false},
		{"GET after an interim answer", "GET", "", interims, false},
	} {
		for _, reset := range []bool{false, true} {
			s := serve(t, "tcp", func(p *peer) {
				if _, ok := p.head(); !ok {
					return
				}
				_, _ = io.WriteString(p, noContent)
				if _, ok := p.head(); !ok {
					return
				}
				_, _ = io.WriteString(p, c.before)
				if reset && c.before == "" {
					_ = p.Conn.(*net.TCPConn).SetLinger(0)
				}
			})
			client := s.client(t, func(c *client.Config) {
				c.Dial = func(ctx context.Context) (net.Conn, error) {
					conn, err := s.dial(ctx)
					return quietConn{conn}, err
				}
			})
			do(t, client, get())
			err := tryOnce(t, client, c.method, c.body)
			if again := err == nil; again != c.again || s.accepted() != map[bool]int{true: 2, false: 1}[c.again] {
				t.Errorf("%s, reset %v: %v on connection %d", c.story, reset, err, s.accepted())
			}
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) &&
				!errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%s, reset %v: error %v, want one of a closed connection", c.story, reset, err)
			}
		}
	}
}

func tryOnce(t *testing.T, c *client.Client, method, body string) error {
	t.Helper()
	r := get()
	r.Method = method
	if body != "" {
		r.Body, r.Length = strings.NewReader(body), int64(len(body))
	}
	var a client.Answer
	err := c.Do(t.Context(), r, &a)
	a.Close()
	return err
}

func TestNewConnectionThatFailsIsNotRetried(t *testing.T) {
	s := serve(t, "tcp", func(p *peer) { _, _ = p.head() })
	err := tryOnce(t, s.client(t, nil), "GET", "")
	if !errors.Is(err, io.EOF) || s.accepted() != 1 {
		t.Errorf("error %v on connection %d, want io.EOF on the first", err, s.accepted())
	}
}

// TestClosedIdleConnectionIsNotUsed sends a request that may not be repeated.
func TestClosedIdleConnectionIsNotUsed(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		ended := make(chan struct{}, 2)
		s := serve(t, network, func(p *peer) {
			_, _ = p.head()
			_, _ = io.WriteString(p, noContent)
			_ = p.Close()
			ended <- struct{}{}
		})
		c := s.client(t, nil)
		do(t, c, get())
		<-ended
		if err := tryOnce(t, c, "POST", "body"); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}

func TestDialErrorIsReturned(t *testing.T) {
	s := serve(t, "tcp", answers(plain))
	s.close()
	err := tryOnce(t, s.client(t, nil), "GET", "")
	if failed, ok := errors.AsType[*net.OpError](err); !ok || failed.Op != "dial" {
		t.Errorf("error %v, want one of dial", err)
	}
}
