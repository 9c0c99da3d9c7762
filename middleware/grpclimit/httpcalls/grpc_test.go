package httpcalls_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// call sends a request like a gRPC client.
func (s *stage) call(t *testing.T, path, kind string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("message"))
	r.Header.Set("Content-Type", kind)
	return s.serve(r)
}

// statusOf reads the status of a refused call and checks that its fields agree.
func statusOf(t *testing.T, h http.Header) *spb.Status {
	t.Helper()
	encoded, err := base64.RawStdEncoding.DecodeString(h.Get("Grpc-Status-Details-Bin"))
	if err != nil {
		t.Fatal(err)
	}
	got := new(spb.Status)
	if err := proto.Unmarshal(encoded, got); err != nil {
		t.Fatal(err)
	}
	message, err := url.PathUnescape(h.Get("Grpc-Message"))
	if err != nil || message != got.GetMessage() || h.Get("Grpc-Status") != fmt.Sprint(got.GetCode()) {
		t.Errorf("header %v does not agree with status %v: %v", h, got, err)
	}
	return got
}

// TestRefuseCallAsGRPCLimit checks that a refused call gets the same status and details as
// from a server with middleware/grpclimit, for every reason.
func TestRefuseCallAsGRPCLimit(t *testing.T) {
	redirect := func(r *guard.Rule) {
		r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "https://queue.example/{path}"}
	}
	named := func(name string) func(*guard.Rule) { return func(r *guard.Rule) { r.Name = name } }
	shadow := func(r *guard.Rule) { r.Mode = guard.Shadow }
	for name, c := range map[string]struct {
		store *scripted
		rules []guard.Rule
		code  int32
	}{
		"over the limit": {denied(headgate.OverLimit, 1500*time.Millisecond), []guard.Rule{product(t)}, 8},
		"no time known":  {denied(headgate.OverLimit, 0), []guard.Rule{product(t)}, 8},
		"another status": {denied(headgate.OverLimit, time.Second), []guard.Rule{product(t, func(r *guard.Rule) { r.Exceed.Status = 503 })}, 8},
		"never":          {denied(headgate.Never, 0), []guard.Rule{product(t)}, 8},
		"queue full":     {denied(headgate.QueueFull, time.Nanosecond), []guard.Rule{product(t)}, 8},
		"wait too long":  {denied(headgate.WaitTooLong, 300*24*time.Hour), []guard.Rule{product(t)}, 8},
		"banned":         {denied(headgate.Banned, time.Hour), []guard.Rule{product(t, redirect)}, 8},
		"sent elsewhere": {denied(headgate.OverLimit, time.Second), []guard.Rule{product(t, redirect)}, 8},
		"several":        {denied(headgate.OverLimit, time.Second), []guard.Rule{product(t), product(t, named("b")), product(t, named("c"), shadow)}, 8},
		"no room":        {denied(headgate.StoreFull, 0), []guard.Rule{product(t, redirect)}, 14},
		"no store":       {&scripted{err: context.DeadlineExceeded}, []guard.Rule{product(t)}, 14},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.store, c.rules...)
			w := s.call(t, "/v1/product", "application/grpc")
			h := w.Header()
			if s.request != nil || w.Code != http.StatusOK || w.Body.Len() != 0 || h.Get("Content-Type") != "application/grpc" || h.Get("Location") != "" {
				t.Errorf("got response %d %v with %d bytes, want 200 without a body", w.Code, h, w.Body.Len())
			}
			if h.Get("RateLimit") == "" || (h.Get("Retry-After") == "") != (name == "never") {
				t.Errorf("header %v, want the fields of other refusals", h)
			}
			got, want := statusOf(t, h), refusedBy(t, newGuard(t, c.store, c.rules...))
			for n := 0; n < 100 && !proto.Equal(got, want); n++ { // Without a time, one or two seconds are drawn.
				want = refusedBy(t, newGuard(t, c.store, c.rules...))
			}
			if got.GetCode() != c.code || !proto.Equal(got, want) {
				t.Errorf("got status\n%v\nwant the status of grpclimit\n%v", got, want)
			}
		})
	}
}

// refusedBy returns the status with which grpclimit refuses the same call.
func refusedBy(t *testing.T, g *guard.Guard) *spb.Status {
	t.Helper()
	from := netip.MustParseAddrPort("192.0.2.1:1234")
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: netTCP{from}})
	_, err := grpclimit.Unary(g, grpclimit.Options{})(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/v1/product"},
		func(context.Context, any) (any, error) { return "passed", nil })
	return status.Convert(err).Proto()
}

