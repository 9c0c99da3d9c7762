package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/testkit/redis"
)

func TestCall(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	client := dial(t, r.at, nil)
	for _, bytes := range []int{0, 1, 100_000, MaxMessage - 100} {
		if got, err := call(t, client, bytes); err != nil || got != int64(bytes) {
			t.Errorf("a request of %d bytes: got %d, %v", bytes, got, err)
		}
	}
	if _, err := call(t, client, MaxMessage+1); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request above MaxMessage: got %v, want RESOURCE_EXHAUSTED", err)
	}
	eventually(t, "the end of all unfinished requests", func() bool { return r.Stats().CallMemory == 0 })
	for _, c := range r.open() {
		if !c.isReady() {
			t.Error("a connection with calls counts as one in its handshakes: grpc-go no longer removes the deadline after them")
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCertificatesAreReloaded: new connections get the newest certificate, and the open connection
// stays.
func TestCertificatesAreReloaded(t *testing.T) {
	old, fresh := redis.NewCertificates(t), redis.NewCertificates(t)
	files, err := certs.NewServer(certs.ServerConfig{Cert: old.CertFile, Key: old.KeyFile})
	if err != nil {
		t.Fatal(err)
	}
	c := settings(&service{})
	c.TLS = files.Config()
	r := serve(t, c, listen.Config{})
	first := dial(t, r.at, old.Client)
	if _, err := call(t, first, 5); err != nil {
		t.Fatal(err)
	}
	copyFile(t, fresh.CertFile, old.CertFile)
	copyFile(t, fresh.KeyFile, old.KeyFile)
	if err := files.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, dial(t, r.at, fresh.Client), 5); err != nil {
		t.Errorf("a client of the new certificate: %v", err)
	}
	if _, err := call(t, dial(t, r.at, old.Client), 5); status.Code(err) != codes.Unavailable {
		t.Errorf("a client of the old certificate: got %v, want UNAVAILABLE", err)
	}
	if _, err := call(t, first, 5); err != nil {
		t.Errorf("the open connection: %v", err)
	}
}

// TestClientsNeedACertificate checks mTLS.
func TestClientsNeedACertificate(t *testing.T) {
	own, other := redis.NewCertificates(t), redis.NewCertificates(t)
	files, err := certs.NewServer(certs.ServerConfig{Cert: own.CertFile, Key: own.KeyFile, ClientCA: own.CAFile, Require: true})
	if err != nil {
		t.Fatal(err)
	}
	c := settings(&service{})
	c.TLS = files.Config()
	r := serve(t, c, listen.Config{})
	without, foreign := own.Client.Clone(), own.Client.Clone()
	without.Certificates, foreign.Certificates = nil, other.Client.Certificates
	for name, row := range map[string]struct {
		config *tls.Config
		want   codes.Code
	}{
		"its certificate": {own.Client, codes.OK}, "no certificate": {without, codes.Unavailable},
		"a foreign certificate": {foreign, codes.Unavailable}, "no TLS": {nil, codes.Unavailable},
	} {
		if _, err := call(t, dial(t, r.at, row.config), 5); status.Code(err) != row.want {
			t.Errorf("a client with %s: got %v, want %v", name, err, row.want)
		}
	}
}

// TestSilentConnectionsEnd: a connection without a preface is closed after HandshakeTimeout.
func TestSilentConnectionsEnd(t *testing.T) {
	c := settings(&service{})
	c.HandshakeTimeout = 50 * time.Millisecond
	r := serve(t, c, listen.Config{})
	for _, text := range []string{"", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\n\r\n"} {
		conn := connect(t, r.at)
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q the connection stays open", text)
		}
	}
	eventually(t, "the end of all connections", func() bool { return len(r.open()) == 0 && r.socket.Stats().Open == 0 })
}

// TestConnectionsAreBounded: at the bound, a silent connection gives way to a client. A client
// with a call in flight stays.
func TestConnectionsAreBounded(t *testing.T) {
	s := &service{entered: make(chan struct{}, 9), release: make(chan struct{})}
	r := serve(t, settings(s), listen.Config{MaxConnections: 2})
	first := dial(t, r.at, nil)
	answered := make(chan error, 2)
	go func() {
		_, err := call(t, first, 5)
		answered <- err
	}()
	<-s.entered
	silent := connect(t, r.at)
	eventually(t, "the second connection", func() bool { return r.socket.Stats().Open == 2 })
	second := dial(t, r.at, nil)
	go func() {
		_, err := call(t, second, 5)
		answered <- err
	}()
	<-s.entered
	if _, err := io.Copy(io.Discard, silent); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the silent connection stays open at the bound")
	}
	if n := r.socket.Stats().Open; n > 2 {
		t.Errorf("%d connections are open, want at most 2", n)
	}
	for range 2 {
		s.release <- struct{}{}
		if err := <-answered; err != nil {
			t.Errorf("a call at the bound: %v", err)
		}
	}
}

