package grpclimit_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/rule"
)

// seen records the requests that rules saw.
type seen struct {
	mu       sync.Mutex
	requests []headgate.Request // guarded by mu; Header is not kept
	headers  []map[string][]string
	names    []string
}

// Observe implements guard.Observer.
func (s *seen) Observe(req *headgate.Request, _ *guard.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := map[string][]string{}
	for _, name := range s.names {
		if first, ok := req.Header.Lookup(name); ok {
			all := req.Header.(headgate.Lines).Lines(name)
			lines[name] = slices.Clone(all)
			if first != all[0] {
				lines[name] = []string{"the first line differs"}
			}
		}
	}
	kept := *req
	kept.Header = nil
	s.requests, s.headers = append(s.requests, kept), append(s.headers, lines)
}

func TestWhatRulesSee(t *testing.T) {
	watch := &seen{names: []string{"X-Client-Id", "x-client-id", "X-Forwarded-For", "X-Trace-Bin", "X-Missing", "Content-Type"}}
	g := newGuard(t, guard.Config{Observer: watch})
	server := grpc.NewServer(
		grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})),
		grpc.StreamInterceptor(grpclimit.Stream(g, grpclimit.Options{})),
	)
	client := dial(t, listen(t, server, new(service)), grpc.WithAuthority("Shop.Example.COM:8443"))
	ctx := with(t, "X-Client-Id", "a", "x-client-id", "b", "x-forwarded-for", "192.0.2.1", "x-trace-bin", "\x00\xff")
	if _, _, err := call(ctx, client); err != nil {
		t.Fatal(err)
	}
	if _, err := client.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both calls to be decided", func() bool {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		return len(watch.requests) == 2
	})
	for i, path := range []string{unaryMethod, downloadMethod} {
		want := headgate.Request{Method: "POST", Host: "shop.example.com", Path: path, IP: netip.MustParseAddr("127.0.0.1")}
		if got := watch.requests[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		lines := watch.headers[i]
		for name, want := range map[string][]string{
			"X-Client-Id": {"a", "b"}, "x-client-id": {"a", "b"}, "X-Forwarded-For": {"192.0.2.1"},
			"X-Trace-Bin": nil, "X-Missing": nil, "Content-Type": {"application/grpc"},
		} {
			if !slices.Equal(lines[name], want) {
				t.Errorf("%s: got %q, want %q", name, lines[name], want)
			}
		}
	}
}

// TestCountedApart checks that clients have separate counts, by a metadata name in the
// configuration's spelling, and by the client that a trusted proxy names.
func TestCountedApart(t *testing.T) {
	cases := map[string]struct {
		key  string
		sent func(client string) []string
	}{
		"header":  {"header:X-Client-Id", func(c string) []string { return []string{"x-client-id", c} }},
		"xff_ip":  {"xff_ip", func(c string) []string { return []string{"x-forwarded-for", "192.0.2." + c} }},
		"user_ip": {"user_ip", func(c string) []string { return []string{"x-real-user-ip", "192.0.2." + c} }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, guard.Config{
				Rules:    []guard.Rule{limited(t, "calls", unaryMethod, one(), c.key)},
				Identity: &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, UserIPHeaders: []string{"X-Real-User-Ip"}},
			})
			client := serve(t, g, new(service), grpclimit.Options{})
			for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted} {
				_, _, err := call(with(t, c.sent(string(rune('1'+i%2)))...), client)
				expect(t, err, want)
			}
		})
	}
}

