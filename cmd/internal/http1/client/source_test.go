package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// ends returns two ends of a TCP connection.
func ends(t *testing.T) (near, far net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	s := serve(t, "tcp", func(p *peer) {
		accepted <- p.Conn
		<-t.Context().Done()
	})
	near, err := s.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	return near, <-accepted
}

func TestBodyIsMovedByTheKernel(t *testing.T) {
	const size = 1 << 20
	body := strings.Repeat("0123456789abcdef", size/16)
	s := serve(t, "tcp", answers(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, body)))
	c := s.client(t, func(c *client.Config) { c.Timeout = time.Minute })
	dst, caller := ends(t)
	for range 2 {
		var a client.Answer
		if err := c.Do(t.Context(), get(), &a); err != nil {
			t.Fatal(err)
		}
		received := make(chan string)
		go func() {
			b, _ := io.ReadAll(io.LimitReader(caller, size))
			received <- string(b)
		}()
		n, err := dst.Write(a.Buffered())
		if err != nil {
			t.Fatal(err)
		}
		src, left, ok := a.Source()
		if !ok || left != int64(size-n) {
			t.Fatalf("source has %d bytes, %v, after %d of %d", left, ok, n, size)
		}
		moved, err := http1.Splice(dst, src, left, http1.Progress{})
		if err != nil {
			t.Fatal(err)
		}
		a.Consume(moved)
		if _, err := a.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // because io.Reader must return the bare io.EOF.
			t.Errorf("error %v, want io.EOF", err)
		}
		a.Close()
		if got := <-received; got != body {
			t.Errorf("%d bytes, want the body", len(got))
		}
	}
	if n := s.accepted(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestSourceIsOnlyThereForTheRestOfAPlainBody(t *testing.T) {
	s := serve(t, "tcp", func(p *peer) {
		for {
			r, err := http.ReadRequest(p.in)
			if err != nil {
				return
			}
			_, _ = io.WriteString(p, map[string]string{
				"/rest": plain[:len(plain)-3], "/all": plain, "/chunks": chunked[:len(chunked)-8],
			}[r.URL.Path])
		}
	})
	hidden := s.client(t, func(c *client.Config) {
		c.Dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := s.dial(ctx)
			return uncheckedConn{conn}, err
		}
	})
	for _, c := range []struct {
		story, target  string
		client         *client.Client
		buffered, want bool
	}{
		{"the rest of a body", "/rest", s.client(t, nil), true, true},
		{"bytes in the buffer", "/rest", s.client(t, nil), false, false},
		{"a body in the buffer", "/all", s.client(t, nil), true, false},
		{"chunks", "/chunks", s.client(t, nil), true, false},
		{"a connection without a descriptor", "/rest", hidden, true, false},
	} {
		var a client.Answer
		r := get()
		r.Target = c.target
		if err := c.client.Do(t.Context(), r, &a); err != nil {
			t.Fatal(err)
		}
		if c.buffered {
			a.Buffered()
		}
		if _, left, ok := a.Source(); ok != c.want || ok && left != 3 {
			t.Errorf("%s: %d bytes, %v", c.story, left, ok)
		}
		a.Close()
		if _, _, ok := a.Source(); ok || a.Buffered() != nil {
			t.Errorf("%s: a source after Close", c.story)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("%s: error %v after Close", c.story, err)
		}
	}
}

func TestBodyIsReadInSmallPieces(t *testing.T) {
	c := serve(t, "tcp", answers(plain)).client(t, nil)
	var a client.Answer
	if err := c.Do(t.Context(), get(), &a); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var got []byte
	for p := make([]byte, 2); ; {
		n, err := a.Read(p)
		got = append(got, p[:n]...)
		if err != nil {
			break
		}
	}
	if string(got) != "hello" {
		t.Errorf("body %q", got)
	}
}

// uncheckedConn hides the descriptor of a connection.
type uncheckedConn struct{ net.Conn }
