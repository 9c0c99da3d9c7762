package ctl

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
)

// TestForeignListener: ctl says that the address is no admin listener: one with TLS, of gRPC, or one that closes connections.
func TestForeignListener(t *testing.T) {
	t.Parallel()
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secured.StartTLS()
	defer secured.Close()
	listen := func() net.Listener {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return socket
	}
	calls, silent := listen(), listen()
	plain := grpc.NewServer()
	go func() { _ = plain.Serve(calls) }()
	defer plain.Stop()
	defer func() { _ = silent.Close() }()
	go func() { // It reads a request and closes the connection, as a server of gRPC with TLS does.
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_ = conn.Close()
		}
	}()
	for at, want := range map[string]string{
		secured.Listener.Addr().String(): " speaks TLS, and admin.listen speaks plain HTTP: name the admin.listen with --admin",
		calls.Addr().String():            " does not speak HTTP: name the admin.listen with --admin",
		silent.Addr().String():           ": does it speak TLS? admin.listen speaks plain HTTP: name it with --admin",
	} {
		i := Instance{Admin: at}
		if err := i.Status(t.Context(), io.Discard); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want an error that ends with %q", err, want)
		}
	}
}
