package client_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	client "github.com/headgate/headgate/client/lease"
)

// TestMismatch: a lease says what to set when the server speaks TLS and the client does not, and the reverse.
func TestMismatch(t *testing.T) {
	t.Parallel()
	secured := httptest.NewTLSServer(http.NotFoundHandler())
	defer secured.Close()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain := grpc.NewServer()
	go func() { _ = plain.Serve(socket) }()
	defer plain.Stop()
	for _, row := range []struct {
		what, at string
		tls      *tls.Config
		want     string
	}{
		{"plain to TLS", secured.Listener.Addr().String(), nil, "does the server speak TLS? If it does, set Config.TLS (lease.tls in a"},
		{"TLS to plain", socket.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12}, "speaks no TLS: remove Config.TLS (lease.tls in a"},
		{"gRPC to HTTP", open.Listener.Addr().String(), nil, "this is a listener of HTTP: give the address of the gRPC listener"},
	} {
		k, err := client.New(client.Config{Servers: []string{row.at}, TLS: row.tls})
		if err != nil {
			t.Fatal(err)
		}
		l := lease(t, k, "db/a")
		for began := time.Now(); !strings.Contains(l.State().Fault, row.want); <-time.After(time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Errorf("%s: the fault is %q, want %q", row.what, l.State().Fault, row.want)
				break
			}
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
