package acceptance

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/config"
)

// TestTrafficMemoryIsBounded: clients send what costs the proxy several times max_traffic_memory. The process stays within the bound that
// check prints, the costliest connections are closed, and another client is served meanwhile.
func TestTrafficMemoryIsBounded(t *testing.T) {
	for _, attack := range []struct {
		name        string
		connections int
		sent        []byte
	}{
		// 24 bytes for each byte of short fields.
		{"headers of HTTP/1 that do not end", 6000, []byte("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:b\r\n", 800))},
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
			todo := make(chan struct{}, attack.connections)
			for range attack.connections {
				todo <- struct{}{}
			}
			close(todo)
			var sending sync.WaitGroup
			for range 32 {
				sending.Go(func() {
					for range todo {
						conn, err := net.DialTimeout("tcp", i.Proxy, patience)
						if err != nil {
							t.Error(err)
							return
						}
						t.Cleanup(func() { conn.Close() })
						_ = conn.SetWriteDeadline(time.Now().Add(patience))
						_, _ = conn.Write(attack.sent) // fails when the proxy closes the connection
					}
				})
			}
			sending.Wait()
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
			_, metrics := get(t, "http://"+i.Health+"/metrics")
			if strings.Contains(metrics, "\nheadgate_proxy_connections_closed_for_memory_total 0\n") ||
				!strings.Contains(i.text(), "connections were closed because memory is near its bound") {
				t.Errorf("no connection was closed, or the log does not say so: %s", i.text())
			}
		})
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