// TestAddressesAreBounded: connections beyond the bound of their address are closed.
func TestAddressesAreBounded(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{PerAddress: 1})
	client := dial(t, r.at, nil)
	if _, err := call(t, client, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, connect(t, r.at)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the second connection of the address stays open")
	}
	if _, err := call(t, client, 5); err != nil {
		t.Errorf("the first connection of the address: %v", err)
	}
}

// TestDrainAnswersCallsInFlight: Drain waits for a call, also beside a connection that never
// speaks, and a stream that watches the health.
func TestDrainAnswersCallsInFlight(t *testing.T) {
	s := &service{entered: make(chan struct{}), release: make(chan struct{})}
	r := serve(t, settings(s), listen.Config{})
	r.SetServing("ratelimit", true)
	client := dial(t, r.at, nil)
	answered := make(chan error, 1)
	go func() {
		_, err := call(t, client, 5)
		answered <- err
	}()
	<-s.entered
	connect(t, r.at) // It never speaks.
	eventually(t, "both connections", func() bool { return len(r.open()) == 2 })
	watching := map[string]grpc.ServerStreamingClient[healthpb.HealthCheckResponse]{}
	for _, name := range []string{"", "ratelimit", "unknown"} {
		watching[name] = watch(t, client, name)
	}
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(t.Context()) }()
	for name, stream := range watching {
		checkEndOfWatch(t, name, stream)
	}
	select {
	case err := <-drained:
		t.Fatalf("Drain returns %v while a call is in flight", err)
	default:
	}
	if conn, err := net.Dial("tcp", r.at); err == nil {
		_, err = io.Copy(io.Discard, conn)
		conn.Close()
		if err != nil {
			t.Logf("a connection during the drain ends with %v", err)
		}
	}
	s.release <- struct{}{}
	if err := <-answered; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-drained; err != nil {
		t.Errorf("Drain returns %v", err)
	}
}

func watch(t *testing.T, client *grpc.ClientConn, name string) grpc.ServerStreamingClient[healthpb.HealthCheckResponse] {
	t.Helper()
	stream, err := healthpb.NewHealthClient(client).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: name})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	want := healthpb.HealthCheckResponse_SERVING
	if name == "unknown" {
		want = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
	}
	if err != nil || first.GetStatus() != want {
		t.Fatalf("%q: the first status is %v, %v", name, first, err)
	}
	return stream
}

// checkEndOfWatch: a client that was told SERVING is told NOT_SERVING before its stream ends.
func checkEndOfWatch(t *testing.T, name string, stream grpc.ServerStreamingClient[healthpb.HealthCheckResponse]) {
	t.Helper()
	var last healthpb.HealthCheckResponse_ServingStatus
	for {
		update, err := stream.Recv()
		if err != nil {
			break
		}
		last = update.GetStatus()
	}
	if last != healthpb.HealthCheckResponse_NOT_SERVING && name != "unknown" {
		t.Errorf("%q: the last status is %v, want NOT_SERVING", name, last)
	}
}

// TestDrainEndsAtItsDeadline: a stream that its client never ends is cut off.
func TestDrainEndsAtItsDeadline(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	client := dial(t, r.at, nil)
	stream, err := client.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Service/Stream")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection", func() bool { return len(r.open()) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Drain returns %v, want its deadline", err)
	}
	if err := stream.RecvMsg(nil); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ends with %v, want UNAVAILABLE", err)
	}
}

// TestDrainWithoutServe ends a server that never served.
func TestDrainWithoutServe(t *testing.T) {
	if err := New(settings(&service{})).Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHealth checks the states of both names.
func TestHealth(t *testing.T) {
	r := serve(t, settings(&service{}), listen.Config{})
	client := healthpb.NewHealthClient(dial(t, r.at, nil))
	check := func(name string) (healthpb.HealthCheckResponse_ServingStatus, error) {
		answer, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		return answer.GetStatus(), err
	}
	if got, err := check(""); err != nil || got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the empty name: got %v, %v", got, err)
	}
	if _, err := check("ratelimit"); status.Code(err) != codes.NotFound {
		t.Errorf("a name that was not set: got %v, want NOT_FOUND", err)
	}
	long := healthpb.HealthCheckRequest{Service: strings.Repeat("a", maxName+1)}
	stream, err := client.Watch(t.Context(), &long)
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a watch of a long name: got %v, want INVALID_ARGUMENT", err)
	}
	for _, serving := range []bool{false, true} {
		r.SetServing("ratelimit", serving)
		got, err := check("ratelimit")
		if err != nil || (got == healthpb.HealthCheckResponse_SERVING) != serving {
			t.Errorf("after SetServing(%v): got %v, %v", serving, got, err)
		}
	}
}
