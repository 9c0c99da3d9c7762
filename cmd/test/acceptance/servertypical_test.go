package acceptance

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/headgate/headgate/internal/config"
)

// TestTypicalMemoryOfTheServer: what check prints as typical for headgate server is at most four times too high, and not too low.
func TestTypicalMemoryOfTheServer(t *testing.T) {
	process, grpc, http, resp, secured, call := config.ServerTypicalMemory()
	const many = 1000
	ca := newAuthority(t)
	files := ca.issue(t, "server.example", 2)
	key := "{cert: " + files.cert + ", key: " + files.key + "}"
	get := request("GET /healthcheck HTTP/1.1", "Host: a")
	preface := http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	calls := string(unfinishedCalls(t, 20))
	for _, row := range []struct {
		name     string
		typical  int64
		at       func(*instance) string
		protocol string // of ALPN; "" without TLS
		sent     string
	}{
		{"a gRPC connection", grpc, func(i *instance) string { return i.GRPC }, "", preface},
		{"a gRPC connection with TLS", grpc + secured, func(i *instance) string { return i.GRPC }, "h2", preface},
		{"a gRPC connection with 20 calls", grpc + 20*call, func(i *instance) string { return i.GRPC }, "", calls},
		{"an HTTP connection", http, func(i *instance) string { return i.HTTP }, "", get},
		{"an HTTP connection with TLS", http + secured, func(i *instance) string { return i.HTTP }, "http/1.1", get},
		{"a Redis connection", resp, func(i *instance) string { return i.RESP }, "", "PING\r\n"},
		{"a Redis connection with TLS", resp + secured, func(i *instance) string { return i.RESP }, "any", "PING\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tlsText := ""
			if row.protocol != "" {
				tlsText = ", tls: " + key
			}
			i := launchServer(t, file(t, fmt.Sprintf("version: 1\nrules: []\nmax_memory: 16MiB\nserver:\n  grpc: {address: '127.0.0.1:0'%s}\n"+
				"  http: {address: '127.0.0.1:0'%s}\n  resp: {address: '127.0.0.1:0'%s}\n", tlsText, tlsText, tlsText)+adminAnywhere))
			before := residentMemory(t, i.command.Process.Pid, "VmRSS:")
			inParallel(16, many, func() {
				conn, err := net.DialTimeout("tcp", row.at(i), patience)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { conn.Close() })
				_ = conn.SetDeadline(time.Now().Add(patience))
				if row.protocol != "" {
					asked := &tls.Config{RootCAs: ca.pool(), ServerName: "server.example"}
					if row.protocol != "any" {
						asked.NextProtos = []string{row.protocol}
					}
					conn = tls.Client(conn, asked)
				}
				_, _ = io.WriteString(conn, row.sent)
				if n, err := conn.Read(make([]byte, 512)); n == 0 {
					t.Error(err)
				}
			})
			used := residentMemory(t, i.command.Process.Pid, "VmRSS:")
			printed := process + many*row.typical
			t.Logf("%d MiB without traffic, and %d MiB with %d times %s: %d KiB each; %d MiB are printed",
				before>>20, used>>20, many, row.name, (used-before)/many>>10, printed>>20)
			if used > printed || used-before < many*row.typical/4 {
				t.Errorf("%d times %s: %d MiB, %d MiB without them, and %d MiB are printed", many, row.name, used>>20, before>>20, printed>>20)
			}
		})
	}
}
