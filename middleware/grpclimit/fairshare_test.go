package grpclimit_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/storetest"
)

// share returns a fair share of 4 units per ten seconds between clients a and b. Each
// client has 2.
func share(t *testing.T, change ...func(*guard.FairShare)) *guard.FairShare {
	t.Helper()
	f, err := guard.NewFairShare(4, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	f.Cycle, f.Weights = 10*time.Second, map[string]int64{"a": 1, "b": 1}
	for _, c := range change {
		c(f)
	}
	return f
}

// fair returns a guard that shares a capacity. The clock stands at the start of a cycle.
func fair(t *testing.T, c guard.Config) *guard.Guard {
	t.Helper()
	c.Clock = storetest.NewClock().Now
	return newGuard(t, c)
}

// admitted compares the units that a client received in this cycle.
func admitted(t *testing.T, g *guard.Guard, client string, want int64) {
	t.Helper()
	got := int64(0)
	shares, _ := g.Shares()
	for _, s := range shares.Clients {
		if s.Client == client {
			got = s.Admitted
		}
	}
	if got != want {
		t.Errorf("%d units of client %s were admitted, want %d", got, client, want)
	}
}

// rateOf returns the field with the remaining units.
func rateOf(md metadata.MD) string { return strings.Join(md["ratelimit"], ", ") }

// TestFairShare checks that only a client over its share is refused, for calls and streams,
// and that all clients get the fields of their share.
func TestFairShare(t *testing.T) {
	behind := new(service)
	g := fair(t, guard.Config{FairShare: share(t)})
	client := serve(t, g, behind, grpclimit.Options{})
	header, _, err := call(with(t, "x-client-id", "a"), client)
	if err != nil || rateOf(header) != `"fair_share";r=1;t=10` {
		t.Errorf("first call: got %v, header %v", err, header)
	}
	if header := download(with(t, "x-client-id", "a"), t, client); rateOf(header) != `"fair_share";r=0;t=10` {
		t.Errorf("stream: got header %v", header)
	}
	for range 2 {
		header, trailer, err := call(with(t, "x-client-id", "a"), client)
		expect(t, err, codes.ResourceExhausted)
		got := detailsOf(t, err)
		// The time runs to the next cycle, plus up to half a cycle of jitter.
		if got.retry < 10*time.Second || got.retry > 15*time.Second || got.reason != "OVER_SHARE" || got.violated != guard.FairShareName || got.location != "" {
			t.Errorf("got details %+v", got)
		}
		if len(header) > 0 || !strings.HasPrefix(rateOf(trailer), `"fair_share";r=0;t=1`) || !strings.Contains(err.Error(), "share of the capacity") {
			t.Errorf("got %v, header %v, trailer %v", err, header, trailer)
		}
	}
	if _, _, err := call(with(t, "x-client-id", "b"), client); err != nil {
		t.Errorf("another client: got %v", err)
	}
	if n := behind.calls.Load(); n != 3 {
		t.Errorf("the service saw %d calls, want 3", n)
	}
	admitted(t, g, "a", 2)
}

// TestAnonymousCall checks that a call without a client name gets its own message and no
// time to retry.
func TestAnonymousCall(t *testing.T) {
	client := serve(t, fair(t, guard.Config{FairShare: share(t)}), new(service), grpclimit.Options{})
	for _, sent := range [][]string{nil, {"x-client-id", ""}} {
		_, trailer, err := call(with(t, sent...), client)
		expect(t, err, codes.ResourceExhausted)
		if got, want := detailsOf(t, err), (details{reason: "ANONYMOUS_CLIENT", retry: -1, violated: guard.FairShareName}); got != want {
			t.Errorf("got details %+v, want %+v", got, want)
		}
		if !strings.HasSuffix(status.Convert(err).Message(), "name one by header:X-Client-Id.") || rateOf(trailer) != `"fair_share";r=0` {
			t.Errorf("got %v, trailer %v", err, trailer)
		}
	}
}

// TestFairShareAndRules checks that a call refused by a rule uses none of its share. The
// same holds for a call whose deadline is before its turn.
func TestFairShareAndRules(t *testing.T) {
	r := limited(t, "calls", unaryMethod, headgate.Limit{Per: time.Hour}, "ip")
	g := fair(t, guard.Config{FairShare: share(t), Rules: []guard.Rule{r, delayed(t, one(), 24*time.Hour)}})
	client := serve(t, g, new(service), grpclimit.Options{})
	for range 3 {
		_, _, err := call(with(t, "x-client-id", "a"), client)
		expect(t, err, codes.ResourceExhausted)
		if got := detailsOf(t, err); got.violated != "calls" {
			t.Errorf("got details %+v", got)
		}
	}
	admitted(t, g, "a", 0)
	download(with(t, "x-client-id", "a"), t, client)
	s, err := client.StreamingOutputCall(with(t, "x-client-id", "a"), anAnswer())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Recv()
	expect(t, err, codes.ResourceExhausted)
	if got := detailsOf(t, err); got.reason != "WAIT_TOO_LONG" {
		t.Errorf("got details %+v", got)
	}
	admitted(t, g, "a", 1)
}

// TestFairShareOfBadCalls checks that an invalid cost is the client's fault, and that shadow
// mode refuses nothing.
func TestFairShareOfBadCalls(t *testing.T) {
	for mode, want := range map[guard.Mode]codes.Code{guard.Enforce: codes.InvalidArgument, guard.Shadow: codes.OK} {
		g := fair(t, guard.Config{FairShare: share(t, func(f *guard.FairShare) { f.CostHeader, f.Mode = "X-Cost", mode })})
		client := serve(t, g, new(service), grpclimit.Options{})
		header, _, err := call(with(t, "x-client-id", "a", "x-cost", "many"), client)
		expect(t, err, want)
		if len(header["ratelimit"]) > 0 {
			t.Errorf("mode %v: got header %v", mode, header)
		}
		_, _, err = call(with(t), client)
		if anonymous := status.Code(err) == codes.ResourceExhausted; anonymous != (mode == guard.Enforce) {
			t.Errorf("mode %v: an anonymous call got %v", mode, err)
		}
		admitted(t, g, "a", 0)
	}
}

// TestFairShareOfCertificates checks that a certificate verified by TLS can name the client.
func TestFairShareOfCertificates(t *testing.T) {
	known := newAuthority(t)
	subject, err := rule.ParsePart("mtls_subject")
	if err != nil {
		t.Fatal(err)
	}
	g := fair(t, guard.Config{FairShare: share(t, func(f *guard.FairShare) { f.Client = subject })})
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{known.sign(t, "server")}, ClientCAs: known.pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS13,
		})),
		grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
	)
	address := listen(t, server, new(service))
	for _, c := range []struct {
		own  tls.Certificate
		want codes.Code
	}{{known.sign(t, "north"), codes.OK}, {tls.Certificate{}, codes.ResourceExhausted}} {
		_, _, err := call(with(t), secure(t, address, known, c.own))
		expect(t, err, c.want)
	}
	admitted(t, g, "CN=north,O=Farms", 1)
}
