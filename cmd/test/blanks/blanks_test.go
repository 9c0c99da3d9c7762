// Package blanks sends header fields with blanks around their values, which client libraries refuse to send.
package blanks

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/headgate/headgate/cmd/internal/testkit/rawhttp2"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/middleware/httplimit"
)

func TestMain(m *testing.M) { leak.Main(m) }

// values are spellings of one key.
var values = []string{" K", "K", "K ", "\tK", "K\t", " \t K \t "}

// once makes a guard that admits one request for each X-Api-Key.
func once(t *testing.T) *guard.Guard {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\nlog: {decisions: none}\nrules: [{name: once, key: [\"header:X-Api-Key\"], limits: [1/1h]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := open.Guard(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestHTTP: blanks around a value do not change the key. net/http keeps such blanks in HTTP/2.
func TestHTTP(t *testing.T) {
	seen := ""
	limited := httplimit.New(once(t), httplimit.Options{})
	server := httptest.NewUnstartedServer(limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("X-Api-Key") })))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	for n, value := range values {
		got := rawhttp2.Send(t, server.Listener.Addr().String(), nil,
			":method", "GET", ":scheme", "http", ":path", "/x", ":authority", "a", "x-api-key", value)
		if want := map[bool]string{true: "200", false: "429"}[n == 0]; got[":status"] != want {
			t.Errorf("%q: got response %v, want status %s", value, got, want)
		}
	}
	if seen != " K" {
		t.Errorf("the handler sees %q: the server already trims, so this test proves nothing", seen)
	}
}

// service counts its calls.
type service struct {
	testgrpc.UnimplementedTestServiceServer

	calls atomic.Int64
}

// EmptyCall implements the service.
func (s *service) EmptyCall(context.Context, *testgrpc.Empty) (*testgrpc.Empty, error) {
	s.calls.Add(1)
	return &testgrpc.Empty{}, nil
}

// TestGRPC: blanks around a metadata value do not change the key. grpc-go keeps such blanks.
func TestGRPC(t *testing.T) {
	behind, server := new(service), grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(once(t), grpclimit.Options{})))
	testgrpc.RegisterTestServiceServer(server, behind)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	for n, value := range values {
		got := rawhttp2.Send(t, listener.Addr().String(), make([]byte, 5), ":method", "POST", ":scheme", "http",
			":path", testgrpc.TestService_EmptyCall_FullMethodName,
			":authority", "a", "content-type", "application/grpc", "te", "trailers", "x-api-key", value)
		if want := map[bool]string{true: "0", false: "8"}[n == 0]; got["grpc-status"] != want { // 8 is RESOURCE_EXHAUSTED.
			t.Errorf("%q: got response %v, want grpc-status %s", value, got, want)
		}
	}
	if n := behind.calls.Load(); n != 1 {
		t.Errorf("the service saw %d calls, want 1", n)
	}
}
