package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const streamedConfiguration = `version: 1
max_memory: 64MiB
rules:
  - {name: all, key: [ip], limits: ["1000000/s"]}
proxy:
  listen: "127.0.0.1:0"
  max_connections: 20000
  idle_timeout: %s
  upstream: "%%s"
`

// TestStreaming sends 1 GiB in each direction at the same time. The proxy keeps only a few
// buffers: its peak is at most 64 MiB above the store's 64 MiB.
func TestStreaming(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
			return
		}
		_, _ = io.Copy(w, io.LimitReader(zeros{}, size))
	}))
	defer behind.Close()
	i := start(t, fmt.Sprintf(streamedConfiguration, "60s"), behind.URL)
	before := peak(t, i.command.Process.Pid)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		if body, err := exchange(ctx, http.MethodPut, "http://"+i.Proxy+"/up", io.LimitReader(zeros{}, size)); err != nil || body != fmt.Sprint(size, nil) {
			t.Errorf("up: %q, %v", body, err)
		}
	})
	both.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.Proxy+"/down", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
			t.Errorf("down: %d bytes, want %d: %v", n, size, err)
		}
	})
	both.Wait()
	after := peak(t, i.command.Process.Pid)
	t.Logf("peak resident memory: %d MiB before, %d MiB after", before>>20, after>>20)
	if after > 128<<20 {
		t.Errorf("the proxy takes %d MiB, want at most 128", after>>20)
	}
}

// exchange sends one request, and gives the body of the answer.
func exchange(ctx context.Context, method, url string, body io.Reader) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// TestIdleConnections opens ten thousand connections that each send one request and then stay
// idle. They use bounded memory, other clients are served, and idle_timeout closes them all. Each
// answer is read before the next request: requests in flight take memory of their own, and how
// many are in flight at once depends on the machine.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	const connections = 10_000
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(streamedConfiguration, "4s"), behind.URL)
	idle := quietly(t, i, behind)
	before := peak(t, i.command.Process.Pid)
	all := make([]net.Conn, 0, connections)
	defer func() {
		for _, conn := range all {
			conn.Close()
		}
	}()
	for n := range connections {
		conn, err := net.Dial("tcp", i.Proxy)
		if err != nil {
			t.Fatalf("connection %d: %v: raise the limit of open files (ulimit -n)", n, err)
		}
		all = append(all, conn)
		fmt.Fprint(conn, request("GET / HTTP/1.1", "Host: a"))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if got, err := conn.Read(make([]byte, 512)); err != nil || got < 100 {
			t.Fatalf("connection %d of %d is answered with %d bytes: %v", n, connections, got, err)
		}
	}
	after := peak(t, i.command.Process.Pid)
	each := (after - before) / connections
	t.Logf("peak resident memory: %d MiB before, %d MiB with %d connections, %d KiB each", before>>20, after>>20, connections, each>>10)
	if each > 32<<10 {
		t.Errorf("a connection takes %d KiB, want at most 32", each>>10)
	}
	if resp, _ := get(t, "http://"+i.Proxy+"/"); resp.StatusCode != http.StatusOK {
		t.Errorf("beside them: status %d", resp.StatusCode)
	}
	for n, conn := range all {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 512)); !errors.Is(err, io.EOF) {
			t.Fatalf("connection %d of %d is not ended: %v", n, connections, err)
		}
	}
	settles(t, i, behind, idle)
}

// TestIdleConnectionsInUse measures what an idle connection holds, with its goroutine, after
// garbage is collected.
func TestIdleConnectionsInUse(t *testing.T) {
	t.Parallel()
	const connections = 4000
	most := float64(8 << 10)
	if os.Getenv("HEADGATE_TEST_DATA_PLANE") == "standard" {
		most = 32 << 10
	}
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(streamedConfiguration, "5m"), behind.URL)
	get(t, "http://"+i.Proxy+"/")
	before := inUse(t, i)
	for n := range connections {
		conn, err := net.Dial("tcp", i.Proxy)
		if err != nil {
			t.Fatalf("connection %d: %v: raise the limit of open files (ulimit -n)", n, err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprint(conn, request("GET / HTTP/1.1", "Host: a"))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if got, err := conn.Read(make([]byte, 512)); err != nil || got < 100 {
			t.Fatalf("connection %d is answered with %d bytes: %v", n, got, err)
		}
	}
	after := inUse(t, i)
	each := (after - before) / connections
	t.Logf("%.0f KiB before, %.0f KiB with %d idle connections: %.1f KiB each", before/1024, after/1024, connections, each/1024)
	if open := metric(t, i, "headgate_proxy_connections"); open < connections {
		t.Errorf("%v connections are open, want %d", open, connections)
	}
	if each > most {
		t.Errorf("an idle connection holds %.1f KiB, want at most %.0f", each/1024, most/1024)
	}
}

// inUse gives the bytes that a proxy holds in its heap and in stacks, without garbage.
func inUse(t *testing.T, i *instance) float64 {
	t.Helper()
	for range 4 { // Each collection at most halves a stack.
		get(t, "http://"+i.Admin+"/debug/pprof/heap?gc=1")
	}
	return metric(t, i, "go_memstats_heap_alloc_bytes") + metric(t, i, "go_memstats_stack_inuse_bytes")
}

// service is an upstream that can close idle connections.
type service interface{ CloseClientConnections() }

// quietly gives the number of goroutines of a proxy that has started and served a request.
func quietly(t *testing.T, i *instance, behind service) int {
	t.Helper()
	get(t, "http://"+i.Proxy+"/")
	last, same := 0, 0
	eventually(t, "the number of goroutines to stay the same", func() bool {
		behind.CloseClientConnections()
		n := goroutines(t, i)
		if n != last {
			last, same = n, 0
		}
		same++
		return same == 10
	})
	return last
}

// goroutines gives the number of goroutines of the proxy, from its admin address.
func goroutines(t *testing.T, i *instance) int {
	t.Helper()
	_, text := get(t, "http://"+i.Admin+"/debug/pprof/goroutine?debug=1")
	first, _, _ := strings.Cut(text, "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(first, "goroutine profile: total "))
	if err != nil {
		t.Fatalf("no count of goroutines: %q", first)
	}
	return n
}

// settles waits until the proxy has no more goroutines than when idle, and checks that it still
// serves. Goroutines of kept upstream connections do not count.
func settles(t *testing.T, i *instance, behind service, idle int) {
	t.Helper()
	profile := ""
	defer func() {
		if t.Failed() {
			t.Logf("the goroutines at last: %s", profile)
		}
	}()
	eventually(t, fmt.Sprintf("no more than %d goroutines", idle), func() bool {
		_, profile = get(t, "http://"+i.Admin+"/debug/pprof/goroutine?debug=1")
		behind.CloseClientConnections()
		return goroutines(t, i) <= idle
	})
	if resp, _ := get(t, "http://"+i.Proxy+"/"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards the proxy answers %d", resp.StatusCode)
	}
	if log := i.text(); strings.Contains(log, "panic") {
		t.Errorf("the log tells of a panic:\n%s", log)
	}
}
