package rpc

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is longer than any event that these tests wait for, on a busy machine.
const patience = 30 * time.Second

// service is a test service. Call returns the length of its request, and waits for a value of
// release if there is a channel. Large has a response of large bytes. Stream reads nothing, and ends with its context.
// Short sends as many short responses as unread says.
type service struct {
	entered chan struct{}
	release chan struct{}
}

func (s *service) register(r grpc.ServiceRegistrar) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Service", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: s.call}, {MethodName: "Large", Handler: s.large}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Stream", Handler: s.stream, ClientStreams: true, ServerStreams: true},
			{StreamName: "Short", Handler: s.short, ClientStreams: true, ServerStreams: true},
		},
	}, s)
}

func (s *service) call(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // grpc.MethodDesc orders the arguments.
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	if s.release != nil {
		s.entered <- struct{}{}
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return wrapperspb.Int64(int64(len(in.GetValue()))), nil
}

func (s *service) large(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // grpc.MethodDesc orders the arguments.
	if err := decode(new(wrapperspb.BytesValue)); err != nil {
		return nil, err
	}
	encoded, err := proto.Marshal(wrapperspb.Bytes(make([]byte, large)))
	return NewResponse(AccountOf(ctx), encoded), err
}

func (s *service) stream(_ any, stream grpc.ServerStream) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

func (s *service) short(_ any, stream grpc.ServerStream) error {
	backlog := NewBacklog(AccountOf(stream.Context()))
	for range unread {
		r := NewResponse(nil, []byte{8, 0})
		backlog.Add(r)
		if err := stream.SendMsg(r); err != nil {
			return err
		}
	}
	return nil
}

// settings has generous bounds.
func settings(s *service) Config {
	return Config{
		MaxStreams: 100, MaxCallMemory: 256 << 20, HandshakeTimeout: patience, Idle: time.Hour, WriteTimeout: time.Hour,
		Keepalive: time.Hour, KeepaliveTimeout: time.Hour, MaxAge: time.Hour, MaxAgeGrace: time.Hour,
		Services: []func(grpc.ServiceRegistrar){s.register},
	}
}

// running is a server on a real socket.
type running struct {
	*Server

	socket *listen.Listener
	at     string
}

// serve starts a server. It is drained at the end of the test.
func serve(tb testing.TB, c Config, bounds listen.Config) *running {
	tb.Helper()
	bounds.Address = "127.0.0.1:0"
	socket, err := listen.Open(tb.Context(), bounds)
	if err != nil {
		tb.Fatal(err)
	}
	r := &running{New(c), socket, socket.Addr().String()}
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(socket) }()
	tb.Cleanup(func() {
		_ = r.Drain(endedContext())
		if err := <-ended; err != nil {
			tb.Errorf("Serve returns %v", err)
		}
		if n := r.callMemory.Load(); n != 0 {
			tb.Errorf("after the end %d bytes count for calls, want 0", n)
		}
	})
	return r
}

// endedContext is a context that has ended: a drain then closes all connections at once.
func endedContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// dial makes a client. With nil, it uses no TLS.
func dial(tb testing.TB, at string, secured *tls.Config) *grpc.ClientConn {
	tb.Helper()
	creds := insecure.NewCredentials()
	if secured != nil {
		creds = credentials.NewTLS(secured)
	}
	client, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(creds))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// call sends a request of some bytes and returns the length that the service saw.
func call(t *testing.T, client *grpc.ClientConn, bytes int) (int64, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out := new(wrapperspb.Int64Value)
	err := client.Invoke(ctx, "/test.Service/Call", wrapperspb.Bytes(make([]byte, bytes)), out)
	return out.GetValue(), err
}

// connect opens a TCP connection that ends with the test.
func connect(t *testing.T, at string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// eventually polls until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(patience); !ok(); <-again.C {
		if time.Now().After(end) {
			t.Fatalf("%s does not happen", what)
		}
	}
}
