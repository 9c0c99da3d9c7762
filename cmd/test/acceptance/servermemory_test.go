package acceptance

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/internal/config"
)

// serverAttack is what clients send to the listeners of headgate server. Each number is that of the connections.
type serverAttack struct {
	grpc, http, resp int
	settings         string
}

const attackedServer = `version: 1
rules: []
max_memory: 16MiB
server:
  grpc: {address: "127.0.0.1:0", write_timeout: 5m}
  http: "127.0.0.1:0"
  resp: "127.0.0.1:0"
  %s
`

// TestServerTrafficMemoryIsBounded: clients of all listeners send what costs the server several times max_traffic_memory. The process
// stays within the bound that check prints, the costliest connections are closed, and another client is served meanwhile.
func TestServerTrafficMemoryIsBounded(t *testing.T) {
	serverAttack{grpc: 2800, http: 1000, resp: 4096, settings: "max_traffic_memory: 128MiB"}.run(t)
}

func (a serverAttack) run(t *testing.T) {
	t.Helper()
	i := launchServer(t, file(t, fmt.Sprintf(attackedServer, a.settings)+adminAnywhere))
	loaded, err := config.Load(i.path)
	if err != nil {
		t.Fatal(err)
	}
	header := []byte("GET /healthcheck HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:b\r\n", 3200)) // 24 bytes for each byte.
	command := []byte("*2\r\n$4\r\nPING\r\n$65000\r\n" + strings.Repeat("x", 60<<10))
	calls := unfinishedCalls(t, 250)
	var all sync.WaitGroup
	for _, l := range []struct {
		at          string
		connections int
		sent        []byte
	}{{i.GRPC, a.grpc, calls}, {i.HTTP, a.http, header}, {i.RESP, a.resp, command}} {
		all.Go(func() { hoard(t, l.at, l.connections, l.sent) })
	}
	all.Wait()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 4 * patience}
	slowest := time.Duration(0)
	for range 20 {
		began := time.Now()
		resp, err := client.Get("http://" + i.HTTP + "/v1/decide")
		slowest = max(slowest, time.Since(began))
		if err != nil || resp.StatusCode >= http.StatusInternalServerError {
			t.Fatalf("another client: %v, %v", resp, err)
		}
		_ = resp.Body.Close()
	}
	t.Logf("another client waited %v at most", slowest)
	withinBound(t, i, loaded.ServerMemoryBound())
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	_, rest, _ := strings.Cut(metrics, "\nheadgate_server_connections_closed_for_memory_total ")
	closed, _, _ := strings.Cut(rest, "\n")
	t.Logf("closed for memory: %s", closed)
	if a.settings != "" && (closed == "" || closed == "0" || !strings.Contains(i.text(), "connections were closed because memory is near its bound")) {
		t.Errorf("no connection was closed, or the log does not say so: %s", i.text())
	}
}

// hoard opens connections at once, and then sends on all of them. They stay open until the end of the test.
func hoard(t *testing.T, at string, connections int, sent []byte) {
	t.Helper()
	conns := make(chan net.Conn, connections)
	inParallel(32, connections, func() {
		conn, err := net.DialTimeout("tcp", at, patience)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { conn.Close() })
		conns <- conn
	})
	inParallel(128, len(conns), func() {
		conn := <-conns
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = conn.Write(sent) // fails when the server closes the connection
	})
}

// inParallel calls f many times from some goroutines.
func inParallel(goroutines, times int, f func()) {
	todo := make(chan struct{}, times)
	for range times {
		todo <- struct{}{}
	}
	close(todo)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range todo {
				f()
			}
		})
	}
	all.Wait()
}

// unfinishedCalls gives a connection of gRPC with calls whose messages do not end.
func unfinishedCalls(t *testing.T, calls int) []byte {
	t.Helper()
	var sent, block bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer, encoder := http2.NewFramer(&sent, nil), hpack.NewEncoder(&block)
	err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for n := range calls {
		block.Reset()
		for _, f := range [...][2]string{
			{":method", "POST"},
			{":scheme", "http"},
			{":authority", "a"},
			{":path", "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"},
			{"content-type", "application/grpc"},
			{"te", "trailers"},
			{"x-filler", strings.Repeat("f", 4<<10)},
		} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		stream := uint32(2*n + 1)
		if err == nil {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
		}
		if err == nil {
			err = framer.WriteData(stream, false, []byte{0, 0, 1, 0, 0, 'a'})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return sent.Bytes()
}
