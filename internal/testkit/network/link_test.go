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

	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/network"
)

// TestMain checks for leaked goroutines. A closed Redis client leaves a goroutine that sleeps
// until its next refresh.
func TestMain(m *testing.M) {
	leak.Main(m, "github.com/redis/rueidis.(*call).DelayDo.func1")
}

// long is longer than any operation takes. short is the wait for bytes that must not arrive.
const (
	long  = 10 * time.Second
	short = 100 * time.Millisecond
)

// echo runs a server that sends back its input. heard returns the start of the input.
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

// dial connects through a link until the test ends.
func dial(t *testing.T, l *network.Link) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", l.Addr, long)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// link returns a link to an echo server, and a connection that has been used once.
func link(t *testing.T) (*network.Link, *net.TCPConn) {
	t.Helper()
	addr, _ := echo(t)
	l := network.New(t, addr)
	conn := dial(t, l)
	if got, err := exchange(conn, "a", long); got != "a" {
		t.Fatalf("the link returns %q, %v", got, err)
	}
	return l, conn
}

// exchange sends words and reads the same number of bytes within a time.
func exchange(conn net.Conn, words string, within time.Duration) (string, error) {
	if _, err := io.WriteString(conn, words); err != nil {
		return "", err
	}
	return read(conn, len(words), within)
}

func read(conn net.Conn, n int, within time.Duration) (string, error) {
	conn.SetReadDeadline(time.Now().Add(within))
	b := make([]byte, n)
	n, err := io.ReadFull(conn, b)
	return string(b[:n]), err
}

// until polls until ready returns true.
func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(long); !ready(); time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // sleep: it polls, and there is a deadline
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %v: %s", long, what)
		}
	}
}

func TestWellLink(t *testing.T) {
	l, conn := link(t)
	words := strings.Repeat("0123456789", 100_000)
	go io.WriteString(conn, words)
	if got, err := read(conn, len(words), long); got != words {
		t.Errorf("%d bytes come back, different from those sent: %v", len(got), err)
	}
	conn.CloseWrite()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after the client's end: %d bytes, %v: want EOF", n, err)
	}
	until(t, "the link no longer counts the connection", func() bool { return l.Live() == 0 })
	if l.Accepted() != 1 {
		t.Errorf("%d connections were accepted: want 1", l.Accepted())
	}
}

func TestCutAndHeal(t *testing.T) {
	l, conn := link(t)
	l.Cut()
	if _, err := read(conn, 1, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an open connection through a cut link returns %v: want a close", err)
	}
	if _, err := net.DialTimeout("tcp", l.Addr, long); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection returns %v: want refused", err)
	}
	l.Heal()
	l.Heal()
	if got, err := exchange(dial(t, l), "b", long); got != "b" {
		t.Errorf("a healed link returns %q, %v", got, err)
	}
}

func TestReset(t *testing.T) {
	l, conn := link(t)
	l.Reset()
	if _, err := read(conn, 1, long); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an idle connection returns %v: want reset by peer", err)
	}
	if got, err := exchange(dial(t, l), "b", long); got != "b" {
		t.Errorf("a new connection returns %q, %v", got, err)
	}
}

// TestResetPasses checks that a reset of one side resets the other side.
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
	if _, err := read(conn, 1, long); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the error of the client is %v: want reset by peer", err)
	}
}

// TestServerAway checks that a link without a server accepts a connection and resets it.
func TestServerAway(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	conn, err := net.DialTimeout("tcp", network.New(t, server.Addr().String()).Addr, long)
	if err == nil { // The reset may come during the dial.
		defer conn.Close()
		_, err = read(conn, 1, long)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the error of the client is %v: want reset by peer", err)
	}
}

// TestHalfOpen checks that no byte passes until Heal, and then all bytes pass.
func TestHalfOpen(t *testing.T) {
	addr, heard := echo(t)
	l := network.New(t, addr)
	old := dial(t, l)
	exchange(old, "a", long)
	l.HalfOpen()
	young := dial(t, l)
	for name, conn := range map[string]net.Conn{"old": old, "young": young} {
		if got, err := exchange(conn, name, short); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %q, %v: want silence", name, got, err)
		}
	}
	if got := heard(); got != "a" {
		t.Errorf("the server has received %q: want a", got)
	}
	l.Heal()
	for name, conn := range map[string]net.Conn{"old": old, "young": young} {
		if got, err := read(conn, len(name), long); got != name {
			t.Errorf("after Heal %s returns %q, %v", name, got, err)
		}
	}
}

