package meta_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
	"github.com/headgate/headgate/internal/testkit/memcached"
)

// proxy stands between a client and a server, and changes the bytes as harm says.
type proxy struct {
	addr string
	harm atomic.Pointer[harm]
}

// harm gets each piece in one direction, and passes it on with write: unchanged, changed, in part
// or not at all. It reports whether to keep the connection.
type harm func(piece []byte, write func([]byte), toServer bool) bool

func pass(piece []byte, write func([]byte), _ bool) bool { write(piece); return true }

func split(piece []byte, write func([]byte), _ bool) bool {
	for i := range piece {
		write(piece[i : i+1])
	}
	return true
}

func swallow([]byte, func([]byte), bool) bool { return true }

func cutAnswers(piece []byte, write func([]byte), toServer bool) bool {
	if toServer {
		write(piece)
		return true
	}
	write(piece[:rand.IntN(len(piece))])
	return false
}

func spoilAnswers(piece []byte, write func([]byte), toServer bool) bool {
	if !toServer {
		piece[rand.IntN(len(piece))] ^= byte(1 + rand.IntN(255))
	}
	write(piece)
	return true
}

func newProxy(tb testing.TB, server string) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	p.set(pass)
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // because the test's own ends only after this cleanup is needed
	tb.Cleanup(func() { cancel(); l.Close(); group.Wait() })
	group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			backend, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			end := func() { client.Close(); backend.Close() }
			stop := context.AfterFunc(ctx, end)
			group.Go(func() { defer stop(); defer end(); p.carry(client, backend, true) })
			group.Go(func() { defer end(); p.carry(backend, client, false) })
		}
	})
	return p
}

func (p *proxy) set(h harm) { p.harm.Store(&h) }

func (p *proxy) carry(from, to net.Conn, toServer bool) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !(*p.harm.Load())(buffer[:n], func(b []byte) { to.Write(b) }, toServer) {
			return
		}
		if err != nil {
			return
		}
	}
}

// recovers fails the test unless the client works again within 10 s.
func recovers(t *testing.T, c *meta.Client) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := c.Ping(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the client does not recover: %v", err)
		}
		pause(t, 5*time.Millisecond)
	}
}

// counters are the counts of many callers. Each uses its own number, so that a wrong answer is
// detected.
type counters struct {
	answered, failed, unsent atomic.Int64
}

// hammer lets callers count. The k-th caller has its own key, beginning with k million. An answer
// must be above the caller's last answer, and not above the sum of its requests. Half of the
// callers have short deadlines. hammer ends after a number of answers, and at the latest after
// most.
func hammer(t *testing.T, c *meta.Client, name string, trusted bool, answers int64, most time.Duration) *counters {
	t.Helper()
	const callers = 16
	var group sync.WaitGroup
	total := &counters{}
	end := time.Now().Add(most)
	for k := range callers {
		group.Go(func() {
			first := uint64(k+1) * 1_000_000
			r := []meta.Request{{Kind: meta.Increment, Key: fmt.Sprint(name, k), Delta: 1, Initial: first, Create: true}}
			var a [1]meta.Response
			for asked, last := uint64(0), uint64(0); time.Now().Before(end) && total.answered.Load() < answers; asked++ {
				patience := time.Duration(rand.IntN(20)) * time.Millisecond
				if k%2 == 0 {
					patience = time.Second
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				err := c.Do(ctx, r, a[:])
				cancel()
				switch {
				case err == nil:
					total.answered.Add(1)
					if trusted && (a[0].Status != meta.OK || a[0].Number <= last || a[0].Number > first+asked) {
						t.Errorf("caller %d got %d after %d", k, a[0].Number, last)
						return
					}
					last = a[0].Number
				case meta.Sent(err):
					total.failed.Add(1)
				default:
					total.unsent.Add(1)
				}
			}
		})
	}
	group.Wait()
	return total
}

// TestHarm: for each kind of harm, no answer reaches another caller. Afterwards the client works again.
func TestHarm(t *testing.T) {
	s := memcached.Start(t)
	cases := []struct {
		name    string
		harm    harm
		trusted bool // The received bytes come from the server.
		served  bool // Some answers arrive in spite of the harm.
	}{
		{"split", split, true, true},
		{"cut", cutAnswers, true, false},
		{"spoil", spoilAnswers, false, false},
		{"swallow", swallow, true, false},
		{"slow", func(piece []byte, write func([]byte), _ bool) bool {
			pause(t, 5*time.Millisecond)
			write(piece)
			return true
		}, true, true},
		{"now and then", func(piece []byte, write func([]byte), toServer bool) bool {
			if rand.IntN(50) == 0 {
				return cutAnswers(piece, write, toServer)
			}
			return split(piece, write, toServer)
		}, true, true},
	}
	for i, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			p := newProxy(t, s.Addr)
			c := open(t, meta.Config{
				Addr: p.addr, StallTimeout: 100 * time.Millisecond, DialTimeout: 100 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
			})
			recovers(t, c)
			p.set(k.harm)
			most := 300 * time.Millisecond
			if k.served {
				most = 20 * time.Second
			}
			total := hammer(t, c, fmt.Sprint("case", i, "key"), k.trusted, 500, most)
			if k.served && total.answered.Load() < 500 {
				t.Errorf("%d answers, %d failures of what was sent, %d of what was not",
					total.answered.Load(), total.failed.Load(), total.unsent.Load())
			}
			p.set(pass)
			recovers(t, c)
			if c.Close(); k.trusted {
				c = open(t, meta.Config{Addr: p.addr})
				if total := hammer(t, c, fmt.Sprint("case", i, "later"), true, 100, 20*time.Second); total.answered.Load() < 100 {
					t.Error("nothing is answered after the harm")
				}
			}
		})
	}
}

