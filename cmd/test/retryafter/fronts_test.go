package retryafter

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	extensionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/cmd/internal/front/resp"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/middleware/httplimit"
)

// refusing is a store that refuses everything for one reason and time.
type refusing struct {
	reason headgate.Reason
	wait   time.Duration
}

func (*refusing) Prepare(headgate.Policy) (headgate.PolicyID, error) { return 1, nil }

func (*refusing) Release(headgate.PolicyID) {}

func (s *refusing) Apply(_ context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		decisions[i] = headgate.Decision{
			Verdict: headgate.Deny, Reason: s.reason, Limit: 5, RetryAfter: s.wait, ResetAfter: s.wait, At: headgate.Instant(time.Hour),
		}
	}
	return nil
}

func (*refusing) Return(context.Context, []headgate.Receipt) error { return nil }

func (*refusing) Forget(context.Context, []headgate.Op) error { return nil }

const rules = `
identity: {trusted_proxies: [192.0.2.1]}
rules:
- {name: requests, key: [all], limits: [5/1s]}
- {name: queries, match: {domain: d}, key: ["descriptor:k"], limits: [5/1s]}
`

func guardOn(t *testing.T, s headgate.Store) *guard.Guard {
	t.Helper()
	c := guards.Config(t, rules, s)
	c.MaxSentLimits = 100
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// request sends a request to a handler.
func request(h http.Handler, method, target, body string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// middleware answers by the middleware for net/http.
func middleware(g *guard.Guard) http.Handler {
	return httplimit.New(g, httplimit.Options{})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// retryInfo gives the delay of a status; 0 if there is none.
func retryInfo(t *testing.T, s *rpcstatus.Status) time.Duration {
	t.Helper()
	for _, detail := range s.GetDetails() {
		info := new(errdetails.RetryInfo)
		if detail.MessageIs(info) {
			if err := detail.UnmarshalTo(info); err != nil {
				t.Fatal(err)
			}
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// statusIn gives the status in the header of a call of gRPC over net/http.
func statusIn(t *testing.T, h http.Header) *rpcstatus.Status {
	t.Helper()
	encoded, err := base64.RawStdEncoding.DecodeString(h.Get("Grpc-Status-Details-Bin"))
	s := new(rpcstatus.Status)
	if err != nil || proto.Unmarshal(encoded, s) != nil {
		t.Fatalf("the status %q is invalid: %v", h.Get("Grpc-Status-Details-Bin"), err)
	}
	return s
}

// trailers keeps the trailer of a call. It is a grpc.ServerTransportStream.
type trailers struct{ metadata.MD }

func (*trailers) Method() string               { return "/s/m" }
func (*trailers) SetHeader(metadata.MD) error  { return nil }
func (*trailers) SendHeader(metadata.MD) error { return nil }
func (x *trailers) SetTrailer(md metadata.MD) error {
	x.MD = md
	return nil
}

// intercepted gives what the interceptor for gRPC answers.
func intercepted(t *testing.T, g *guard.Guard) (delay time.Duration, pushback string) {
	t.Helper()
	var x trailers
	_, err := grpclimit.Unary(g, grpclimit.Options{})(grpc.NewContextWithServerTransportStream(t.Context(), &x), nil,
		&grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(context.Context, any) (any, error) { return new(errdetails.RetryInfo), nil })
	return retryInfo(t, status.Convert(err).Proto()), strings.Join(x.Get("grpc-retry-pushback-ms"), ",")
}

// decided gives the field retry_after of POST /v1/decide, "" without one, and the Retry-After of GET.
func decided(t *testing.T, g *guard.Guard) (exact, whole string) {
	t.Helper()
	s := httpdecide.New(g, slog.New(slog.DiscardHandler))
	_, after, found := strings.Cut(request(s, http.MethodPost, "/v1/decide", `{"path":"/"}`, "Content-Type", "application/json").Body.String(), `"retry_after":`)
	if found {
		exact = after[:strings.IndexAny(after, ",}")]
	}
	w := request(s, http.MethodGet, "/v1/decide?from=original", "", "X-Original-Method", "GET", "X-Original-Uri", "/", "X-Forwarded-For", "192.0.2.9")
	if w.Code != http.StatusTooManyRequests {
		t.Fatalf("a subrequest: %d %s", w.Code, w.Body)
	}
	return exact, w.Header().Get("Retry-After")
}

// until gives the time until the reset in the answer of Envoy's service.
func until(t *testing.T, g *guard.Guard) time.Duration {
	t.Helper()
	answer, err := rls.New(g, rls.Options{}, 0).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
		Domain: "d", Descriptors: []*extensionsv3.RateLimitDescriptor{{Entries: []*extensionsv3.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}}},
	})
	if err != nil || len(answer.GetStatuses()) != 1 {
		t.Fatal(answer, err)
	}
	return answer.GetStatuses()[0].GetDurationUntilReset().AsDuration()
}

// overRedis gives the times in the answers of CL.THROTTLE, THROTTLE and HG.DECIDE.
func overRedis(t *testing.T, g *guard.Guard) (cell, throttle, exact string) {
	t.Helper()
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := resp.New(resp.Config{Guard: g, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(socket) }()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", socket.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = conn.Close()
		_ = socket.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, "CL.THROTTLE k 4 5 1\r\nTHROTTLE k 5 5 1\r\nHG.DECIDE path=/\r\n"); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	first, second := lines(t, from, 6), lines(t, from, 6)
	for exact == "" {
		if lines(t, from, 1)[0] == "retry_after" {
			exact = lines(t, from, 2)[1]
		}
	}
	return fmt.Sprint(first[4][1:], " ", first[5][1:]), fmt.Sprint(second[5][1:], " ", second[4][1:]), exact
}

// lines reads lines of an answer.
func lines(t *testing.T, from *bufio.Reader, n int) (all []string) {
	t.Helper()
	for range n {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatal(all, err)
		}
		all = append(all, strings.TrimRight(line, "\r\n"))
	}
	return all
}
