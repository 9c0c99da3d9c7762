package httpcalls_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/middleware/httplimit"
)

// TestReject checks that an invalid request is answered in its own protocol.
func TestReject(t *testing.T) {
	const detail = "A 100% fault."
	for name, c := range map[string]struct {
		method, query, kind, version string
		status                       int
		answered, body               string
	}{
		"gRPC":           {"POST", "", "application/grpc+proto", "", 200, "application/grpc", ""},
		"gRPC-Web":       {"POST", "", "application/grpc-web", "", 200, "application/grpc-web", ""},
		"Connect":        {"POST", "", "application/json", "1", 400, "application/json", `{"code":"invalid_argument","message":"A 100% fault."}`},
		"Connect by GET": {"GET", "connect=v1", "", "", 400, "application/json", `{"code":"invalid_argument","message":"A 100% fault."}`},
		"a Connect stream": {
			"POST", "", "application/connect+json", "1", 200, "application/connect+json",
			"\x02\x00\x00\x00?" + `{"error":{"code":"invalid_argument","message":"A 100% fault."}}`,
		},
		"a form":                {"POST", "", "application/x-www-form-urlencoded", "", 400, "application/problem+json", ""},
		"GET with gRPC's type":  {"GET", "", "application/grpc", "", 400, "application/problem+json", ""},
		"another version":       {"POST", "", "application/json", "2", 400, "application/problem+json", ""},
		"a blank before a type": {"POST", "", " application/grpc", "", 200, "application/grpc", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "/p?"+c.query, http.NoBody)
			r.Header = http.Header{"Content-Type": {c.kind}, "Connect-Protocol-Version": {c.version}}
			w := httptest.NewRecorder()
			new(httplimit.Exchange).Reject(w, r, detail)
			if got := w.Header().Get("Content-Type"); w.Code != c.status || got != c.answered {
				t.Errorf("got response %d %q, want %d %q", w.Code, got, c.status, c.answered)
			}
			switch body := w.Body.String(); {
			case strings.HasPrefix(c.answered, "application/grpc"):
				if h := w.Header(); body != "" || h.Get("Grpc-Status") != "3" || h.Get("Grpc-Message") != "A 100%25 fault." || h.Get("Grpc-Status-Details-Bin") != "" {
					t.Errorf("got response %v %q", h, body)
				}
			case c.body != "":
				if body != c.body {
					t.Errorf("got body %q, want %q", body, c.body)
				}
			default:
				var document struct {
					Detail string `json:"detail"`
				}
				if err := json.Unmarshal([]byte(body), &document); err != nil || document.Detail != detail {
					t.Errorf("got body %q: %v", body, err)
				}
			}
		})
	}
}

// TestFaultyCalls checks that a call's fault gives INVALID_ARGUMENT, whichever check fails.
func TestFaultyCalls(t *testing.T) {
	for name, change := range map[string]func(r *http.Request){
		"dot segments": func(r *http.Request) { r.URL.Path = "/v1/../v1/product" },
		"a backslash":  func(r *http.Request) { r.URL.Path = "/v1\\product" },
		"no path":      func(r *http.Request) { r.URL.Opaque = "product" },
		"a cost":       func(r *http.Request) { r.Header.Set("X-Cost", "many") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, allowed(), product(t, costly))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/product", http.NoBody)
			r.Header.Set("Content-Type", "application/grpc")
			change(r)
			if w := s.serve(r); w.Code != http.StatusOK || w.Header().Get("Grpc-Status") != "3" || w.Body.Len() > 0 || s.request != nil {
				t.Errorf("got response %d %v %q, want INVALID_ARGUMENT", w.Code, w.Header(), w.Body)
			}
		})
	}
}

func costly(r *guard.Rule) { r.CostHeader, r.MaxCost = "X-Cost", 5 }

// TestBadCostAsGRPCLimit checks that an invalid cost gets the same status as from
// middleware/grpclimit.
func TestBadCostAsGRPCLimit(t *testing.T) {
	s := newStage(t, allowed(), product(t, costly))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/product", http.NoBody)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("X-Cost", "6")
	got := statusOf(t, s.serve(r).Header())
	want := new(spb.Status)
	proto.Merge(want, costRefusedBy(t, newGuard(t, denied(headgate.OverLimit, time.Second), product(t, costly))))
	// Each protocol writes the header's name in its own way.
	want.Message = got.GetMessage()
	if !strings.HasPrefix(got.GetMessage(), "The cost in X-Cost ") || !proto.Equal(got, want) {
		t.Errorf("got status\n%v\nwant the status of grpclimit\n%v", got, want)
	}
}

func costRefusedBy(t *testing.T, g *guard.Guard) *spb.Status {
	t.Helper()
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: netTCP{netip.MustParseAddrPort("192.0.2.1:1234")}})
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-cost", "6"))
	_, err := grpclimit.Unary(g, grpclimit.Options{})(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/v1/product"},
		func(context.Context, any) (any, error) { return "passed", nil })
	return status.Convert(err).Proto()
}