// TestCountedOrNot: connections are cut at random. A request with Sent false is not counted, and an
// answered request is. So the server's count is at least the number of answers, and at most the
// number of requests with Sent true.
func TestCountedOrNot(t *testing.T) {
	s := memcached.Start(t)
	p := newProxy(t, s.Addr)
	c := open(t, meta.Config{Addr: p.addr, MaxBackoff: 10 * time.Millisecond})
	r := []meta.Request{{Kind: meta.Increment, Key: "n", Delta: 1, Initial: 1, Create: true}}
	var a [1]meta.Response
	answered, sent := uint64(0), uint64(0)
	for i := range 600 {
		p.set(pass)
		if i%3 == 0 {
			p.set(cutAnswers)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		switch err := c.Do(ctx, r, a[:]); {
		case err == nil:
			answered++
		case meta.Sent(err):
			sent++
		}
		cancel()
	}
	direct := open(t, meta.Config{Addr: s.Addr})
	r[0].Delta = 0
	if err := direct.Do(t.Context(), r, a[:]); err != nil {
		t.Fatal(err)
	}
	if n := a[0].Number; n < answered || n > answered+sent || answered == 0 || sent == 0 {
		t.Errorf("the server counted %d; %d were answered and %d may have been counted", n, answered, sent)
	}
}

// TestKilledServer: the failure of a dead server is reported at once. The client finds a server
// that takes its place.
func TestKilledServer(t *testing.T) {
	s := memcached.Start(t)
	c := open(t, meta.Config{Addr: s.Addr, MaxBackoff: 100 * time.Millisecond})
	recovers(t, c)
	s.Kill()
	for deadline := time.Now().Add(5 * time.Second); ; {
		began := time.Now()
		err := c.Ping(t.Context())
		if err != nil && !meta.Sent(err) {
			if elapsed := time.Since(began); elapsed > 5*time.Second {
				t.Errorf("it took %v to hear that the server is gone", elapsed)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a dead server: %v", err)
		}
	}
	memcached.StartAt(t, s.Addr)
	recovers(t, c)
}

// TestPausedServer: the server is paused. Callers leave at their deadlines, and later ones fail at
// once. The client works again when the server continues.
func TestPausedServer(t *testing.T) {
	const patience, stall = 20 * time.Millisecond, 200 * time.Millisecond
	s := memcached.Start(t)
	c := open(t, meta.Config{Addr: s.Addr, StallTimeout: stall, DialTimeout: stall, MaxBackoff: 100 * time.Millisecond})
	recovers(t, c)
	s.Pause()
	atOnce := 0
	for deadline := time.Now().Add(10 * time.Second); atOnce < 20; {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		began := time.Now()
		err := c.Ping(ctx)
		elapsed := time.Since(began)
		cancel()
		if err == nil || elapsed > patience+5*time.Second {
			t.Fatalf("%v after %v", err, elapsed)
		}
		if !errors.Is(err, context.DeadlineExceeded) && !meta.Sent(err) {
			atOnce++
		}
		if time.Now().After(deadline) {
			t.Fatalf("a paused server is never held to be down: %v", err)
		}
		pause(t, time.Millisecond)
	}
	s.Resume()
	recovers(t, c)
}
