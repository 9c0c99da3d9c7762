package server_test

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
)

// TestWorkers checks that goroutines serve one connection after the other, also after a panic, and
// that connections at the same time have a goroutine each.
func TestWorkers(t *testing.T) {
	const most = 300 // More than there are idle workers.
	var arrived sync.WaitGroup
	arrived.Add(most)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/together":
			arrived.Done()
			arrived.Wait()
		case "/panic":
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "fine")
	})
	one := func(path string) {
		conn, from := s.dial(t)
		defer conn.Close()
		send(t, conn, "GET "+path+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		if path == "/panic" {
			ended(t, from)
			return
		}
		if got := answer(t, from, "GET"); got.body != "fine" {
			t.Errorf("%s: got %v", path, got)
		}
		ended(t, from)
	}
	var together sync.WaitGroup
	for range most {
		together.Go(func() { one("/together") })
	}
	together.Wait()
	for range 50 {
		one("/panic")
		one("/")
	}
	for until := time.Now().Add(patience); strings.Contains(stacks(), ".(*Server).work("); <-time.After(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("idle workers remain without a connection")
		}
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// TestNewConnectionsAllocateLittle checks that a connection with one request leaves its buffers to
// the next.
func TestNewConnectionsAllocateLittle(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	const connections = 100
	least := uint64(1 << 20)
	for range 5 { // A collection may empty the pools.
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range connections {
			conn, from := s.dial(t)
			send(t, conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			answer(t, from, "GET")
			ended(t, from)
			_ = conn.Close()
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/connections)
	}
	t.Logf("%d bytes for a connection, with those of its client", least)
	if most := uint64(12 << 10); least > most && !race.On { // A pool drops some of its items under the race detector.
		t.Errorf("a connection and its client allocate %d bytes, want at most %d", least, most)
	}
}
