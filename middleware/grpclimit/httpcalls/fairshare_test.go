package httpcalls_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestFairShareOfCalls checks that a gRPC call gets the same status as from grpclimit.
func TestFairShareOfCalls(t *testing.T) {
	for reason, header := range map[string]http.Header{"OVER_SHARE": {"X-Client-Id": {"a"}}, "ANONYMOUS_CLIENT": {}} {
		closed, err := guard.NewFairShare(4, "header:X-Client-Id")
		if err != nil {
			t.Fatal(err)
		}
		closed.Cycle, closed.Weights = 10*time.Second, map[string]int64{"a": 1, "b": 1_000_000}
		g, err := guard.New(guard.Config{FairShare: closed, Clock: func() headgate.Instant { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		s := stageBehind(g)
		header.Set("Content-Type", "application/grpc")
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/product", strings.NewReader("message"))
		r.Header = header
		w := s.serve(r)
		got := statusOf(t, w.Header())
		if s.request != nil || w.Code != http.StatusOK || got.GetCode() != 8 || !strings.Contains(prototext(got), reason) {
			t.Errorf("%s: got HTTP status %d, gRPC status %v", reason, w.Code, got)
		}
		if hasRetry := strings.Contains(prototext(got), "RetryInfo"); hasRetry != (reason == "OVER_SHARE") || hasRetry != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: got status %v, header %v", reason, got, w.Header())
		}
		if reason == "ANONYMOUS_CLIENT" { // The other reason has jitter.
			if want := refusedBy(t, g); !proto.Equal(got, want) {
				t.Errorf("got status\n%v\nwant the status of grpclimit\n%v", got, want)
			}
		}
	}
}

func prototext(m proto.Message) string {
	b, _ := proto.Marshal(m)
	return string(b)
}
