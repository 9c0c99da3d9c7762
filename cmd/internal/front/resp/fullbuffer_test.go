package resp

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/guards"
)

// piped is a listener with one connection, which has no memory of its own: what the server does not read, its client cannot
// write.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *piped) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *piped) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (*piped) Addr() net.Addr { return &net.TCPAddr{} }

// TestFullBuffers: while a client does not read, the server reads at most the 64 KiB of its buffer. It writes at most 64 KiB at
// once. When the client reads, everything is answered in order.
func TestFullBuffers(t *testing.T) {
	g := guards.New(t, "rules: []")
	synctest.Test(t, func(t *testing.T) {
		l := &piped{make(chan net.Conn, 1), make(chan struct{})}
		s := New(Config{Guard: g, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
		var running sync.WaitGroup
		running.Go(func() { _ = s.Serve(l) })
		ours, theirs := net.Pipe()
		l.conns <- theirs
		const n = 20_000
		questions := []byte(strings.Repeat("INFO\r\n", n))
		_ = ours.SetWriteDeadline(time.Now().Add(time.Minute))
		taken, err := ours.Write(questions)
		if taken == 0 || taken > 64<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the server has read %d bytes of a client that reads nothing, %v, want at most 64 KiB", taken, err)
		}
		_ = ours.SetWriteDeadline(time.Time{})
		running.Go(func() { _, _ = ours.Write(append(questions[taken:], "QUIT\r\n"...)) })
		var answers strings.Builder
		largest := 0
		for b := make([]byte, 1<<20); ; {
			got, err := ours.Read(b)
			answers.Write(b[:got])
			largest = max(largest, got)
			if err != nil {
				break
			}
		}
		if got := strings.Count(answers.String(), "redis_mode:"); got != n || !strings.HasSuffix(answers.String(), "+OK\r\n") {
			t.Errorf("%d of %d commands are answered, and the last answer is %q", got, n, answers.String()[max(0, answers.Len()-20):])
		}
		if largest > 64<<10 || largest < 8<<10 {
			t.Errorf("the server writes %d bytes at once, want many, and at most 64 KiB", largest)
		}
		_ = ours.Close()
		_ = l.Close()
		_ = s.Drain(t.Context())
		running.Wait()
	})
}

// TestLongCommand: a command that does not end within 64 KiB is refused, and ends its connection.
func TestLongCommand(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	for _, begin := range []string{"ECHO ", "*3\r\n$4\r\nECHO\r\n$65000\r\n"} {
		conn := dial(t, at)
		if _, err := io.WriteString(conn, begin+strings.Repeat("x", 64<<10)); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); !strings.HasPrefix(string(text), "-ERR ") || strings.Count(string(text), "\n") != 1 {
			t.Errorf("%q...: got %.200q, %v", begin, text, err)
		}
	}
}
