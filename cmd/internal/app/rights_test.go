package app

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/server"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/config"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// ruled is an instance with two rules, whose caller with the token one has rights that a test changes.
type ruled struct {
	instance *Instance
	config   atomic.Pointer[config.Config]
	conn     *grpc.ClientConn
	ctx      context.Context // has the token
}

// settings gives the configuration with rights of the caller.
func (r *ruled) settings(t *testing.T, token, rights string) *config.Config {
	t.Helper()
	return serverConfig(t, fmt.Sprintf(`server:
  grpc: {address: '127.0.0.1:0', auth: token}
  http: off
  callers: [{name: a, tokens: [%q], %s}]
rules:
- {name: one, match: {domain: shop, descriptors: {k: a}}, key: [all], limits: [5/1h]}
- {name: two, match: {domain: shop, descriptors: {k: b}}, key: [all], limits: [5/1h]}`, digest(token), rights))
}

func startRuled(t *testing.T, rights string, options ...grpc.DialOption) *ruled {
	t.Helper()
	r := &ruled{}
	o := serverOptions(t, "")
	o.Config = r.settings(t, "one", rights)
	o.Load = func() (*config.Config, error) { return r.config.Load(), nil }
	r.instance = startServer(t, o)
	eventually(t, "the health", func() bool { return serving(t, r.instance.Addresses().GRPC, "ratelimit") })
	var err error
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if r.conn, err = grpc.NewClient("passthrough:///"+r.instance.Addresses().GRPC, options...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	r.ctx = metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer one")
	return r
}

// reload gives the caller a token and rights.
func (r *ruled) reload(t *testing.T, token, rights string) {
	t.Helper()
	r.config.Store(r.settings(t, token, rights))
	if err := r.instance.Reload(); err != nil {
		t.Fatal(err)
	}
}

func (r *ruled) open(t *testing.T) grpc.ClientStream {
	t.Helper()
	stream, err := r.conn.NewStream(r.ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/headgate.v1.Decisions/Stream")
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// asked is a request with a descriptor.
func asked(value string) *headgatev1.Request {
	return &headgatev1.Request{Domain: "shop", Descriptors: []*headgatev1.Descriptor{{Key: "k", Value: value}}}
}

// ask sends a message with one request on a stream, and gives the answer.
func ask(t *testing.T, stream grpc.ClientStream, value string) *headgatev1.Answer {
	t.Helper()
	out := new(headgatev1.DecideResponse)
	if err := stream.SendMsg(&headgatev1.DecideRequest{Requests: []*headgatev1.Request{asked(value)}}); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(out); err != nil {
		t.Fatal(err)
	}
	return out.GetAnswers()[0]
}

// TestRightsOfOpenStream: changed scopes, domains and rules apply from the next message on.
func TestRightsOfOpenStream(t *testing.T) {
	r := startRuled(t, "scopes: [decide]")
	stream := r.open(t)
	for _, row := range []struct {
		rights, text string
		code         codes.Code
	}{
		{"scopes: [decide]", "", codes.OK},
		{"scopes: [read]", "lacks the scope decide", codes.PermissionDenied},
		{"scopes: [decide], domains: [other]", "may not use the domain", codes.PermissionDenied},
		{"scopes: [decide], rules: [two]", "may not use the rule", codes.PermissionDenied},
		{"scopes: [decide], rules: [one], domains: [shop]", "", codes.OK},
	} {
		r.reload(t, "one", row.rights)
		got := ask(t, stream, "a").GetError()
		if codes.Code(got.GetCode()) != row.code || !strings.Contains(got.GetMessage(), row.text) {
			t.Errorf("after a reload with %s: %v", row.rights, got)
		}
	}
	if left := ask(t, stream, "a").GetRemaining(); left != 2 {
		t.Errorf("%d units are left, want 2: refused requests take none", left)
	}
}

// TestRefusedCallTakesNothing: a call with a descriptor outside the rules of its caller takes no units for the others.
func TestRefusedCallTakesNothing(t *testing.T) {
	r := startRuled(t, "scopes: [decide], rules: [one]")
	call := func(values ...string) (*rlsv3.RateLimitResponse, error) {
		req, out := &rlsv3.RateLimitRequest{Domain: "shop"}, new(rlsv3.RateLimitResponse)
		for _, v := range values {
			req.Descriptors = append(req.Descriptors, &ratelimitv3.RateLimitDescriptor{
				Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "k", Value: v}},
			})
		}
		return out, r.conn.Invoke(r.ctx, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", req, out)
	}
	for range 3 {
		if _, err := call("a", "b"); status.Code(err) != codes.PermissionDenied {
			t.Fatalf("a descriptor outside the rules: %v", err)
		}
	}
	out, err := call("a")
	if err != nil || out.GetStatuses()[0].GetLimitRemaining() != 4 {
		t.Errorf("got %v, %v, want 4 of 5 units", out, err)
	}
}

// TestSessionsOfStreams: a stream that ends in any way leaves no session behind.
func TestSessionsOfStreams(t *testing.T) {
	r := startRuled(t, "scopes: [decide]")
	for range 500 {
		ctx, cancel := context.WithCancel(r.ctx)
		_, _ = r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/headgate.v1.Decisions/Stream")
		cancel()
	}
	eventually(t, "the end of the sessions", func() bool { return r.instance.access.Sessions() == 0 })
}

// TestRemovedTokenOfStreamThatDoesNotRead: such a stream ends too.
func TestRemovedTokenOfStreamThatDoesNotRead(t *testing.T) {
	t.Parallel()
	const window = 64 << 10
	r := startRuled(t, "scopes: [decide]", grpc.WithStaticStreamWindowSize(window))
	message := new(headgatev1.DecideRequest)
	for range 300 {
		message.Requests = append(message.Requests, asked("a"))
	}
	for n := range 12 {
		stream := r.open(t)
		if _, err := stream.Header(); err != nil {
			t.Fatal(err)
		}
		for range n {
			if err := stream.SendMsg(message); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.reload(t, "two", "scopes: [decide]")
	var front *server.Server
	for _, c := range r.instance.components {
		if d, ok := c.(*server.Server); ok {
			front = d
		}
	}
	var described prom.Config
	front.Metrics(&described)
	eventually(t, "the end of the streams", func() bool {
		return described.Server().Decisions.Streams == 0 && r.instance.access.Sessions() == 0
	})
}
