package acceptance

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/internal/config"
)

// TestTrafficMemoryIsBounded: clients send what costs the proxy several times max_traffic_memory. The process stays within the bound that
// check prints, the costliest connections are closed, and another client is served meanwhile.
func TestTrafficMemoryIsBounded(t *testing.T) {
	for _, attack := range []struct {
		name        string
		connections int
		sent        []byte
	}{
		// 24 bytes for each byte of short fields. They do not fit in the buffer of the fast path, so that net/http reads them.
		{"headers of HTTP/1 that do not end", 4000, []byte("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:b\r\n", 1700))},
		{"headers of HTTP/2 that do not end", 4000, unfinishedFields(t)},
	} {
		t.Run(attack.name, func(t *testing.T) {
			behind := httptest.NewServer(page())
			defer behind.Close()
			i := start(t, fmt.Sprintf(hoardedConfiguration, 16384, "60s", "5m", "read_header_timeout: 2m\n  max_traffic_memory: 128MiB"), behind.URL)
			loaded, err := config.Load(i.path)
			if err != nil {
				t.Fatal(err)
			}
			openMany(t, attack.connections, func() (net.Conn, error) {
				conn, err := net.DialTimeout("tcp", i.Proxy, patience)
				if err == nil {
					_ = conn.SetWriteDeadline(time.Now().Add(patience))
					_, _ = conn.Write(attack.sent) // fails when the proxy closes the connection
				}
				return conn, err
			})
			// The connections of the attack are accepted first.
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 4 * patience}
			slowest := time.Duration(0)
			for range 20 {
				began := time.Now()
				resp, err := client.Get("http://" + i.Proxy + "/")
				slowest = max(slowest, time.Since(began))
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatalf("another client: %v, %v", resp, err)
				}
				_ = resp.Body.Close()
			}
			t.Logf("another client waited %v at most", slowest)
			withinBound(t, i, loaded.MemoryBound())
			if noneClosedForMemory(t, i) || !strings.Contains(i.text(), "connections were closed because memory is near its bound") {
				t.Errorf("no connection was closed, or the log does not say so: %s", i.text())
			}
		})
	}
}

// openMany opens connections that stay until the test ends, some at once.
func openMany(t *testing.T, n int, open func() (net.Conn, error)) {
	t.Helper()
	todo := make(chan struct{}, n)
	for range n {
		todo <- struct{}{}
	}
	close(todo)
	var opening sync.WaitGroup
	for range 32 {
		opening.Go(func() {
			for range todo {
				conn, err := open()
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { _ = conn.Close() })
			}
		})
	}
	opening.Wait()
}

// noneClosedForMemory reports whether the proxy has closed no connection because of its memory.
func noneClosedForMemory(t *testing.T, i *instance) bool {
	t.Helper()
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	return strings.Contains(metrics, "\nheadgate_proxy_connections_closed_for_memory_total 0\n")
}

// TestServedClientsSurviveAnAttack: clients that await one answer each are served while headers that do not end fill the memory. Their
// connections take more memory than most of the attack's.
func TestServedClientsSurviveAnAttack(t *testing.T) {
	const clients = 20
	arrived, release := make(chan struct{}, clients), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
		fmt.Fprintln(w, "fine")
	}))
	defer behind.Close()
	i := start(t, fmt.Sprintf(hoardedConfiguration, 16384, "60s", "5m", "read_header_timeout: 2m\n  max_traffic_memory: 64MiB"), behind.URL)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answers := make(chan string, clients)
	for range clients {
		go func() {
			resp, err := client.Get("http://" + i.Proxy + "/")
			if err != nil {
				answers <- err.Error()
				return
			}
			defer func() { _ = resp.Body.Close() }()
			answers <- resp.Status
		}()
	}
	for range clients {
		<-arrived
	}
	sent := []byte("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:b\r\n", 370))
	for end := time.Now().Add(4 * patience); noneClosedForMemory(t, i); {
		if time.Now().After(end) {
			t.Fatal("the attack does not fill the memory")
		}
		openMany(t, 500, func() (net.Conn, error) {
			conn, err := net.DialTimeout("tcp", i.Proxy, patience)
			if err == nil {
				_ = conn.SetWriteDeadline(time.Now().Add(patience))
				_, _ = conn.Write(sent) // fails when the proxy closes the connection
			}
			return conn, err
		})
	}
	close(release)
	for range clients {
		if answer := <-answers; answer != "200 OK" {
			t.Errorf("a client gets %s", answer)
		}
	}
}

// TestIdleTLSWithinTrafficMemory: idle connections with TLS take more than plain ones, and stay within the bound too.
func TestIdleTLSWithinTrafficMemory(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	ca := newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	i := start(t, fmt.Sprintf(hoardedConfiguration, 16384, "60s", "5m", fmt.Sprintf(
		"tls: {cert: %s, key: %s}\n  max_traffic_memory: 64MiB", server.cert, server.key)), behind.URL)
	loaded, err := config.Load(i.path)
	if err != nil {
		t.Fatal(err)
	}
	trusting := &tls.Config{RootCAs: ca.pool(), ServerName: "proxy.example", NextProtos: []string{"http/1.1"}}
	openMany(t, 6000, func() (net.Conn, error) {
		plain, err := net.DialTimeout("tcp", i.Proxy, patience)
		if err != nil {
			return plain, err
		}
		conn := tls.Client(plain, trusting)
		_ = conn.SetDeadline(time.Now().Add(patience))
		// Both fail when the proxy closes the connection.
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
		_, _ = conn.Read(make([]byte, 1))
		return conn, nil
	})
	withinBound(t, i, loaded.MemoryBound())
	if noneClosedForMemory(t, i) {
		t.Error("no connection was closed: open more of them")
	}
}

// unfinishedFields gives the start of an HTTP/2 connection whose first request has 1,600 short fields, and does not end.
func unfinishedFields(t *testing.T) []byte {
	t.Helper()
	var sent bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&sent, nil)
	block := bytes.Repeat([]byte{0x10, 1, 'a', 1, 'b'}, 800)
	err := framer.WriteSettings()
	if err == nil {
		err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block})
	}
	if err == nil {
		err = framer.WriteContinuation(1, false, block)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sent.Bytes()
}

// TestManyStreamsWithinTrafficMemory is TestStreamsThatAreNotRead with a small max_traffic_memory.
func TestManyStreamsWithinTrafficMemory(t *testing.T) {
	(&hoarding{
		connections: 40, streams: 250, idle: 2 * time.Second, late: 30 * time.Second, settings: "max_traffic_memory: 128MiB",
	}).run(t)
}
