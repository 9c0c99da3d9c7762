package grpclimit_test

import (
	"testing"

	"google.golang.org/grpc"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/rawhttp2"
	"github.com/headgate/headgate/middleware/grpclimit"
)

// TestBlanksMakeNoKey checks that blanks around a metadata value do not change the key.
// grpc-go keeps such blanks.
func TestBlanksMakeNoKey(t *testing.T) {
	watch, behind := new(seen), new(service)
	g := newGuard(t, guard.Config{Observer: watch, Rules: []guard.Rule{limited(t, "calls", anyMethod, one(), "header:X-Api-Key")}})
	at := listen(t, grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{}))), behind)
	for n, value := range []string{" K", "K", "K ", "\tK", "K\t", " \t K \t "} {
		got := rawhttp2.Send(t, at, make([]byte, 5), ":method", "POST", ":scheme", "http", ":path", testgrpc.TestService_EmptyCall_FullMethodName,
			":authority", "a", "content-type", "application/grpc", "te", "trailers", "x-api-key", value)
		if want := map[bool]string{true: "0", false: "8"}[n == 0]; got["grpc-status"] != want { // 8 is RESOURCE_EXHAUSTED.
			t.Errorf("%q: got response %v, want grpc-status %s", value, got, want)
		}
	}
	if n := behind.calls.Load(); n != 1 || len(watch.requests) != 6 {
		t.Errorf("the service saw %d calls and the guard %d, want 1 and 6", n, len(watch.requests))
	}
}
