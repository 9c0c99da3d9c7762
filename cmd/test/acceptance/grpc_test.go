package acceptance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const grpcConfiguration = `version: 1
max_memory: 16MiB
shutdown_timeout: 5s
rules:
  - name: calls
    match: {path: /grpc.testing.TestService/*, headers: {X-Client-Id: "*"}}
    key: [header:X-Client-Id]
    limits: ["2/1h"]
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// interop is a service with every kind of call.
type interop struct {
	grpc_testing.UnimplementedTestServiceServer

	canceled chan struct{} // gets one value for each stream with a client that left
}

func (interop) EmptyCall(context.Context, *grpc_testing.Empty) (*grpc_testing.Empty, error) {
	return &grpc_testing.Empty{}, nil
}

// UnaryCall echoes the payload, and metadata in header and trailer. It fails if the request says
// so.
func (interop) UnaryCall(ctx context.Context, r *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-header", strings.Join(md.Get("x-said"), ""), "x-forwarded", strings.Join(md.Get("x-forwarded-for"), "")))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-trailer-bin", "\x00\xff"))
	if s := r.GetResponseStatus(); s != nil {
		return nil, status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	return &grpc_testing.SimpleResponse{Payload: r.GetPayload()}, nil
}

// StreamingOutputCall sends the requested messages, and then ends with a status.
func (interop) StreamingOutputCall(
	r *grpc_testing.StreamingOutputCallRequest, to grpc.ServerStreamingServer[grpc_testing.StreamingOutputCallResponse],
) error {
	for _, p := range r.GetResponseParameters() {
		if err := to.Send(&grpc_testing.StreamingOutputCallResponse{Payload: payload(int(p.GetSize()))}); err != nil {
			return err
		}
	}
	if s := r.GetResponseStatus(); s != nil {
		return status.Error(codes.Code(s.GetCode()), s.GetMessage())
	}
	return nil
}

func (interop) StreamingInputCall(
	from grpc.ClientStreamingServer[grpc_testing.StreamingInputCallRequest, grpc_testing.StreamingInputCallResponse],
) error {
	sum := 0
	for {
		m, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return from.SendAndClose(&grpc_testing.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(m.GetPayload().GetBody())
	}
}

// FullDuplexCall answers each message before the client sends the next.
func (s interop) FullDuplexCall(
	both grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse],
) error {
	for {
		m, err := both.Recv()
		if errors.Is(err, io.EOF) {
			both.SetTrailer(metadata.Pairs("x-end", "both"))
			return status.Error(codes.Aborted, "ended as agreed: 100%")
		}
		if err != nil {
			s.canceled <- struct{}{}
			return err
		}
		if err := both.Send(&grpc_testing.StreamingOutputCallResponse{Payload: m.GetPayload()}); err != nil {
			return err
		}
	}
}

func payload(size int) *grpc_testing.Payload { return &grpc_testing.Payload{Body: make([]byte, size)} }

// serveGRPC runs a server of the service, and gives its address.
func serveGRPC(t *testing.T, service interop, options ...grpc.ServerOption) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	grpc_testing.RegisterTestServiceServer(server, service)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func dialGRPC(t *testing.T, address string, secured credentials.TransportCredentials) grpc_testing.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(secured))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return grpc_testing.NewTestServiceClient(conn)
}

// TestGRPC: every kind of gRPC call passes, without TLS and with TLS on both sides.
func TestGRPC(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.issue(t, "localhost", 2)
	plain, secured := interop{canceled: make(chan struct{}, 1)}, interop{canceled: make(chan struct{}, 1)}
	byTLS := strings.Replace(grpcConfiguration, "  upstream:", fmt.Sprintf(
		"  tls: {cert: %s, key: %s}\n  upstream_tls: {ca: %s}\n  upstream:", server.cert, server.key, ca.path), 1)
	for name, c := range map[string]struct {
		configuration, upstream string
		service                 interop
		client                  credentials.TransportCredentials
	}{
		"h2c": {grpcConfiguration, "h2c://" + serveGRPC(t, plain), plain, insecure.NewCredentials()},
		"tls": {
			byTLS, "https://" + serveGRPC(t, secured, grpc.Creds(credentials.NewServerTLSFromCert(new(server.load(t))))),
			secured, credentials.NewTLS(&tls.Config{RootCAs: ca.pool()}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t, c.configuration, c.upstream)
			client := dialGRPC(t, i.Proxy, c.client)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			callsPass(ctx, t, client)
			streamsPass(ctx, t, client)
			cancelPasses(ctx, t, client, c.service.canceled)
			refusedCalls(ctx, t, client)
		})
	}
}

func callsPass(ctx context.Context, t *testing.T, client grpc_testing.TestServiceClient) {
	t.Helper()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-said", "hello")
	var header, trailer metadata.MD
	got, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: payload(300_000)}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil || len(got.GetPayload().GetBody()) != 300_000 {
		t.Fatalf("a unary call: %d bytes, %v", len(got.GetPayload().GetBody()), err)
	}
	if strings.Join(header.Get("x-header"), "") != "hello" || strings.Join(header.Get("x-forwarded"), "") != "127.0.0.1" {
		t.Errorf("the header is %v", header)
	}
	if strings.Join(trailer.Get("x-trailer-bin"), "") != "\x00\xff" {
		t.Errorf("the trailer is %v", trailer)
	}
	// A status without a message has only a header, or a header and a trailer. Both pass.
	for _, want := range []codes.Code{codes.NotFound, codes.DataLoss, codes.ResourceExhausted} {
		message := "größer\nas 100%"
		_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{
			ResponseStatus: &grpc_testing.EchoStatus{Code: int32(want), Message: message},
		}, grpc.Trailer(&trailer))
		if s := status.Convert(err); s.Code() != want || s.Message() != message || len(trailer.Get("x-trailer-bin")) != 1 {
			t.Errorf("the service's status %v is %v, trailer %v", want, s, trailer)
		}
	}
	if _, err := client.UnimplementedCall(ctx, &grpc_testing.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that is not there: %v", err)
	}
}

func streamsPass(ctx context.Context, t *testing.T, client grpc_testing.TestServiceClient) {
	t.Helper()
	asked := &grpc_testing.StreamingOutputCallRequest{ResponseStatus: &grpc_testing.EchoStatus{Code: int32(codes.OutOfRange), Message: "all said"}}
	for size := range int32(20) {
		asked.ResponseParameters = append(asked.ResponseParameters, &grpc_testing.ResponseParameters{Size: 1 + 1000*size})
	}
	down, err := client.StreamingOutputCall(ctx, asked)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for {
		if _, err = down.Recv(); err != nil {
			break
		}
		got++
	}
	if s := status.Convert(err); got != 20 || s.Code() != codes.OutOfRange || s.Message() != "all said" {
		t.Errorf("a stream of 20 has %d messages and ends with %v", got, s)
	}
	up, err := client.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := up.Send(&grpc_testing.StreamingInputCallRequest{Payload: payload(10_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := up.CloseAndRecv(); err != nil || sum.GetAggregatedPayloadSize() != 200_000 {
		t.Errorf("a stream of 200000 bytes adds up to %d: %v", sum.GetAggregatedPayloadSize(), err)
	}
	both, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 { // Each answer comes before the next message is sent.
		if err := both.Send(&grpc_testing.StreamingOutputCallRequest{Payload: payload(n)}); err != nil {
			t.Fatal(err)
		}
		if m, err := both.Recv(); err != nil || len(m.GetPayload().GetBody()) != n {
			t.Fatalf("message %d comes back with %d bytes: %v", n, len(m.GetPayload().GetBody()), err)
		}
	}
	_ = both.CloseSend()
	_, err = both.Recv()
	if s := status.Convert(err); s.Code() != codes.Aborted || s.Message() != "ended as agreed: 100%" || len(both.Trailer().Get("x-end")) != 1 {
		t.Errorf("the stream ends with %v, trailer %v", s, both.Trailer())
	}
}

// cancelPasses: a client that leaves ends the call in the service.
func cancelPasses(ctx context.Context, t *testing.T, client grpc_testing.TestServiceClient, canceled <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	both, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := both.Send(&grpc_testing.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-canceled:
	case <-time.After(patience):
		t.Error("the service is not told that the client went away")
	}
}

// refusedCalls: a refused call gets RESOURCE_EXHAUSTED, the time to retry, and the fields.
func refusedCalls(ctx context.Context, t *testing.T, client grpc_testing.TestServiceClient) {
	t.Helper()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-client-id", "a")
	for n := range 2 {
		var header metadata.MD
		if _, err := client.EmptyCall(ctx, &grpc_testing.Empty{}, grpc.Header(&header)); err != nil || len(header.Get("ratelimit")) != 1 {
			t.Errorf("call %d of two: %v, header %v", n+1, err, header)
		}
	}
	var trailer metadata.MD
	_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: payload(1 << 20)}, grpc.Trailer(&trailer))
	isRefusal(t, "a unary call", err)
	for name, want := range map[string]string{
		"ratelimit-policy": `^"calls";q=2;w=3600$`, "ratelimit": `^"calls";r=0;t=1[78]\d\d$`, "retry-after": `^1[78]\d\d$`,
	} {
		if got := strings.Join(trailer.Get(name), ""); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	down, err := client.StreamingOutputCall(ctx, &grpc_testing.StreamingOutputCallRequest{})
	if err == nil {
		_, err = down.Recv()
	}
	isRefusal(t, "a stream of the server", err)
	both, err := client.FullDuplexCall(ctx)
	if err == nil {
		_, err = both.Recv()
	}
	isRefusal(t, "a stream of both", err)
}

func isRefusal(t *testing.T, what string, err error) {
	t.Helper()
	s := status.Convert(err)
	message := regexp.MustCompile(`^The limit of the policy calls, 2/1h, is used up: retry in 1[78]\d\d s\.$`)
	if s.Code() != codes.ResourceExhausted || !message.MatchString(s.Message()) {
		t.Fatalf("%s is refused with %v: %s", what, s.Code(), s.Message())
	}
	kinds := ""
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			delay := detail.GetRetryDelay().AsDuration()
			if delay <= 29*time.Minute || delay > 30*time.Minute {
				t.Errorf("%s: retry in %v, want half an hour", what, delay)
			}
			kinds += "retry "
		case *errdetails.QuotaFailure:
			kinds += "quota:" + detail.GetViolations()[0].GetSubject() + " "
		case *errdetails.ErrorInfo:
			kinds += detail.GetReason() + " "
		}
	}
	if kinds != "OVER_LIMIT retry quota:calls " {
		t.Errorf("%s: details %q", what, kinds)
	}
}

// TestGRPCUpstreamGone: if the service is down or too slow, a gRPC client gets UNAVAILABLE, and
// may retry.
func TestGRPCUpstreamGone(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	i := start(t, grpcConfiguration, "h2c://"+gone.Addr().String())
	client := dialGRPC(t, i.Proxy, insecure.NewCredentials())
	if _, err := client.EmptyCall(t.Context(), &grpc_testing.Empty{}); status.Code(err) != codes.Unavailable {
		t.Errorf("the call ends with %v, want Unavailable", err)
	}
}

// TestGRPCDeadline: a client's deadline ends the call in the proxy and in the service.
func TestGRPCDeadline(t *testing.T) {
	t.Parallel()
	service := interop{canceled: make(chan struct{}, 1)}
	i := start(t, grpcConfiguration, "h2c://"+serveGRPC(t, service))
	client := dialGRPC(t, i.Proxy, insecure.NewCredentials())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	both, err := client.FullDuplexCall(ctx)
	if err == nil {
		_, err = both.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the call ends with %v, want DeadlineExceeded", err)
	}
	select {
	case <-service.canceled:
	case <-time.After(patience):
		t.Error("the service goes on")
	}
}
