package ctl

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/internal/testkit/redis"
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
		secured.Listener.Addr().String(): " speaks TLS: write https:// before the address if it is an admin.listen with admin.tls, or name the admin.listen with --admin",
		calls.Addr().String():            " does not speak HTTP: name the admin.listen with --admin",
		silent.Addr().String():           ": does it speak TLS? write https:// for an admin.listen with admin.tls, or name the admin.listen with --admin",
	} {
		i := Instance{Admin: at}
		if err := i.Status(t.Context(), io.Discard); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want an error that ends with %q", err, want)
		}
	}
}

// TestSchemes: an admin.listen with TLS is reached by https with its authority. Every mismatch says what to write.
func TestSchemes(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	secured, plain := httptest.NewUnstartedServer(handler), httptest.NewServer(handler)
	secured.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secured.StartTLS()
	defer secured.Close()
	defer plain.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	other := redis.NewCertificates(t).CAFile
	_, port, _ := net.SplitHostPort(secured.Listener.Addr().String())
	for _, row := range []struct{ admin, ca, problem string }{
		{secured.URL, ca, ""},
		{secured.URL + "/", ca, ""},
		{plain.URL, "", ""},
		{secured.URL, "", "unknown authority: name the PEM file of its authority with --ca"},
		{secured.URL, other, "unknown authority: name the PEM file of its authority with --ca"},
		{"https://localhost:" + port, ca, "use a name of the certificate with --admin"},
		{secured.URL, ca + ".none", "--ca: "},
		{secured.URL, os.DevNull, "--ca: "},
		{"https" + strings.TrimPrefix(plain.URL, "http"), ca, "speaks plain HTTP: write http://"},
		{"http" + strings.TrimPrefix(secured.URL, "https"), "", "speaks TLS: write https://"},
		{plain.URL, ca, "--ca has no effect"},
		{"https://localhost", ca, "is not an address"},
	} {
		i := Instance{Admin: row.admin, CA: row.ca, JSON: true}
		err := i.Status(t.Context(), io.Discard)
		if (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s with the authority %q: %v, want %q", row.admin, row.ca, err, row.problem)
		}
	}
}
