package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/guard/report"
)

// calls is a gRPC service. It counts the calls that are open.
type calls struct {
	grpc_testing.UnimplementedTestServiceServer

	open atomic.Int64
}

// UnaryCall echoes a payload and the metadata. With a status, it fails. Without a payload, it waits for its end.
func (c *calls) UnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	c.open.Add(1)
	defer c.open.Add(-1)
	sent, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-header", sent.Get("x-call")[0]))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-trailer-bin", "\x00"+sent.Get("x-call")[0]))
	if s := r.GetResponseStatus(); s != nil {
		return nil, status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	if r.GetPayload() == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &grpc_testing.SimpleResponse{Payload: r.GetPayload()}, nil
}

// StreamingInputCall adds the sizes of all messages, after the client has closed its side.
func (c *calls) StreamingInputCall(from grpc.ClientStreamingServer[grpc_testing.StreamingInputCallRequest, grpc_testing.StreamingInputCallResponse]) error {
	c.open.Add(1)
	defer c.open.Add(-1)
	sum := int32(0)
	for {
		message, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return from.SendAndClose(&grpc_testing.StreamingInputCallResponse{AggregatedPayloadSize: sum}) //nolint:wrapcheck // for gRPC
		}
		if err != nil {
			return err //nolint:wrapcheck // for gRPC
		}
		sum += int32(len(message.GetPayload().GetBody()))
	}
}

// FullDuplexCall answers each message, until the client closes its side or leaves.
func (c *calls) FullDuplexCall(with grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) error {
	c.open.Add(1)
	defer c.open.Add(-1)
	for {
		message, err := with.Recv()
		if errors.Is(err, io.EOF) {
			with.SetTrailer(metadata.Pairs("x-end", "1"))
			return nil
		}
		if err != nil {
			return err //nolint:wrapcheck // for gRPC
		}
		if err := with.Send(&grpc_testing.StreamingOutputCallResponse{Payload: message.GetPayload()}); err != nil {
			return err //nolint:wrapcheck // for gRPC
		}
	}
}

// kindsOfCalls are the ways in which a call goes, and what is wrong with it.
var kindsOfCalls = []func(ctx context.Context, to grpc_testing.TestServiceClient, name string) error{
	echoed, failedCall, expired, canceledCall, uploaded, conversed, leftStream, largeCall,
}

func bodyOf(name string, size int) *grpc_testing.Payload {
	return &grpc_testing.Payload{Body: append([]byte(name), make([]byte, size)...)}
}

func echoed(ctx context.Context, to grpc_testing.TestServiceClient, name string) error {
	return roundTrip(ctx, to, name, 10)
}

func largeCall(ctx context.Context, to grpc_testing.TestServiceClient, name string) error {
	return roundTrip(ctx, to, name, 200<<10) // More than each window.
}

func roundTrip(ctx context.Context, to grpc_testing.TestServiceClient, name string, size int) error {
	var header, trailer metadata.MD
	answer, err := to.UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: bodyOf(name, size)}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil {
		return err //nolint:wrapcheck // for the test
	}
	if got := answer.GetPayload().GetBody(); len(got) != len(name)+size || string(got[:len(name)]) != name {
		return fmt.Errorf("the answer has %d bytes: %.20q", len(got), got)
	}
	if fmt.Sprint(header.Get("x-header"), trailer.Get("x-trailer-bin")) != fmt.Sprint([]string{name}, []string{"\x00" + name}) {
		return fmt.Errorf("the metadata are %v and %v", header, trailer)
	}
	return nil
}

func wantCode(err error, want codes.Code) error {
	if got := status.Code(err); got != want {
		return fmt.Errorf("got %v (%w), want %v", got, err, want)
	}
	return nil
}

func failedCall(ctx context.Context, to grpc_testing.TestServiceClient, _ string) error {
	_, err := to.UnaryCall(ctx, &grpc_testing.SimpleRequest{ResponseStatus: &grpc_testing.EchoStatus{Code: int32(codes.DataLoss), Message: "lost: ä"}})
	if status.Convert(err).Message() != "lost: ä" {
		return fmt.Errorf("the message is %q", status.Convert(err).Message())
	}
	return wantCode(err, codes.DataLoss)
}

func expired(ctx context.Context, to grpc_testing.TestServiceClient, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond) // The service waits until then, however late it is.
	defer cancel()
	_, err := to.UnaryCall(ctx, &grpc_testing.SimpleRequest{})
	if status.Code(err) == codes.Unavailable {
		return nil // The service, which has the same deadline, has reset the call first, and the proxy has answered 502.
	}
	return wantCode(err, codes.DeadlineExceeded)
}

