package http1_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// TestAheadIsQuiet checks what Quiet says of a peer that waits, sends or closes, and that the next Read misses no byte.
func TestAheadIsQuiet(t *testing.T) {
	for _, row := range []struct {
		name  string
		peer  func(net.Conn)
		quiet bool
		left  bool
		want  string
	}{
		{"waits", func(net.Conn) {}, true, false, ""},
		{"sends", func(c net.Conn) { _, _ = io.WriteString(c, "abc") }, false, false, "abc"},
		{"closes", func(c net.Conn) { _ = c.Close() }, false, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				a, left := http1.NewAhead(ours), false
				if err := a.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				for range 2 { // The second call has no effect.
					a.Watch(func() { left = true })
				}
				go row.peer(theirs)
				synctest.Wait()
				if quiet := a.Quiet(); quiet != row.quiet || left != row.left {
					t.Errorf("quiet %v and left %v, want %v and %v", quiet, left, row.quiet, row.left)
				}
				got := make([]byte, len(row.want))
				if _, err := io.ReadFull(a, got); err != nil || string(got) != row.want {
					t.Errorf("read %q, error %v, want %q", got, err, row.want)
				}
				_ = a.Close()
				synctest.Wait()
			})
		})
	}
}

// TestAheadKeepsTheDeadline checks that the deadline of reads counts for Read and not for Watch, also if it is set meanwhile.
func TestAheadKeepsTheDeadline(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			a, began := http1.NewAhead(ours), time.Now()
			defer a.Close()
			set := func() {
				if err := a.SetDeadline(began.Add(2 * time.Second)); err != nil {
					t.Error(err)
				}
			}
			if !meanwhile {
				set()
			}
			a.Watch(func() { t.Error("the peer has left") })
			if meanwhile {
				set()
			}
			time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
			n, err := a.Read(make([]byte, 8))
			if passed := time.Since(began); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || passed != 2*time.Second {
				t.Errorf("set meanwhile %v: read %d bytes, error %v after %v", meanwhile, n, err, passed)
			}
			a.Watch(func() { t.Error("the peer has left") })
			time.Sleep(time.Minute) //nolint:forbidigo // In a bubble.
			if !a.Quiet() {
				t.Errorf("set meanwhile %v: not quiet after the deadline of reads", meanwhile)
			}
		})
	}
}
