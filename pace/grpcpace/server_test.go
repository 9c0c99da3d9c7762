package grpcpace_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/grpcpace"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// service answers all that it is asked.
type service struct {
	testgrpc.UnimplementedTestServiceServer
}

func (*service) EmptyCall(context.Context, *testgrpc.Empty) (*testgrpc.Empty, error) {
	return &testgrpc.Empty{}, nil
}

func (*service) FullDuplexCall(both testgrpc.TestService_FullDuplexCallServer) error {
	for {
		if _, err := both.Recv(); err != nil {
			return nil //nolint:nilerr // The client has said all.
		}
		if err := both.Send(&testgrpc.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

func (*service) StreamingInputCall(from testgrpc.TestService_StreamingInputCallServer) error {
	for n := int32(0); ; n++ {
		if _, err := from.Recv(); errors.Is(err, io.EOF) {
			return from.SendAndClose(&testgrpc.StreamingInputCallResponse{AggregatedPayloadSize: n})
		} else if err != nil {
			return err
		}
	}
}

// serve starts a server that our own middleware limits, and gives a client of it that
// keeps to what paced says.
func serve(t *testing.T, policy headgate.Policy, soft int, paced *grpcpace.Pacing) testgrpc.TestServiceClient {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule: rule.Rule{Name: "calls", Key: []rule.Part{all}}, Policies: []headgate.Policy{policy}, Soft: soft,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})), grpc.ChainStreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
	)
	testgrpc.RegisterTestServiceServer(s, &service{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	cc, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(paced.Unary), grpc.WithChainStreamInterceptor(paced.Stream))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cc.Close(); err != nil {
			t.Error(err)
		}
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return testgrpc.NewTestServiceClient(cc)
}

// A real server that bears less than its client was told: once it has refused
// something, it refuses nearly nothing more.
func TestRealServer(t *testing.T) {
	paced := pacing(t, pacerOf(t, "mail", 100, time.Second), grpcpace.Config{})
	policy := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 90, Per: time.Second}}
	client := serve(t, policy, 0, paced)

	learning, learned := context.WithTimeout(t.Context(), time.Minute)
	defer learned()
	if _, refused := saturate(learning, t, client, learned); refused == 0 {
		t.Fatalf("nothing was refused in a minute, so that nothing was learned: %+v", paced.Stats())
	}
	before := paced.Stats()
	served, refused := saturate(within(t, 4500*time.Millisecond), t, client, func() {})
	t.Logf("until it had learned: %+v; then: %+v", before, paced.Stats())
	if served == 0 || refused > served/20 {
		t.Errorf("after it has learned, %d were served and %d refused", served, refused)
	}
}

// saturate calls without a pause until ctx ends, and tells of each refusal.
func saturate(ctx context.Context, t *testing.T, client testgrpc.TestServiceClient, refusal func()) (served, refused int64) {
	t.Helper()
	var yes, no atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for {
				_, err := client.EmptyCall(ctx, &testgrpc.Empty{})
				switch code := status.Code(err); {
				case errors.Is(err, pace.ErrTimeout):
					return // No permit comes before the end.
				case code == codes.ResourceExhausted:
					no.Add(1)
					refusal()
				case ctx.Err() != nil || code == codes.DeadlineExceeded || code == codes.Canceled:
					return // The connection may see the end before we do.
				case err != nil:
					t.Error(err)
					return
				default:
					yes.Add(1)
				}
			}
		})
	}
	all.Wait()
	return yes.Load(), no.Load()
}

// Over a real connection: what a stream is told in its header, in its trailer and by
// the status of a refusal.
func TestRealStreams(t *testing.T) {
	p := pacerOf(t, "mail", 1000, time.Second)
	paced := pacing(t, p, grpcpace.Config{PerMessage: true})
	policy := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 3, Per: 1000 * time.Hour}}
	client := serve(t, policy, 50, paced)
	ctx := within(t, time.Minute)

	upload, err := client.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := upload.Send(&testgrpc.StreamingInputCallRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := upload.CloseAndRecv(); err != nil || got.GetAggregatedPayloadSize() != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if s := paced.Stats()[0]; s.Sent != 3 || s.Heard != 1 || p.Stats().Acquired != 3 {
		t.Errorf("counted %+v; %d permits", s, p.Stats().Acquired)
	}

	chat, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := chat.Send(&testgrpc.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chat.Recv(); err != nil {
		t.Fatal(err)
	}
	if s := paced.Stats()[0]; s.Warned != 1 { // Two of three are more than half.
		t.Errorf("counted %+v", s)
	}
	if err := chat.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := chat.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}

	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		_, err := client.EmptyCall(ctx, &testgrpc.Empty{})
		if status.Code(err) != want {
			t.Fatalf("%v, want %v", err, want)
		}
		if want == codes.OK {
			continue
		}
		if s := p.Stats(); s.BrakedTo != 0 || time.Until(s.BrakedUntil) < 50*time.Minute {
			t.Errorf("the pacer gives %d percent until %v", s.BrakedTo, s.BrakedUntil)
		}
	}
}
