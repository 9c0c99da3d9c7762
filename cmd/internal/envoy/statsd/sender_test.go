package statsd

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// growing is a source whose counters a test sets between two sends.
type growing map[string]uint64

func (g growing) Counters(yield func(string, uint64)) {
	for name, value := range g {
		yield(name, value)
	}
}

func newSender(t *testing.T, s Source, c Config) *Sender {
	t.Helper()
	c.Interval = time.Hour
	sender, err := NewSender(s, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.close() })
	return sender
}

// TestLinesOverTCP sends what has changed, over one connection.
func TestLinesOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	counters := growing{"a.b": 3, "c": 0, "d": 7}
	s := newSender(t, counters, Config{Network: "tcp", Address: l.Addr().String(), Tags: []Tag{{"env", "test"}, {"zone", "a"}}})
	s.flush(t.Context())
	counters["a.b"], counters["c"] = 5, 1
	s.flush(t.Context())
	s.flush(t.Context()) // Nothing has changed.
	_ = s.close()

	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var lines []string
	for scanner := bufio.NewScanner(conn); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	slices.Sort(lines)
	const want = "a.b.__env=test.__zone=a:2|c a.b.__env=test.__zone=a:3|c c.__env=test.__zone=a:1|c d.__env=test.__zone=a:7|c"
	if got := strings.Join(lines, " "); got != want || s.Dropped() != 0 {
		t.Errorf("got %s and %d dropped lines, want %s", got, s.Dropped(), want)
	}
}

// TestLinesOverUDP sends tags, and names that a mogrifier changes. A value cannot add tags.
func TestLinesOverUDP(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m, err := NewMogrifier(`^limits\.(.*)\.(.*)$`, "limit.$2", []Tag{{"domain", "$1"}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSender(t, growing{"limits.a,b:c|d#e.hits": 2}, Config{
		Network: "udp", Address: conn.LocalAddr().String(), Tags: []Tag{{"env", "test"}}, Mogrifiers: []Mogrifier{m},
		Gauges: growing{"entries": 7},
	})
	s.flush(t.Context())
	b := make([]byte, 1500)
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, _, err := conn.ReadFrom(b)
	if got, want := string(b[:n]), "limit.hits:2|c|#domain:a_b_c_d_e,env:test\nentries:7|g|#env:test\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestPacketsOverUDP: a packet has at most 1432 bytes and whole lines, values are exact, and the variables that clients of Datadog read
// add nothing.
func TestPacketsOverUDP(t *testing.T) {
	for _, name := range []string{"DD_ENV", "DD_SERVICE", "DD_VERSION", "DD_ENTITY_ID", "DD_CARDINALITY", "DD_EXTERNAL_ENV"} {
		t.Setenv(name, "x")
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const exact = 1<<53 + 1 // A float64 cannot have it.
	counters, want := growing{}, []string{fmt.Sprintf("entries:%d|g|#env:test", uint64(exact))}
	for i := range 99 {
		name := fmt.Sprint("limit.of.a.long.name.", i)
		counters[name] = exact
		want = append(want, fmt.Sprintf("%s:%d|c|#env:test", name, uint64(exact)))
	}
	s := newSender(t, counters, Config{
		Network: "udp", Address: conn.LocalAddr().String(), Tags: []Tag{{"env", "test"}}, Gauges: growing{"entries": exact},
	})
	s.flush(t.Context())
	var got []string
	for packet := make([]byte, 1<<16); len(got) < len(want); {
		n, _, err := conn.ReadFrom(packet)
		if err != nil || n > 1432 || packet[n-1] != '\n' {
			t.Fatalf("a packet of %d bytes, want at most 1432 of whole lines: %v", n, err)
		}
		got = append(got, strings.Split(string(packet[:n-1]), "\n")...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got the lines %q, want %q", got, want)
	}
}

// TestReceiverIsGone drops lines, counts them, and says so once. Later changes are sent again.
func TestReceiverIsGone(t *testing.T) {
	const closed = "127.0.0.1:1" // Nothing listens there.
	var faults []bool
	counters := growing{"a": 1, "b": 1}
	s := newSender(t, counters, Config{Network: "tcp", Address: closed, Fault: func(err error) { faults = append(faults, err != nil) }})
	s.flush(t.Context())
	counters["a"] = 5
	s.flush(t.Context())
	if s.Dropped() != 3 || !strings.Contains(s.Problem(), "connection refused") {
		t.Errorf("%d lines were dropped because of %q, want 3", s.Dropped(), s.Problem())
	}
	s.flush(t.Context()) // Nothing has changed, so nothing is sent: the receiver is not back.
	if s.Problem() == "" || !slices.Equal(faults, []bool{true}) {
		t.Errorf("without lines, the problem is %q, and the faults are %v", s.Problem(), faults)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.config.Address = l.Addr().String()
	counters["a"] = 7
	s.flush(t.Context())
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if s.Problem() != "" {
		t.Errorf("after a send, the problem is %q", s.Problem())
	}
	if line != "a:2|c\n" || err != nil || !slices.Equal(faults, []bool{true, false}) {
		t.Errorf("got %q, %v, and the faults %v, want the change since the last send, one fault and its end", line, err, faults)
	}
}

// TestReceiverDoesNotRead ends a send at its deadline, and drops the lines.
func TestReceiverDoesNotRead(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	counters := growing{}
	for i := range 5000 {
		counters[strings.Repeat("x", 20)+string(rune('a'+i%26))+time.Duration(i).String()] = 1
	}
	s := newSender(t, counters, Config{Network: "tcp", Address: "127.0.0.1:1"})
	s.conn = ours
	b := batch{sender: s, ctx: t.Context(), deadline: time.Now().Add(10 * time.Millisecond), most: tcpChunk}
	s.source.Counters(func(name string, value uint64) { b.add(name, value, counterLine) })
	b.write()
	if b.failed == nil || s.Dropped() != 5000 || len(b.bytes) > tcpChunk {
		t.Errorf("got %v and %d dropped lines, want a passed deadline and 5000", b.failed, s.Dropped())
	}
}

// TestRunEndsWithASend stops a Sender: its last lines are sent.
func TestRunEndsWithASend(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := newSender(t, growing{"a": 1}, Config{Network: "tcp", Address: l.Addr().String()})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Run(ctx)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "a:1|c\n" {
		t.Errorf("got %q, %v, want the last change", line, err)
	}
}
