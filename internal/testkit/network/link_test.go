package network_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/internal/testkit/network"
)

// A client of Redis that was closed sleeps on until it would have asked again.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// long is more than anything takes; short is what nothing is waited for in vain.
const (
	long  = 10 * time.Second
	short = 100 * time.Millisecond
)

// echo runs a server that sends back what it is sent, and tells how that began.
func echo(t *testing.T) (addr string, heard func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	var all bytes.Buffer
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				io.Copy(conn, io.TeeReader(conn, locked{&mu, &all}))
			})
		}
	})
	t.Cleanup(func() { l.Close(); work.Wait() })
	return l.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

type locked struct {
	mu  *sync.Mutex
	all *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all.Len() < 1000 {
		l.all.Write(b)
	}
	return len(b), nil
}

// dial connects through a link, for as long as the test runs.
func dial(t *testing.T, l *network.Link) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", l.Addr, long)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// link gives a link to an echo, and a connection that has passed it once.
func link(t *testing.T) (*network.Link, *net.TCPConn) {
	t.Helper()
	addr, _ := echo(t)
	l := network.New(t, addr)
	conn := dial(t, l)
	if got, err := ask(conn, "a", long); got != "a" {
		t.Fatalf("the link gives %q, %v", got, err)
	}
	return l, conn
}

// ask sends words and reads as many bytes back, within a time.
func ask(conn net.Conn, words string, within time.Duration) (string, error) {
	if _, err := io.WriteString(conn, words); err != nil {
		return "", err
	}
	return hear(conn, len(words), within)
}

func hear(conn net.Conn, n int, within time.Duration) (string, error) {
	conn.SetReadDeadline(time.Now().Add(within))
	b := make([]byte, n)
	n, err := io.ReadFull(conn, b)
	return string(b[:n]), err
}

// until polls.
func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !ready(); time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // sleep: it polls, and there is a deadline
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", long, what)
		}
	}
}

func TestWellLink(t *testing.T) {
	l, conn := link(t)
	words := strings.Repeat("0123456789", 100_000)
	go io.WriteString(conn, words)
	if got, err := hear(conn, len(words), long); got != words {
		t.Errorf("%d bytes come back other than sent: %v", len(got), err)
	}
	conn.CloseWrite()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the client's end: %d bytes, %v: want EOF", n, err)
	}
	until(t, "the link forgets the connection", func() bool { return l.Live() == 0 })
	if l.Accepted() != 1 {
		t.Errorf("%d connections in all: want 1", l.Accepted())
	}
}

func TestCutAndHeal(t *testing.T) {
	l, conn := link(t)
	l.Cut()
	if _, err := hear(conn, 1, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection through a cut link gives %v: want its end", err)
	}
	if _, err := net.DialTimeout("tcp", l.Addr, long); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection gives %v: want refused", err)
	}
	l.Heal()
	l.Heal()
	if got, err := ask(dial(t, l), "b", long); got != "b" {
		t.Errorf("a healed link gives %q, %v", got, err)
	}
}

func TestReset(t *testing.T) {
	l, conn := link(t)
	l.Reset()
	if _, err := hear(conn, 1, long); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an idle connection gives %v: want reset by peer", err)
	}
	if got, err := ask(dial(t, l), "b", long); got != "b" {
		t.Errorf("a new connection gives %q, %v", got, err)
	}
}

// TestResetPasses: what ends by RST on one side does so on the other.
func TestResetPasses(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn := dial(t, network.New(t, server.Addr().String()))
	far, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	far.(*net.TCPConn).SetLinger(0)
	far.Close()
	if _, err := hear(conn, 1, long); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client gets %v: want reset by peer", err)
	}
}

// TestServerAway: a link to nobody takes a connection and resets it.
func TestServerAway(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	conn, err := net.DialTimeout("tcp", network.New(t, server.Addr().String()).Addr, long)
	if err == nil { // It may end while it is being made.
		defer conn.Close()
		_, err = hear(conn, 1, long)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client gets %v: want reset by peer", err)
	}
}

// TestHalfOpen: all seems well and nothing passes; then all of it does.
func TestHalfOpen(t *testing.T) {
	addr, heard := echo(t)
	l := network.New(t, addr)
	old := dial(t, l)
	ask(old, "a", long)
	l.HalfOpen()
	young := dial(t, l)
	for name, conn := range map[string]net.Conn{"old": old, "young": young} {
		if got, err := ask(conn, name, short); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %q, %v: want silence", name, got, err)
		}
	}
	if got := heard(); got != "a" {
		t.Errorf("the server has heard %q: want a", got)
	}
	l.Heal()
	for name, conn := range map[string]net.Conn{"old": old, "young": young} {
		if got, err := hear(conn, len(name), long); got != name {
			t.Errorf("after Heal %s gives %q, %v", name, got, err)
		}
	}
}

// TestHalfOpenEnds: a silent link can be cut, and hides its server's end.
func TestHalfOpenEnds(t *testing.T) {
	l, conn := link(t)
	l.HalfOpen()
	conn.CloseWrite() // The echo would close its side, and the client see that.
	if _, err := hear(conn, 1, short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent link gives %v: want silence", err)
	}
	l.Cut()
	if _, err := hear(conn, 1, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the cut link gives %v: want its end", err)
	}
	until(t, "the link forgets the connection", func() bool { return l.Live() == 0 })
}