// TestHalfOpenEnds checks that a silent link can be cut, and hides the close of the server.
func TestHalfOpenEnds(t *testing.T) {
	l, conn := link(t)
	l.HalfOpen()
	conn.CloseWrite() // The echo server would then close its side.
	if _, err := read(conn, 1, short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent link returns %v: want silence", err)
	}
	l.Cut()
	if _, err := read(conn, 1, long); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the cut link returns %v: want a close", err)
	}
	until(t, "the link no longer counts the connection", func() bool { return l.Live() == 0 })
}

// TestNoAnswers checks that the server receives the request and the client gets no answer.
func TestNoAnswers(t *testing.T) {
	addr, heard := echo(t)
	l := network.New(t, addr)
	conn := dial(t, l)
	l.NoAnswers()
	if got, err := exchange(conn, "take", short); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v: want silence", got, err)
	}
	until(t, "the server hears", func() bool { return heard() == "take" })
	until(t, "the link keeps the answer", func() bool { return l.Keeping() == 1 })
	l.Heal()
	if got, err := read(conn, 4, long); got != "take" || l.Keeping() != 0 {
		t.Errorf("after Heal: %q, %v, %d answers are kept", got, err, l.Keeping())
	}
}

// TestLatency checks the delay of both directions. Many chunks are delayed at the same time.
func TestLatency(t *testing.T) {
	l, conn := link(t)
	l.Latency(40*time.Millisecond, 60*time.Millisecond, 10*time.Millisecond)
	start := time.Now()
	words := strings.Repeat("x", 800_000)
	go io.WriteString(conn, words)
	if got, err := read(conn, len(words), long); got != words {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	// There are about 50 chunks. Delayed one after another, they would take 50 times as long.
	if elapsed := time.Since(start); elapsed < 100*time.Millisecond || elapsed > 3*time.Second {
		t.Errorf("it took %v: want 100 to 120 ms, or more on a busy machine", elapsed)
	}
	l.Latency(-1, 0, -1)
	best := long
	for range 5 {
		start = time.Now()
		exchange(conn, "a", long)
		best = min(best, time.Since(start))
	}
	if best > 90*time.Millisecond {
		t.Errorf("without latency it takes %v", best)
	}
}

// TestLatencyWithoutReader checks that Heal returns although the client does not read.
func TestLatencyWithoutReader(t *testing.T) {
	l, conn := link(t)
	l.Latency(time.Millisecond, time.Millisecond, 0)
	var work sync.WaitGroup
	work.Go(func() { conn.Write(make([]byte, 50<<20)) })
	until(t, "the client cannot write any more", func() bool { return l.Live() == 1 })
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

// TestBandwidth checks that connections share the bandwidth, and each direction has its own.
func TestBandwidth(t *testing.T) {
	l, one := link(t)
	other := dial(t, l)
	l.Bandwidth(200)
	start := time.Now()
	words := strings.Repeat("x", 20_000)
	var both sync.WaitGroup
	for _, conn := range []net.Conn{one, other} {
		both.Go(func() {
			if got, err := exchange(conn, words, long); got != words {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	both.Wait()
	if elapsed := time.Since(start); elapsed < 195*time.Millisecond || elapsed > 2*time.Second {
		t.Errorf("40,000 bytes at 200 kB/s took %v: want 0.2 s, or more on a busy machine", elapsed)
	}
}

// TestPieces checks that a message sent in pieces arrives completely.
func TestPieces(t *testing.T) {
	l, conn := link(t)
	l.Pieces(1)
	words := strings.Repeat("0123456789", 50)
	if got, err := exchange(conn, words, long); got != words {
		t.Errorf("%q, %v", got, err)
	}
}

// TestDialer checks that a client with the servers' own addresses uses only links.
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
	if got, err := exchange(conn, "a", long); got != "a" || links[one].Accepted() != 1 {
		t.Errorf("%q, %v, %d through its link: want a, 1", got, err, links[one].Accepted())
	}
	if _, err := links.Dial(t.Context(), other); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cut link returns %v: want refused", err)
	}
	if _, err := links.Dial(t.Context(), "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "no link") {
		t.Errorf("an address without a link returns %v: want no link", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := links.Dial(done, one); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled dial returns %v", err)
	}
}

// TestStorm changes all faults while clients connect, send and close. A client gets its own bytes
// back, or an error.
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
					got, err := exchange(conn, "0123456789", 50*time.Millisecond)
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
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // sleep: clients get some time with each fault
		if i%5 == 4 {
			l.Heal()
		}
	}
	close(stop)
	clients.Wait()
}
