package memcached_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/memcached"
)

func newStore(tb testing.TB, c memcached.Config) *memcached.Store {
	tb.Helper()
	store, err := memcached.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// say sends one command to a server and gives its answer, up to END or a single line.
func say(tb testing.TB, addr, command string) []string {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		tb.Fatal(err)
	}
	var lines []string
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			tb.Fatalf("%q: %v after %q", command, err, lines)
		}
		lines = append(lines, strings.TrimSpace(line))
		if many := strings.HasPrefix(command, "stats") || strings.HasPrefix(command, "lru_crawler"); !many || strings.HasPrefix(line, "END") {
			return lines
		}
	}
}

// flush empties the server, so that each store of the suite starts without keys.
func flush(tb testing.TB, addr string) {
	tb.Helper()
	if got := say(tb, addr, "flush_all"); got[0] != "OK" {
		tb.Fatalf("flush_all: %q", got)
	}
}

func prepare(tb testing.TB, store headgate.Store, p headgate.Policy) headgate.PolicyID {
	tb.Helper()
	id, err := store.Prepare(p)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

func apply(tb testing.TB, store headgate.Store, ops ...headgate.Op) []headgate.Decision {
	tb.Helper()
	decisions := make([]headgate.Decision, len(ops))
	if err := store.Apply(tb.Context(), ops, decisions); err != nil {
		tb.Fatalf("Apply(%+v): %v", ops, err)
	}
	return decisions
}

func giveBack(tb testing.TB, store headgate.Store, receipts ...headgate.Receipt) {
	tb.Helper()
	if err := store.Return(tb.Context(), receipts); err != nil {
		tb.Fatalf("Return: %v", err)
	}
}

func remaining(tb testing.TB, store headgate.Store, key string, id headgate.PolicyID) int64 {
	tb.Helper()
	return apply(tb, store, headgate.Op{Key: key, Policy: id, Kind: headgate.Peek})[0].Remaining
}

// tap is a connection to servers that calls a test's function before each write.
type tap struct {
	mu     sync.Mutex
	before func(written []byte)
}

func (t *tap) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &tapped{conn, t}, nil
}

// on sets the function to call before each write; nil removes it.
func (t *tap) on(before func(written []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.before = before
}

type tapped struct {
	net.Conn

	tap *tap
}

func (c *tapped) Write(b []byte) (int, error) {
	c.tap.mu.Lock()
	before := c.tap.before
	c.tap.mu.Unlock()
	if before != nil {
		before(b)
	}
	return c.Conn.Write(b)
}

// writesTo gives the names of the items that a conditional write stores.
func writesTo(written []byte) []string {
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^ms (\S+) `).FindAllSubmatch(written, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

// until polls until a condition holds.
func until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); pause(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("%s: not within a minute", what)
		}
	}
}

// pause gives servers and other goroutines some time; no test depends on its length to pass.
func pause(d time.Duration) { <-time.After(d) }