// TestServeHTTP checks that behind net/http, where a peer is a string, the peer's address
// counts.
func TestServeHTTP(t *testing.T) {
	watch := new(seen)
	g := newGuard(t, guard.Config{Observer: watch, Rules: []guard.Rule{limited(t, "calls", unaryMethod, one(), "ip")}})
	inner := grpc.NewServer(grpc.UnaryInterceptor(grpclimit.Unary(g, grpclimit.Options{})))
	testgrpc.RegisterTestServiceServer(inner, new(service))
	server := &http.Server{Handler: inner, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		inner.Stop()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	client := dial(t, ln.Addr().String())
	if header, _, err := call(with(t), client); err != nil || len(header["ratelimit"]) != 1 {
		t.Errorf("first call: got %v, header %v", err, header)
	}
	_, _, err = call(with(t), client)
	expect(t, err, codes.ResourceExhausted)
	if got, want := watch.requests[0].IP, netip.MustParseAddr("127.0.0.1"); got != want {
		t.Errorf("got peer %v, want %v", got, want)
	}
}

// degrading returns a rule that degrades calls over its limit and warns above half of it.
func degrading(t *testing.T) guard.Rule {
	t.Helper()
	r := limited(t, "search", anyMethod, headgate.Limit{Count: 2, Per: one().Per}, "ip")
	r.Soft = 50
	r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Degraded", Value: "yes"}
	return r
}

// TestMarks checks that the service sees the guard's marks, and never a client's.
func TestMarks(t *testing.T) {
	var got metadata.MD
	behind := &service{called: func(ctx context.Context) error {
		got, _ = metadata.FromIncomingContext(ctx)
		return nil
	}}
	client := serve(t, newGuard(t, guard.Config{Rules: []guard.Rule{degrading(t)}}), behind, grpclimit.Options{})
	const warning = `soft-limit; policy="search"`
	story := []struct {
		name             string
		sent             []string
		degraded, warned []string // marks at the service
		answered         []string // warnings at the caller
		stream           bool
	}{
		{name: "within the limit", sent: []string{"x-degraded", "yes", "headgate-warning", "forged"}},
		{name: "above the soft limit", sent: []string{"headgate-warning", "forged"}, warned: []string{warning}, answered: []string{warning}},
		{name: "over the limit", sent: []string{"x-degraded", "no", "X-Degraded", "never"}, degraded: []string{"yes"}},
		{name: "over the limit, a stream", stream: true, sent: []string{"x-degraded", "no"}, degraded: []string{"yes"}},
		{name: "over the limit, and nothing forged", degraded: []string{"yes"}},
	}
	for _, s := range story {
		ctx := with(t, append(s.sent, "x-other", "kept", "x-other-bin", "\x00kept")...)
		var header metadata.MD
		if s.stream {
			header = download(ctx, t, client)
		} else {
			var err error
			if header, _, err = call(ctx, client); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got["x-degraded"], s.degraded) || !slices.Equal(got["headgate-warning"], s.warned) {
			t.Errorf("%s: the service sees x-degraded %q, headgate-warning %q; want %q, %q",
				s.name, got["x-degraded"], got["headgate-warning"], s.degraded, s.warned)
		}
		if !slices.Equal(got["x-other"], []string{"kept"}) || !slices.Equal(got["x-other-bin"], []string{"\x00kept"}) {
			t.Errorf("%s: the service sees x-other %q, x-other-bin %q", s.name, got["x-other"], got["x-other-bin"])
		}
		if !slices.Equal(header["headgate-warning"], s.answered) {
			t.Errorf("%s: the caller is warned of %q, want %q", s.name, header["headgate-warning"], s.answered)
		}
	}
}

// TestMarksOfSeveralRules checks that the values of all rules that degrade with one name
// are added.
func TestMarksOfSeveralRules(t *testing.T) {
	var got metadata.MD
	behind := &service{called: func(ctx context.Context) error {
		got, _ = metadata.FromIncomingContext(ctx)
		return nil
	}}
	var rules []guard.Rule
	for _, value := range []string{"images", "ads", "images"} {
		r := limited(t, "less-"+value+string(rune('a'+len(rules))), unaryMethod, headgate.Limit{Per: one().Per}, "ip")
		r.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Without", Value: value}
		rules = append(rules, r)
	}
	client := serve(t, newGuard(t, guard.Config{Rules: rules}), behind, grpclimit.Options{})
	if _, _, err := call(with(t, "x-without", "everything"), client); err != nil {
		t.Fatal(err)
	}
	if want := []string{"images", "ads"}; !slices.Equal(got["x-without"], want) {
		t.Errorf("got %q, want %q", got["x-without"], want)
	}
}
