package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// watcher is a context that is an http1.Watcher. Only a dialer uses its Done.
type watcher struct {
	context.Context

	end    context.CancelFunc
	mu     sync.Mutex
	target http1.Interrupter
	ended  error
}

func newWatcher(t *testing.T) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	return &watcher{Context: ctx, end: cancel}
}

func (w *watcher) Watch(i http1.Interrupter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = i
	if w.ended != nil {
		i.Interrupt()
	}
}

func (w *watcher) Unwatch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = nil
}

func (w *watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

func (w *watcher) cancel() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = context.Canceled
	w.end()
	if w.target != nil {
		w.target.Interrupt()
	}
}

// contexts are the ways in which a request is canceled.
func contexts(t *testing.T) map[string]func() (context.Context, func()) {
	t.Helper()
	return map[string]func() (context.Context, func()){
		"a context": func() (context.Context, func()) { return context.WithCancel(t.Context()) },
		"a watcher": func() (context.Context, func()) {
			w := newWatcher(t)
			return w, w.cancel
		},
	}
}

func TestCancelEndsDo(t *testing.T) {
	for name, create := range contexts(t) {
		asked := make(chan struct{})
		s := serve(t, "tcp", func(p *peer) {
			_, _ = p.head()
			close(asked)
			_, _ = p.head()
		})
		ctx, cancel := create()
		go func() {
			<-asked
			cancel()
		}()
		if err := s.client(t, nil).Do(ctx, get(), new(client.Answer)); !errors.Is(err, context.Canceled) || s.accepted() != 1 {
			t.Errorf("%s: error %v on connection %d", name, err, s.accepted())
		}
		if err := s.client(t, nil).Do(ctx, get(), new(client.Answer)); !errors.Is(err, context.Canceled) || s.accepted() != 1 {
			t.Errorf("%s: after its end: error %v on connection %d", name, err, s.accepted())
		}
	}
}

func TestCancelEndsRead(t *testing.T) {
	for name, create := range contexts(t) {
		for _, text := range []string{plain, chunked, untilEnd} {
			s := serve(t, "tcp", func(p *peer) {
				_, _ = p.head()
				_, _ = io.WriteString(p, text[:len(text)-3])
				_, _ = p.head()
			})
			ctx, cancel := create()
			var a client.Answer
			if err := s.client(t, nil).Do(ctx, get(), &a); err != nil {
				t.Fatal(err)
			}
			go cancel()
			_, err := io.Copy(io.Discard, &a)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v", name, err)
			}
			a.Close()
		}
	}
}

func TestCancelAfterCloseLeavesTheConnection(t *testing.T) {
	for name, create := range contexts(t) {
		s := serve(t, "tcp", answers(plain))
		c := s.client(t, nil)
		for range 2 {
			ctx, cancel := create()
			var a client.Answer
			if err := c.Do(ctx, get(), &a); err != nil {
				t.Fatal(err)
			}
			a.Buffered()
			a.Close()
			cancel()
		}
		if n := s.accepted(); n != 1 {
			t.Errorf("%s: %d connections, want 1", name, n)
		}
	}
}

func TestCancelBeforeCloseEndsTheConnection(t *testing.T) {
	for name, create := range contexts(t) {
		s := serve(t, "tcp", answers(plain))
		c := s.client(t, nil)
		for range 2 {
			ctx, cancel := create()
			var a client.Answer
			if err := c.Do(ctx, get(), &a); err != nil {
				t.Fatal(err)
			}
			a.Buffered()
			cancel()
			a.Close()
		}
		if n := s.accepted(); n != 2 {
			t.Errorf("%s: %d connections, want 2", name, n)
		}
	}
}

func TestCancelEndsDial(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := client.New(client.Config{Dial: func(ctx context.Context) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
	}})
	if err := c.Do(ctx, get(), new(client.Answer)); err != context.Canceled { //nolint:errorlint // because no wrapper is wanted.
		t.Errorf("error %v", err)
	}
}

