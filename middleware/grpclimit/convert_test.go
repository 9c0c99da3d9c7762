package grpclimit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// text is a net.Addr of a network other than net.TCPAddr's.
type text struct{ network, at string }

func (a text) Network() string { return a.network }
func (a text) String() string  { return a.at }

func TestAddressOf(t *testing.T) {
	for _, c := range []struct {
		at   net.Addr
		want string // "" means not valid
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, "192.0.2.1"},
		{&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1}, "2001:db8::1"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, "fe80::1"},
		{&net.TCPAddr{}, ""},
		{text{"tcp", "192.0.2.1:1"}, "192.0.2.1"},
		{text{"tcp6", "[::ffff:192.0.2.1]:1"}, "192.0.2.1"},
		{text{"tcp", "@"}, ""},
		{text{"unix", "192.0.2.1:1"}, ""},
		{text{"bufconn", "bufconn"}, ""},
		{&net.UnixAddr{Name: "/run/shop.sock", Net: "unix"}, ""},
		{nil, ""},
	} {
		got := addressOf(c.at)
		if c.want == "" && got.IsValid() || c.want != "" && got != netip.MustParseAddr(c.want) {
			t.Errorf("addressOf(%v) = %v, want %q", c.at, got, c.want)
		}
	}
}

// TestMetadataInPlace checks that the metadata is read without a copy, with the same result.
func TestMetadataInPlace(t *testing.T) {
	md := metadata.Pairs("x-client-id", "a", "x-client-id", "b", "x-trace-bin", "\x00", "x-empty", "")
	md[strings.Repeat("n", 200)] = []string{"long"}
	ctx := metadata.NewIncomingContext(t.Context(), md)
	from := newOrigin()
	sent := from.metadata(ctx)
	sent["x-probe"] = []string{"shared"}
	if md["x-probe"] == nil {
		t.Error("the metadata is a copy, whose cost the client controls")
	}
	for name, want := range map[string]string{
		"X-Client-Id": "a", "x-client-id": "a", "X-CLIENT-ID": "a", "X-Empty": "", strings.Repeat("N", 200): "long",
	} {
		if got, ok := sent.Lookup(name); !ok || got != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"X-Trace-Bin", "x-trace-bin", "-Bin", "X-Client", "X-Client-Id2", ""} {
		if got, ok := sent.Lookup(name); ok {
			t.Errorf("%s: got %q, want none", name, got)
		}
	}
	if sent := from.metadata(t.Context()); sent != nil {
		t.Errorf("without metadata: got %v", sent)
	}
	// With an unknown key the metadata is copied. This covers a future change in gRPC.
	if got, ok := (origin{"another key"}).metadata(ctx).Lookup("X-Client-Id"); !ok || got != "a" {
		t.Errorf("with an unknown key: got %q, %v", got, ok)
	}
}

// TestUndecided checks that an internal error is logged, and that the caller gets no details.
func TestUndecided(t *testing.T) {
	var logged bytes.Buffer
	l := newLimit(new(guard.Guard), Options{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	err := l.undecided(errors.New("the cost is negative"))
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "negative") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(logged.String(), "the cost is negative") {
		t.Errorf("got log %q", logged.String())
	}
}

// TestAdmitAllocates checks that a call without metadata to announce allocates nothing.
func TestAdmitAllocates(t *testing.T) {
	if race.On {
		return // The race detector drops pooled values.
	}
	l, ctx := newLimit(orders(t, headgate.Limit{Count: 1_000_000, Per: time.Hour}), Options{Style: fields.None}), incomingCall(t.Context())
	got := testing.AllocsPerRun(1000, func() {
		if _, _, _, err := l.admit(ctx, "/shop.v1.Orders/Place"); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

// TestAdmitSharesWithoutAllocating checks that an allowed call with fair share allocates
// nothing.
func TestAdmitSharesWithoutAllocating(t *testing.T) {
	if race.On {
		return // The race detector drops pooled values.
	}
	f, err := guard.NewFairShare(1<<40, "header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{FairShare: f})
	if err != nil {
		t.Fatal(err)
	}
	l, ctx := newLimit(g, Options{Style: fields.None}), incomingCall(t.Context())
	if _, _, _, err := l.admit(ctx, "/shop.v1.Orders/Place"); err != nil { // The first call adds the client's name.
		t.Fatal(err)
	}
	// A new cycle allocates, but its cost per call rounds to 0 over so many calls.
	if got := testing.AllocsPerRun(10_000, func() { _, _, _, _ = l.admit(ctx, "/shop.v1.Orders/Place") }); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

// incomingCall returns the context of a call on a gRPC server.
func incomingCall(ctx context.Context) context.Context {
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}})
	return metadata.NewIncomingContext(ctx, metadata.Pairs(
		":authority", "shop.example.com:443", "content-type", "application/grpc", "user-agent", "grpc-go/1.85.0",
		"x-client-id", "a", "x-forwarded-for", "192.0.2.1", "x-other", "b",
	))
}

// orders returns a guard with one rule that counts by client.
func orders(tb testing.TB, l headgate.Limit) *guard.Guard {
	tb.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	part, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		tb.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "orders", Match: rule.Match{Path: "/shop.v1.Orders/*"}, Key: []rule.Part{part}},
		Policies: []headgate.Policy{{Limit: l}},
	}}})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}