func canceledCall(ctx context.Context, to grpc_testing.TestServiceClient, _ string) error {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(5*time.Millisecond, cancel)
	_, err := to.UnaryCall(ctx, &grpc_testing.SimpleRequest{})
	return wantCode(err, codes.Canceled)
}

func uploaded(ctx context.Context, to grpc_testing.TestServiceClient, name string) error {
	stream, err := to.StreamingInputCall(ctx)
	if err != nil {
		return err //nolint:wrapcheck // for the test
	}
	const messages, size = 5, 3000
	for range messages {
		if err := stream.Send(&grpc_testing.StreamingInputCallRequest{Payload: bodyOf(name, size)}); err != nil {
			return err //nolint:wrapcheck // for the test
		}
	}
	answer, err := stream.CloseAndRecv()
	if want := int32(messages * (size + len(name))); err != nil || answer.GetAggregatedPayloadSize() != want {
		return fmt.Errorf("the service read %d bytes, want %d: %w", answer.GetAggregatedPayloadSize(), want, err)
	}
	return nil
}

// exchangeMessages sends messages, each after the answer to the one before.
func exchangeMessages(stream grpc.BidiStreamingClient[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse], name string) error {
	for n := range 4 {
		text := name + " " + strconv.Itoa(n)
		if err := stream.Send(&grpc_testing.StreamingOutputCallRequest{Payload: bodyOf(text, 0)}); err != nil {
			return err //nolint:wrapcheck // for the test
		}
		answer, err := stream.Recv()
		if err != nil || string(answer.GetPayload().GetBody()) != text {
			return fmt.Errorf("message %d is %q: %w", n, answer.GetPayload().GetBody(), err)
		}
	}
	return nil
}

func conversed(ctx context.Context, to grpc_testing.TestServiceClient, name string) error {
	stream, err := to.FullDuplexCall(ctx)
	if err != nil {
		return err //nolint:wrapcheck // for the test
	}
	if err := exchangeMessages(stream, name); err != nil {
		return err
	}
	_ = stream.CloseSend()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) || len(stream.Trailer().Get("x-end")) != 1 {
		return fmt.Errorf("the stream ended with %w and %v", err, stream.Trailer())
	}
	return nil
}

func leftStream(ctx context.Context, to grpc_testing.TestServiceClient, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := to.FullDuplexCall(ctx)
	if err != nil {
		return err //nolint:wrapcheck // for the test
	}
	if err := exchangeMessages(stream, name); err != nil {
		return err
	}
	cancel()
	_, err = stream.Recv()
	return wantCode(err, codes.Canceled)
}

// TestCalls sends calls of all kinds through h2c on both sides.
func TestCalls(t *testing.T) {
	for name, fast := range map[string]bool{"standard": false, "fast": true} {
		t.Run(name, func(t *testing.T) { sendCalls(t, fast, 500) })
	}
}

// sendCalls sends calls through a proxy to a service of grpc-go. At the end, no call is open.
func sendCalls(t *testing.T, fast bool, total int) {
	t.Helper()
	service, behind := new(calls), grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(behind, service)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = behind.Serve(ln) }()
	t.Cleanup(behind.Stop)
	p := before(t, UpstreamConfig{URL: parsed(t, "h2c://"+ln.Addr().String())}, onThePlane(fast))
	s, at := start(t, p, nil, ServerConfig{})
	const connections, parallel = 4, 40
	var sending sync.WaitGroup
	var next, sent atomic.Int64
	for n := range connections {
		conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		to := grpc_testing.NewTestServiceClient(conn)
		for range parallel / connections {
			sending.Go(func() {
				for i := int(next.Add(1)); i <= total && !t.Failed(); i = int(next.Add(1)) {
					name := fmt.Sprintf("%d-%d", n, i)
					ctx := metadata.AppendToOutgoingContext(t.Context(), "x-call", name)
					if err := kindsOfCalls[i%len(kindsOfCalls)](ctx, to, name); err != nil {
						t.Errorf("call %d of kind %d: %v", i, i%len(kindsOfCalls), err)
					}
					sent.Add(1)
				}
			})
		}
	}
	sending.Wait()
	eventually(t, "the end of all calls", func() bool { return service.open.Load() == 0 && s.proxy.traffic.InFlight.Load() == 0 })
	served := s.proxy.traffic.ServedBy(report.PathFast)
	if sent.Load() != int64(total) || fast != (served > 0) {
		t.Errorf("%d of %d calls were sent, and %d took the fast path", sent.Load(), total, served)
	}
}