// TestTimeout uses a service that sends nothing, interim answers only, or a part of a header.
func TestTimeout(t *testing.T) {
	for _, text := range []string{"", interims, plain[:20], chunked[:20]} {
		s := serve(t, "tcp", func(p *peer) {
			_, _ = p.head()
			_, _ = io.WriteString(p, text)
			_, _ = p.head()
		})
		c := s.client(t, func(c *client.Config) { c.Timeout = 20 * time.Millisecond })
		err := c.Do(t.Context(), get(), new(client.Answer))
		timeout, ok := errors.AsType[net.Error](err)
		if !ok || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) || s.accepted() != 1 {
			t.Errorf("after %q: error %v on connection %d, want a timeout on the first", text, err, s.accepted())
		}
	}
}

// TestTimeoutCoversOnlyTheHeader reads a body for longer than the timeout, and leaves the
// connection idle for longer than the timeout.
func TestTimeoutCoversOnlyTheHeader(t *testing.T) {
	for _, text := range []string{plain, chunked} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = time.Second
			dials := 0
			c := client.New(client.Config{MaxIdle: 1, Timeout: timeout, Dial: func(context.Context) (net.Conn, error) {
				dials++
				ours, theirs := net.Pipe()
				go func() {
					p := newPeer(theirs)
					defer p.Close()
					for _, ok := p.head(); ok; _, ok = p.head() {
						pause(timeout - time.Millisecond)
						_, _ = io.WriteString(p, text[:len(text)-3])
						pause(3 * timeout)
						_, _ = io.WriteString(p, text[len(text)-3:])
					}
				}()
				return quietConn{ours}, nil
			}})
			defer c.CloseIdleConnections()
			for _, idle := range []time.Duration{0, timeout / 100, timeout / 20, 3 * timeout} {
				pause(idle)
				if a := do(t, c, get()); a.body != "hello" || a.err != nil || dials != 1 {
					t.Errorf("after %v: %q, %v on connection %d", idle, a.body, a.err, dials)
				}
			}
		})
	}
}

func pause(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // because the clock belongs to the bubble of synctest.

func TestSwitchingProtocolsEndsTheConnection(t *testing.T) {
	s := serve(t, "tcp", answers("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nx"))
	c := s.client(t, nil)
	for range 2 {
		if a := do(t, c, get()); a.Status != http.StatusSwitchingProtocols || a.body != "" || a.err != nil {
			t.Errorf("answer %+v", a)
		}
	}
	if n := s.accepted(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// TestLargeHeadIsWrittenInSeveralWrites uses a head that no socket's buffer holds.
func TestLargeHeadIsWrittenInSeveralWrites(t *testing.T) {
	large := list(http.Header{"A": {strings.Repeat("a", 16<<20)}})
	for _, network := range []string{"tcp", "unix"} {
		lengths := make(chan int, 2)
		s := serve(t, network, func(p *peer) {
			for head, ok := p.head(); ok; head, ok = p.head() {
				lengths <- len(head)
				_, _ = io.WriteString(p, plain)
			}
		})
		c := s.client(t, func(c *client.Config) { c.Timeout, c.BodyIdle = time.Minute, time.Minute })
		for range 2 {
			r := get()
			r.Header = large
			if a := do(t, c, r); a.body != "hello" || <-lengths < 16<<20 {
				t.Errorf("%s: answer %q", network, a.body)
			}
		}
		if n := s.accepted(); n != 1 {
			t.Errorf("%s: %d connections, want 1", network, n)
		}

		stop := make(chan struct{})
		silent := serve(t, network, func(*peer) { <-stop })
		c = silent.client(t, func(c *client.Config) { c.BodyIdle = 50 * time.Millisecond })
		r := get()
		r.Header = large
		err := c.Do(t.Context(), r, new(client.Answer))
		if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || silent.accepted() != 1 {
			t.Errorf("%s: error %v on connection %d, want a timeout", network, err, silent.accepted())
		}
		close(stop)
	}
}