// netTCP is a peer's address as a net.Addr.
type netTCP struct{ netip.AddrPort }

func (netTCP) Network() string { return "tcp" }

// TestRefuseCallIsBounded checks that the status stays small with many policies.
func TestRefuseCallIsBounded(t *testing.T) {
	rules := make([]guard.Rule, 40)
	for i := range rules {
		rules[i] = product(t, func(r *guard.Rule) { r.Name = fmt.Sprint("rule-", i, strings.Repeat("x", 50)) })
	}
	h := newStage(t, denied(headgate.OverLimit, time.Second), rules...).call(t, "/v1/product", "application/grpc").Header()
	if n := len(h.Get("Grpc-Status-Details-Bin")); n > 6<<10 {
		t.Errorf("the status has %d bytes, which is too many", n)
	}
	if got := statusOf(t, h); len(got.GetDetails()) != 3 {
		t.Errorf("got %d details, want 3", len(got.GetDetails()))
	}
	// An invalid UTF-8 name must not suppress the status.
	odd := newStage(t, denied(headgate.OverLimit, time.Second), product(t, func(r *guard.Rule) {
		r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "https://queue.example/\xff"}
	}))
	if got := statusOf(t, odd.call(t, "/v1/product", "application/grpc").Header()); !strings.Contains(got.String(), "queue.example/\uFFFD") {
		t.Errorf("got status %v", got)
	}
}

// TestRefuseCallKinds checks that calls are recognized by their content type, and that the
// response has the same type.
func TestRefuseCallKinds(t *testing.T) {
	s := newStage(t, denied(headgate.OverLimit, time.Second), product(t))
	for kind, want := range map[string]string{
		"application/grpc":                        "application/grpc",
		"application/grpc+proto":                  "application/grpc",
		"application/grpc;charset=utf-8":          "application/grpc",
		"Application/gRPC+json":                   "application/grpc",
		"application/grpc-web":                    "application/grpc-web",
		"application/grpc-web+proto":              "application/grpc-web",
		"application/grpc-web-text+proto":         "application/grpc-web-text",
		"application/grpcx":                       "application/problem+json",
		"application/grpc-other":                  "application/problem+json",
		"application/json":                        "application/problem+json",
		"application/json, application/grpc":      "application/problem+json",
		"application/grp":                         "application/problem+json",
		"":                                        "application/problem+json",
		"application/grpc\r\nSet-Cookie: a=b":     "application/problem+json",
		"application/grpc+x\r\nSet-Cookie: a=b":   "application/grpc",
		"application/grpc-web+<b>;application/on": "application/grpc-web",
	} {
		w := s.call(t, "/v1/product", kind)
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("content type %q got response type %q, want %q", kind, got, want)
		}
		if status := map[bool]int{true: 200, false: 429}[strings.HasPrefix(want, "application/grpc")]; w.Code != status {
			t.Errorf("content type %q got status %d, want %d", kind, w.Code, status)
		}
	}
}

// TestRefuseCallEscapesItsMessage checks that a message is printable ASCII, whatever text a
// limit has.
func TestRefuseCallEscapesItsMessage(t *testing.T) {
	s := newStage(t, denied(headgate.OverLimit, time.Second), product(t, func(r *guard.Rule) { r.Policies[0].Limit.Per = 900 * time.Microsecond }))
	w := s.call(t, "/v1/product", "application/grpc")
	if got, want := w.Header().Get("Grpc-Message"), "The limit of the policy product, 100/900%C2%B5s, is used up: retry in 1 s."; got != want {
		t.Errorf("got message %q, want %q", got, want)
	}
	statusOf(t, w.Header())
}

// TestCallsArePosted checks that only POST requests are calls. A cache could store a refusal
// with status 200 as the page.
func TestCallsArePosted(t *testing.T) {
	s := newStage(t, denied(headgate.OverLimit, time.Second), product(t))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/product", http.NoBody)
	r.Header.Set("Content-Type", "application/grpc")
	if w := s.serve(r); w.Code != http.StatusTooManyRequests {
		t.Errorf("GET got response %d %v, want 429", w.Code, w.Header())
	}
}
