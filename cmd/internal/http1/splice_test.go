package http1_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// pair returns the two ends of a connection.
func pair(tb testing.TB, network string) (near, far net.Conn) {
	tb.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(tb.TempDir(), "s")
	}
	if network == "memory" {
		near, far = net.Pipe()
	} else {
		listener, err := net.Listen(network, address)
		if err != nil {
			tb.Fatal(err)
		}
		defer listener.Close()
		if near, err = net.Dial(network, listener.Addr().String()); err != nil {
			tb.Fatal(err)
		}
		if far, err = listener.Accept(); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// progress checks that the callbacks alternate, and counts the bytes.
type progress struct {
	before int
	wrote  int64
}

func (p *progress) callbacks() http1.Progress {
	return http1.Progress{BeforeWrite: func() { p.before++ }, Wrote: func(n int) { p.wrote += int64(n) }}
}

func TestSpliceMovesTheBytes(t *testing.T) {
	networks := []string{"tcp", "unix", "memory"}
	for _, from := range networks {
		for _, to := range networks {
			for _, n := range []int{0, 1, 100 << 10, 3 << 20} {
				service, src := pair(t, from)
				dst, client := pair(t, to)
				want := random(n)
				go func() { _, _ = service.Write(append(want[:n:n], "next"...)) }()
				got := make(chan []byte)
				go func() {
					b, _ := io.ReadAll(io.LimitReader(client, int64(n)))
					got <- b
				}()
				var p progress
				moved, err := http1.Splice(dst, src, int64(n), p.callbacks())
				if moved != int64(n) || err != nil || p.wrote != int64(n) || p.before == 0 && n > 0 {
					t.Errorf("%s to %s: moved %d of %d bytes: %v: %+v", from, to, moved, n, err, p)
				}
				if b := <-got; !bytes.Equal(b, want) {
					t.Errorf("%s to %s: %d bytes differ", from, to, n)
				}
				rest := make([]byte, 4) // Splice leaves what follows.
				if _, err := io.ReadFull(src, rest); err != nil || string(rest) != "next" {
					t.Errorf("%s to %s: %q follows: %v", from, to, rest, err)
				}
			}
		}
	}
}

func TestSpliceOfASourceThatEndsEarly(t *testing.T) {
	for _, network := range []string{"tcp", "unix", "memory"} {
		service, src := pair(t, network)
		dst, client := pair(t, network)
		go func() {
			_, _ = service.Write([]byte("hello"))
			_ = service.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		moved, err := http1.Splice(dst, src, 10, http1.Progress{})
		if moved != 5 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: moved %d bytes: %v", network, moved, err)
		}
		_ = dst.Close()
	}
}

func TestSpliceOfDestinationThatCloses(t *testing.T) {
	for _, network := range []string{"tcp", "unix", "memory"} {
		service, src := pair(t, network)
		dst, client := pair(t, network)
		_ = client.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = service.Write(make([]byte, 16<<20))
		}()
		_, err := http1.Splice(dst, src, 16<<20, http1.Progress{})
		if _, ok := errors.AsType[*http1.WriteError](err); !ok {
			t.Errorf("%s: error %v, want one of the write", network, err)
		}
		_ = src.Close()
		<-done
	}
}

// TestSpliceDeadlines checks that each deadline ends the wait of its own connection.
func TestSpliceDeadlines(t *testing.T) {
	const short = 20 * time.Millisecond
	for _, network := range []string{"tcp", "unix", "memory"} {
		_, src := pair(t, network)
		dst, _ := pair(t, network)
		_ = src.SetReadDeadline(time.Now().Add(short))
		_, err := http1.Splice(dst, src, 1, http1.Progress{})
		if _, write := errors.AsType[*http1.WriteError](err); write || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a silent source: %v", network, err)
		}
		service, src := pair(t, network)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = service.Write(make([]byte, 16<<20))
		}()
		// The deadline is set before each write only, so waiting for src does not use it up.
		arm := func() { _ = dst.SetWriteDeadline(time.Now().Add(short)) }
		_, err = http1.Splice(dst, src, 16<<20, http1.Progress{BeforeWrite: arm})
		if _, write := errors.AsType[*http1.WriteError](err); !write || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a destination that does not read: %v", network, err)
		}
		_ = src.Close()
		<-done
	}
}

func TestSpliceEndsWhenTheSourceIsClosed(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		_, src := pair(t, network)
		dst, _ := pair(t, network)
		go func() { _ = src.Close() }()
		if _, err := http1.Splice(dst, src, 1, http1.Progress{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: error %v", network, err)
		}
	}
}

// BenchmarkSplice compares Splice with a copy through memory.
func BenchmarkSplice(b *testing.B) {
	const size = 1 << 20
	for name, move := range map[string]func(dst, src net.Conn) error{
		"splice": func(dst, src net.Conn) error {
			_, err := http1.Splice(dst, src, size, http1.Progress{})
			return err
		},
		"copy": func(dst, src net.Conn) error {
			buf := make([]byte, 32<<10)
			_, err := io.CopyBuffer(struct{ io.Writer }{dst}, io.LimitReader(src, size), buf)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			service, src := pair(b, "tcp")
			dst, client := pair(b, "tcp")
			go func() {
				for chunk := make([]byte, size); ; {
					if _, err := service.Write(chunk); err != nil {
						return
					}
				}
			}()
			go func() { _, _ = io.Copy(io.Discard, client) }()
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if err := move(dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
