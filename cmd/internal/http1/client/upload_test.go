package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1/client"
)

func post(body io.Reader, length int64) *client.Request {
	return &client.Request{Method: "POST", Target: "/", Host: "service.example", Body: body, Length: length}
}

func TestUploadsShareOneConnection(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		s := serve(t, network, func(p *peer) {
			for {
				if _, ok := p.head(); !ok {
					return
				}
				body := make([]byte, 100<<10)
				if _, err := io.ReadFull(p.in, body); err != nil {
					return
				}
				_, _ = io.WriteString(p, plain)
			}
		})
		c := s.client(t, nil)
		for range 3 {
			if a := do(t, c, post(onlyReader{strings.NewReader(strings.Repeat("a", 100<<10))}, 100<<10)); a.body != "hello" {
				t.Errorf("%s: answer %+v", network, a)
			}
		}
		if n := s.accepted(); n != 1 {
			t.Errorf("%s: %d connections, want 1", network, n)
		}
	}
}

// brokenBody fails after its bytes.
type brokenBody struct {
	io.Reader

	err error
}

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestBrokenBodyEndsTheExchange(t *testing.T) {
	broken := errors.New("the client has left")
	for _, c := range []struct {
		story  string
		length int64
		err    error
		want   string
	}{
		{"a read fails", 10, broken, "the client has left"},
		{"a read fails, of chunks", -1, broken, "the client has left"},
		{"a read fails at the end", 4, broken, "the client has left"},
		{"the body is too short", 10, io.EOF, "6 bytes shorter"},
		{"the body is too long", 3, io.EOF, "longer"},
	} {
		ended := make(chan struct{})
		s := serve(t, "tcp", func(p *peer) {
			_, _ = io.Copy(io.Discard, p.in)
			close(ended)
		})
		r := post(brokenBody{strings.NewReader("body"), c.err}, c.length)
		err := s.client(t, nil).Do(t.Context(), r, new(client.Answer))
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(c.err, broken) != errors.Is(err, broken) {
			t.Errorf("%s: error %v, want %q", c.story, err, c.want)
		}
		<-ended // The connection is closed.
	}
}

// gateBody blocks in Read until the test closes it.
type gateBody struct {
	opened chan struct{}
	reads  atomic.Int32
	after  io.Reader
}

func (b *gateBody) Read(p []byte) (int, error) {
	b.reads.Add(1)
	<-b.opened
	return b.after.Read(p)
}

func TestEarlyAnswerIsReturnedAndEndsTheConnection(t *testing.T) {
	for _, text := range []string{plain, chunked} {
		ended := make(chan struct{}, 2)
		s := serve(t, "tcp", func(p *peer) {
			_, _ = p.head()
			_, _ = io.WriteString(p, text)
			_, _ = io.Copy(io.Discard, p.in)
			ended <- struct{}{}
		})
		body := &gateBody{opened: make(chan struct{}), after: strings.NewReader("body")}
		c := s.client(t, nil)
		if a := do(t, c, post(body, 4)); a.body != "hello" || a.err != nil { // Close does not wait for the Read.
			t.Errorf("answer %+v", a)
		}
		<-ended
		close(body.opened)
		do(t, c, get())
		if n := s.accepted(); n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	}
}

// TestBodyIsNotReadAfterClose blocks the upload in a write.
func TestBodyIsNotReadAfterClose(t *testing.T) {
	s := serve(t, "tcp", func(p *peer) {
		_, _ = p.head()
		_, _ = io.WriteString(p, plain)
		_, _ = p.head()
	})
	body := &gateBody{opened: make(chan struct{}), after: endless{}}
	close(body.opened)
	do(t, s.client(t, nil), post(body, -1))
	reads := body.reads.Load()
	s.close()
	if now := body.reads.Load(); now > reads+1 { // A Read may have been in progress.
		t.Errorf("%d reads after Close", now-reads)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestServiceThatDoesNotReadTimesOut(t *testing.T) {
	for _, length := range []int64{-1, 1 << 40} {
		stop := make(chan struct{})
		s := serve(t, "tcp", func(*peer) { <-stop })
		c := s.client(t, func(c *client.Config) { c.BodyIdle = 50 * time.Millisecond })
		err := c.Do(t.Context(), post(endless{}, length), new(client.Answer))
		if failed, ok := errors.AsType[net.Error](err); !ok || !failed.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error %v, want a timeout", err)
		}
		close(stop)
	}
}

// TestTimeoutStartsAtTheEndOfTheBody uses a body that takes longer than the timeout.
func TestTimeoutStartsAtTheEndOfTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		c := client.New(client.Config{Timeout: timeout, MaxIdle: 1, Dial: func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				p := newPeer(theirs)
				defer p.Close()
				for first := true; ; first = false {
					if _, ok := p.head(); !ok {
						return
					}
					_, _ = io.ReadFull(p.in, make([]byte, 4))
					if !first {
						_, _ = p.head()
						return
					}
					pause(timeout - time.Millisecond)
					_, _ = io.WriteString(p, plain)
				}
			}()
			return quietConn{ours}, nil
		}})
		body := &gateBody{opened: make(chan struct{}), after: strings.NewReader("body")}
		time.AfterFunc(5*timeout, func() { close(body.opened) })
		if a := do(t, c, post(body, 4)); a.body != "hello" {
			t.Errorf("answer %+v", a)
		}
		start := time.Now()
		body = &gateBody{opened: make(chan struct{}), after: strings.NewReader("body")}
		time.AfterFunc(5*timeout, func() { close(body.opened) })
		err := c.Do(t.Context(), post(body, 4), new(client.Answer))
		if elapsed := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || elapsed != 6*timeout {
			t.Errorf("error %v after %v", err, elapsed)
		}
	})
}

func TestTraceLearnsOfTheWrittenRequest(t *testing.T) {
	s := serve(t, "tcp", func(p *peer) {
		_, _ = p.head()
		_, _ = io.ReadFull(p.in, make([]byte, 4))
		_, _ = io.WriteString(p, plain)
	})
	wrote := make(chan error, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) { wrote <- info.Err },
	})
	var a client.Answer
	if err := s.client(t, nil).Do(ctx, post(strings.NewReader("body"), 4), &a); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, &a)
	a.Close()
	if err := <-wrote; err != nil {
		t.Errorf("WroteRequest got %v", err)
	}
}

func TestCancelEndsAnUpload(t *testing.T) {
	for name, create := range contexts(t) {
		s := serve(t, "tcp", func(p *peer) { _, _ = io.Copy(io.Discard, p.in) })
		ctx, cancel := create()
		body := &gateBody{opened: make(chan struct{}), after: strings.NewReader("body")}
		go cancel()
		if err := s.client(t, nil).Do(ctx, post(body, 4), new(client.Answer)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", name, err)
		}
		close(body.opened)
	}
}
