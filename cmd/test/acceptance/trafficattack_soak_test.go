//go:build soak

package acceptance

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate/internal/config"
)

// TestSoakTrafficMemoryAtDefaults: at the default bounds, 15,000 clients connect, and then all send at once what costs the proxy the most.
// The process stays within the bound that check prints.
func TestSoakTrafficMemoryAtDefaults(t *testing.T) {
	ca := newAuthority(t)
	files := ca.issue(t, "proxy.example", 2)
	secured := "tls: {cert: " + files.cert + ", key: " + files.key + "}"
	fields := []byte("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a:b\r\n", 12_000))
	body := append([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"), make([]byte, 200_000)...)
	for _, attack := range []struct {
		name, settings string
		protocol       string // of ALPN
		clients        int
		first, then    []byte
	}{
		{"HTTP1 headers", "", "", 15_000, nil, fields},
		{"HTTP1 headers with a small bound", "max_traffic_memory: 128MiB", "", 15_000, nil, fields},
		{"HTTP2 headers with a small bound", "max_traffic_memory: 128MiB", "", 15_000, []byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"), unfinishedFields(t)[len(http2.ClientPreface)+9:]},
		{"HTTP1 headers after a request", "", "", 15_000, []byte(request("GET / HTTP/1.1", "Host: a")), fields},
		{"TLS and HTTP1 headers", secured, "http/1.1", 15_000, nil, fields},
		{"HTTP2 headers", "", "", 15_000, []byte(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"), unfinishedFields(t)[len(http2.ClientPreface)+9:]},
		// The service is in this process, and has a descriptor for each of up to 16,384 requests too.
		{"HTTP1 bodies", "", "", 8_000, nil, body},
		{"HTTP2 streams and bodies", "", "", 3_000, []byte(http2.ClientPreface), unreadBodies(t, 250)},
		{"TLS and HTTP2 streams and bodies", secured, "h2", 3_000, nil, append([]byte(http2.ClientPreface), unreadBodies(t, 250)...)},
	} {
		t.Run(attack.name, func(t *testing.T) {
			release := make(chan struct{})
			behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					<-release
				}
			}))
			defer behind.Close()
			defer close(release)
			i := start(t, "version: 1\nrules: []\nshutdown_timeout: 2s\nproxy:\n  listen: \"127.0.0.1:0\"\n  read_header_timeout: 5m\n  idle_timeout: 5m\n  "+
				attack.settings+"\n  upstream: \"%s\"\n", behind.URL)
			loaded, err := config.Load(i.path)
			if err != nil {
				t.Fatal(err)
			}
			conns := make(chan net.Conn, attack.clients)
			inParallel(64, attack.clients, func() {
				conn, err := net.DialTimeout("tcp", i.Proxy, patience)
				if err != nil {
					return // The proxy accepts slowly under pressure.
				}
				t.Cleanup(func() { conn.Close() })
				_ = conn.SetDeadline(time.Now().Add(patience))
				if attack.protocol != "" {
					conn = tls.Client(conn, &tls.Config{RootCAs: ca.pool(), ServerName: "proxy.example", NextProtos: []string{attack.protocol}})
					_ = conn.(*tls.Conn).Handshake()
				}
				_, _ = conn.Write(attack.first)
				conns <- conn
			})
			connected := len(conns)
			inParallel(512, connected, func() {
				conn := <-conns
				_ = conn.SetDeadline(time.Now().Add(patience))
				_, _ = conn.Write(attack.then) // fails when the proxy closes the connection
			})
			<-time.After(3 * time.Second) // The proxy reads what was sent last.
			t.Logf("%d connections", connected)
			if connected < attack.clients/2 {
				t.Errorf("only %d of %d clients have connected", connected, attack.clients)
			}
			withinBound(t, i, loaded.MemoryBound())
			eventually(t, "the metrics", func() bool {
				_, metrics := get(t, "http://"+i.Health+"/metrics")
				_, rest, found := strings.Cut(metrics, "\nheadgate_proxy_connections_closed_for_memory_total ")
				closed, _, _ := strings.Cut(rest, "\n")
				t.Logf("closed for memory: %s", closed)
				return found
			})
		})
	}
}

// unreadBodies gives the frames of some requests whose bodies fill the windows.
func unreadBodies(t *testing.T, streams int) []byte {
	t.Helper()
	var sent bytes.Buffer
	framer := http2.NewFramer(&sent, nil)
	err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for n := range streams {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for _, f := range [...][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}, {"content-length", "1000000"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true})
		}
		if err == nil {
			err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*n + 1), BlockFragment: block.Bytes(), EndHeaders: true})
		}
	}
	for n := range min(4, streams) {
		if err == nil {
			err = framer.WriteData(uint32(2*n+1), false, make([]byte, 15<<10))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return sent.Bytes()
}

// TestSoakServerTrafficMemoryAtDefaults is TestServerTrafficMemoryIsBounded at the default bounds, with all connections.
func TestSoakServerTrafficMemoryAtDefaults(t *testing.T) {
	serverAttack{grpc: 4096, http: 1024, resp: 4096}.run(t)
}
