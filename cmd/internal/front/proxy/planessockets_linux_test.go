package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// socketTimeout bounds each step of a conversation over sockets on a busy machine.
const socketTimeout = 20 * time.Second

// unreadBytes returns the number of bytes that the server has not read, or 0 for a closed connection.
func unreadBytes(c net.Conn) int {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// converseSocket sends c over a socket. want tells what to wait for before the client ends the
// connection. The access log is not collected.
func (p *plane) converseSocket(t *testing.T, c *conversation, want *transcript) *transcript {
	t.Helper()
	p.forget()
	before, from := p.counters(), untrustedPeer
	if c.trusted {
		from = trustedPeer
	}
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(from)}
	conn, err := dialer.DialContext(t.Context(), "tcp", p.clients.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(socketTimeout))
	server := <-p.accepted
	for _, piece := range c.pieces {
		_, _ = io.WriteString(conn, piece)
		await(func() bool { return unreadBytes(server) == 0 })
	}
	received := receive(conn, want)
	before.ended = want.ended
	_ = conn.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		before.ended += ", and the proxy leaves it open"
	}
	_ = conn.Close()
	await(func() bool { return p.traffic.InFlight.Load() == 0 && p.upstream.recorded() >= len(want.upstream) })
	got := &transcript{ended: before.ended, verdicts: p.verdicts.take(), upstream: p.upstream.take(), lines: want.lines}
	now := p.counters()
	now.open = 0 // net/http closes some connections half a second later.
	got.counted = now.since(before)
	got.read(append(received, rest...), true)
	return got
}

// await waits for an effect of another goroutine, or for socketTimeout.
func await(done func() bool) {
	for end := time.Now().Add(socketTimeout); !done() && time.Now().Before(end); {
		<-time.After(20 * time.Microsecond)
	}
}

// receive reads the answers that the client of want had received when it ended the connection.
// If the proxy ends the connection, it reads to the end.
func receive(conn net.Conn, want *transcript) (received []byte) {
	expected := &transcript{lines: want.lines}
	expected.read(bytes.Clone(want.early), false)
	buf := make([]byte, 64<<10)
	for {
		got := &transcript{lines: want.lines}
		got.read(bytes.Clone(received), false)
		if want.ended == "the client" && got.progress() >= expected.progress() && len(got.after) >= len(expected.after) {
			return received
		}
		n, err := conn.Read(buf)
		if received = append(received, buf[:n]...); err != nil {
			return received
		}
	}
}

// progress is the number of complete answers.
func (t *transcript) progress() (complete int) {
	for i := range t.answers {
		if t.answers[i].whole {
			complete++
		}
	}
	return complete
}

// reference is a conversation with what the standard plane does in memory.
type reference struct {
	*conversation

	want *transcript
}

// references are the conversations of the corpus that end without a timeout.
func references(t *testing.T) (quick []reference) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlane(t, false, planeSetup{})
		defer p.stop()
		for i, c := range corpus() {
			if i%rarely() != 0 {
				continue
			}
			p.forget()
			began := time.Now()
			want := p.converse(c)
			if len(want.answers) > 0 && !want.answers[0].isResponse() {
				continue // The frames of HTTP/2 depend on the time of the end.
			}
			if c.ending == endHalf && time.Since(began) < flushing+100*time.Millisecond {
				quick = append(quick, reference{c, want})
			}
		}
	})
	return quick
}

// socketStride is the distance between the conversations that run over sockets.
const socketStride = 4

// TestPlanesSockets sends a part of the corpus over sockets, also in two pieces. Both planes must
// do what the standard plane does in memory.
func TestPlanesSockets(t *testing.T) {
	t.Parallel()
	all := references(t)
	for _, fast := range []bool{false, true} {
		t.Run(map[bool]string{false: "standard", true: "fast"}[fast], func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, fast, planeSetup{sockets: true})
			var lines []string
			for i := 0; i < len(all); i += socketStride {
				r := all[i]
				for _, c := range []*conversation{r.conversation, r.splitAt(i % len(strings.Join(r.pieces, "")+" "))} {
					if found := difference(r.want, p.converseSocket(t, c, r.want)); found != "" {
						t.Error(c.describe() + found)
					}
					lines = append(lines, r.want.lines...)
				}
			}
			eventually(t, "all connections to be closed", func() bool { return p.server.open.Load() == 0 })
			p.stop()
			compareLines(t, lines, p.lines.String())
		})
	}
	t.Logf("%d conversations", len(all))
}

// compareLines compares the access log of a plane with the lines of the references.
func compareLines(t *testing.T, want []string, got string) {
	t.Helper()
	logged := slices.Collect(strings.Lines(got))
	for i := range max(len(want), len(logged)) {
		switch {
		case i >= len(want) || i >= len(logged):
			t.Fatalf("the access log has %d lines, want %d", len(logged), len(want))
		case timeless(want[i]) != timeless(logged[i]):
			t.Fatalf("line %d of the access log is\n%s, want\n%s", i, logged[i], want[i])
		}
	}
}

// timeless removes all times. In memory, durations can be 0, and then have no field.
func timeless(line string) string {
	return strings.Replace(withoutTimes(line), `"upstream_duration":*,`, "", 1)
}