// TestNoAnswers: the server has done it, and the client does not know.
func TestNoAnswers(t *testing.T) {
	addr, heard := echo(t)
	l := network.New(t, addr)
	conn := dial(t, l)
	l.NoAnswers()
	if got, err := ask(conn, "take", short); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v: want silence", got, err)
	}
	until(t, "the server hears", func() bool { return heard() == "take" })
	l.Heal()
	if got, err := hear(conn, 4, long); got != "take" {
		t.Errorf("after Heal: %q, %v", got, err)
	}
}

// TestLatency: each direction adds its own, and many bytes wait together, not in turn.
func TestLatency(t *testing.T) {
	l, conn := link(t)
	l.Latency(40*time.Millisecond, 60*time.Millisecond, 10*time.Millisecond)
	start := time.Now()
	words := strings.Repeat("x", 800_000)
	go io.WriteString(conn, words)
	if got, err := hear(conn, len(words), long); got != words {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	// Some 50 chunks, one after the other, would take 50 times as long.
	if took := time.Since(start); took < 100*time.Millisecond || took > 3*time.Second {
		t.Errorf("it took %v: want 100 to 120 ms, and what a busy machine adds", took)
	}
	l.Latency(-1, 0, -1)
	best := long
	for range 5 {
		start = time.Now()
		ask(conn, "a", long)
		best = min(best, time.Since(start))
	}
	if best > 90*time.Millisecond {
		t.Errorf("without latency it takes %v", best)
	}
}

// TestLatencyWithoutReader: a link can be healed although nobody reads what comes.
func TestLatencyWithoutReader(t *testing.T) {
	l, conn := link(t)
	l.Latency(time.Millisecond, time.Millisecond, 0)
	var work sync.WaitGroup
	work.Go(func() { conn.Write(make([]byte, 50<<20)) })
	until(t, "the client's bytes have nowhere to go", func() bool { return l.Live() == 1 })
	healed := make(chan struct{})
	go func() { l.Heal(); close(healed) }()
	select {
	case <-healed:
	case <-time.After(long):
		t.Error("Heal waits for a reader")
	}
	l.Cut()
	work.Wait()
}

// TestBandwidth: two connections share it, each direction has it.
func TestBandwidth(t *testing.T) {
	l, one := link(t)
	other := dial(t, l)
	l.Bandwidth(200)
	start := time.Now()
	words := strings.Repeat("x", 20_000)
	var both sync.WaitGroup
	for _, conn := range []net.Conn{one, other} {
		both.Go(func() {
			if got, err := ask(conn, words, long); got != words {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	both.Wait()
	if took := time.Since(start); took < 195*time.Millisecond || took > 2*time.Second {
		t.Errorf("40,000 bytes at 200 kB/s took %v: want 0.2 s, and what a busy machine adds", took)
	}
}

// TestPieces: what comes in parts comes whole.
func TestPieces(t *testing.T) {
	l, conn := link(t)
	l.Pieces(1)
	words := strings.Repeat("0123456789", 50)
	if got, err := ask(conn, words, long); got != words {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDialer: a client knows servers' own addresses, and gets to them by links alone.
func TestDialer(t *testing.T) {
	one, _ := echo(t)
	other, _ := echo(t)
	links := network.NewLinks(t, one, other)
	links[other].Cut()
	conn, err := links.Dial(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := ask(conn, "a", long); got != "a" || links[one].Accepted() != 1 {
		t.Errorf("%q, %v, %d by its link: want a, 1", got, err, links[one].Accepted())
	}
	if _, err := links.Dial(t.Context(), other); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cut one gives %v: want refused", err)
	}
	if _, err := links.Dial(t.Context(), "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "no link") {
		t.Errorf("an address without a link gives %v: want no link", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := links.Dial(done, one); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled dial gives %v", err)
	}
}

// TestStorm changes everything while clients come, ask and go; what they get back is
// what they have sent, or an error.
func TestStorm(t *testing.T) {
	addr, _ := echo(t)
	l := network.New(t, addr)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := net.DialTimeout("tcp", l.Addr, long)
				if err != nil {
					continue
				}
				for range 10 {
					got, err := ask(conn, "0123456789", 50*time.Millisecond)
					if len(got) > 10 || got != "0123456789"[:len(got)] {
						t.Errorf("%q comes back", got)
					}
					if err != nil {
						break
					}
				}
				conn.Close()
			}
		})
	}
	faults := []func(){
		l.Cut, l.Reset, l.HalfOpen, l.NoAnswers, l.Heal,
		func() { l.Latency(time.Millisecond, 0, time.Millisecond) },
		func() { l.Bandwidth(50) }, func() { l.Pieces(1) },
	}
	for i := range 40 {
		faults[i*3%len(faults)]()
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // sleep: clients get some time in each weather
		if i%5 == 4 {
			l.Heal()
		}
	}
	close(stop)
	clients.Wait()
}
