package decisions

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is longer than any event that these tests wait for, on a busy machine.
const patience = 30 * time.Second

// running is a service on a real socket, with a client.
type running struct {
	*Service

	server *rpc.Server
	client *grpc.ClientConn
}

// serve serves g on a free port until the end of the test.
func serve(tb testing.TB, g *guard.Guard, o Options) *running {
	tb.Helper()
	return serveWithin(tb, g, o, 256<<20)
}

// serveWithin serves with a bound for the memory of calls, in bytes.
func serveWithin(tb testing.TB, g *guard.Guard, o Options, callMemory int64) *running {
	tb.Helper()
	s := New(g, o)
	server := rpc.New(rpc.Config{
		MaxStreams: 1000, MaxCallMemory: callMemory, HandshakeTimeout: patience, Idle: time.Hour, WriteTimeout: time.Hour,
		Keepalive: time.Hour, KeepaliveTimeout: time.Hour, MaxAge: time.Hour, MaxAgeGrace: time.Hour,
		Services: []func(grpc.ServiceRegistrar){s.Register},
	})
	socket, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(socket) }()
	client, err := grpc.NewClient(socket.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = client.Close()
		at, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
		cancel()
		_ = server.Drain(at)
		if err := <-ended; err != nil {
			tb.Errorf("Serve returns %v", err)
		}
	})
	return &running{s, server, client}
}

// decide makes a unary call.
func (r *running) decide(tb testing.TB, requests ...*headgatev1.Request) ([]*headgatev1.Answer, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	out := new(headgatev1.DecideResponse)
	err := r.client.Invoke(ctx, "/"+Name+"/Decide", &headgatev1.DecideRequest{Requests: requests}, out)
	return out.GetAnswers(), err
}

// open opens a stream.
func (r *running) open(tb testing.TB) *client {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	stream, err := r.client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+Name+"/Stream")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cancel)
	return &client{tb, stream, cancel}
}

// client is the client's end of a stream.
type client struct {
	tb     testing.TB
	stream grpc.ClientStream
	cancel func()
}

func (c *client) send(m *headgatev1.DecideRequest) {
	c.tb.Helper()
	if err := c.stream.SendMsg(m); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *client) receive() *headgatev1.DecideResponse {
	c.tb.Helper()
	out := new(headgatev1.DecideResponse)
	if err := c.stream.RecvMsg(out); err != nil {
		c.tb.Fatal(err)
	}
	return out
}

// requestsFor makes requests for paths.
func requestsFor(paths ...string) []*headgatev1.Request {
	var all []*headgatev1.Request
	for _, path := range paths {
		all = append(all, &headgatev1.Request{Method: "GET", Path: path})
	}
	return all
}
