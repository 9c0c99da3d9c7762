package front

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/internal/lease/state"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// longest is longer than any event that these tests wait for, on a busy machine.
const longest = 30 * time.Second

// name makes the name of a holder that is long enough.
func name(short string) string { return short + strings.Repeat("-", leastHolder-len(short)) }

// clock makes a clock that begins at 0.
func clock() func() headgate.Instant {
	start := time.Now()
	return func() headgate.Instant { return headgate.Instant(time.Since(start)) }
}

// root is the configuration of a root with 100 units a second for each resource db/*, and 2 slots for slots/*.
func root() state.Config {
	return state.Config{
		Resources: []state.Resource{
			{Match: "db/*", Capacity: 100_000, Algorithm: state.MaxMin, Safe: 1000},
			{Match: "slots/*", Capacity: 2, Algorithm: state.MaxMin, Slots: true},
		},
		Callers: map[string]state.Caller{"": {Server: true}},
		Lease:   30 * time.Second, Refresh: 5 * time.Second, Term: 1,
	}
}

// serviceOf makes a service until the end of the test.
func serviceOf(tb testing.TB, o Options) *Service {
	tb.Helper()
	if o.Now == nil {
		o.Now = clock()
	}
	s, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// running is a service on a real socket, with a client.
type running struct {
	*Service

	at     string
	client *grpc.ClientConn
}

// serve serves on a free port until the end of the test.
func serve(tb testing.TB, o Options) *running {
	tb.Helper()
	s := serviceOf(tb, o)
	server := rpc.New(rpc.Config{
		MaxStreams: 1000, MaxCallMemory: 256 << 20, HandshakeTimeout: longest, Idle: time.Hour, WriteTimeout: time.Hour,
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
	return &running{s, socket.Addr().String(), client}
}

// report makes a unary call.
func (r *running) report(tb testing.TB, m *leasev1.ReportRequest) (*leasev1.ReportResponse, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), longest)
	defer cancel()
	out := new(leasev1.ReportResponse)
	return out, r.client.Invoke(ctx, "/"+Name+"/Report", m, out)
}

// open opens a stream.
func (r *running) open(tb testing.TB) *client {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), longest)
	stream, err := r.client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+Name+"/Stream")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cancel)
	return &client{tb, stream}
}

// client is the client's end of a stream.
type client struct {
	tb     testing.TB
	stream grpc.ClientStream
}

func (c *client) send(m *leasev1.ReportRequest) {
	c.tb.Helper()
	if err := c.stream.SendMsg(m); err != nil {
		c.tb.Fatal(err)
	}
}

func (c *client) receive() *leasev1.ReportResponse {
	c.tb.Helper()
	out := new(leasev1.ReportResponse)
	if err := c.stream.RecvMsg(out); err != nil {
		c.tb.Fatal(err)
	}
	return out
}

// until waits for a condition.
func until(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for end := time.Now().Add(longest); !done(); {
		if time.Now().After(end) {
			tb.Fatalf("waiting for %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// claims is a report with claims of one amount.
func claims(holder string, seq uint64, wants int64, resources ...string) *leasev1.ReportRequest {
	m := &leasev1.ReportRequest{Holder: name(holder), Seq: seq}
	for _, resource := range resources {
		m.Claims = append(m.Claims, &leasev1.Claim{Resource: resource, Wants: wants})
	}
	return m
}
