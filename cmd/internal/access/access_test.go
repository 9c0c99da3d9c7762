package access

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/loglimit"
	"github.com/headgate/headgate/internal/config"
)

// control makes a Control with callers and limits.
func control(t *testing.T, limits config.ServerLimits, all ...config.Caller) *Control {
	t.Helper()
	c := New(slog.New(slog.DiscardHandler), nil)
	change(t, c, limits, all...)
	t.Cleanup(c.Close)
	return c
}

// change reloads a Control.
func change(t *testing.T, c *Control, limits config.ServerLimits, all ...config.Caller) {
	t.Helper()
	commit, err := c.Prepare(all, limits)
	if err != nil {
		t.Fatal(err)
	}
	commit()
}

func caller(name string, scopes config.Scope, tokens ...string) config.Caller {
	c := config.Caller{Name: name, Scopes: scopes}
	for _, token := range tokens {
		c.Tokens = append(c.Tokens, DigestOf(token))
	}
	return c
}

// certified is the state of a connection with a verified certificate.
func certified(cert *x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}}
}

// TestNewToken: tokens have 32 random bytes in characters that every protocol carries.
func TestNewToken(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		token := NewToken()
		if !strings.HasPrefix(token, "hg_") || len(token) != 46 || strings.Trim(token[3:], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("the token is %q", token)
		}
		if seen[token] {
			t.Fatal("a token came twice")
		}
		seen[token] = true
	}
}

// TestAuthenticate lists what clients show, and who they are.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	uri, err := url.Parse("spiffe://example/shop")
	if err != nil {
		t.Fatal(err)
	}
	shop := caller("shop", config.ScopeDecide, "t1", "t2")
	shop.Certificate = "spiffe://example/shop"
	named := config.Caller{Name: "named", Certificate: "named.example", Scopes: config.ScopeDecide}
	common := config.Caller{Name: "common", Certificate: "common", Scopes: config.ScopeDecide}
	ended := caller("ended", config.ScopeDecide, "t3")
	ended.Until = time.Now().Add(-time.Second)
	c := control(t, config.ServerLimits{}, shop, named, common, ended)
	for _, row := range []struct {
		about string
		auth  config.Auth
		by    Credentials
		name  string
		err   error
	}{
		{"without auth", 0, Credentials{Token: "wrong"}, "", nil},
		{"the first token", config.AuthToken, Credentials{Token: "t1"}, "shop", nil},
		{"the second token", config.AuthToken, Credentials{Token: "t2"}, "shop", nil},
		{"no token", config.AuthToken, Credentials{}, "", ErrNoCredentials},
		{"another token", config.AuthToken, Credentials{Token: "t4"}, "", ErrWrongCredentials},
		{"the digest in place of the token", config.AuthToken, Credentials{Token: "sha256:00"}, "", ErrWrongCredentials},
		{"a token that has ended", config.AuthToken, Credentials{Token: "t3"}, "", ErrWrongCredentials},
		{"a URI before a DNS name", config.AuthMTLS, Credentials{TLS: certified(&x509.Certificate{URIs: []*url.URL{uri}, DNSNames: []string{"named.example"}})}, "shop", nil},
		{"a DNS name before a common name", config.AuthMTLS, Credentials{TLS: certified(&x509.Certificate{DNSNames: []string{"named.example", "b"}, Subject: pkix.Name{CommonName: "common"}})}, "named", nil},
		{"a common name", config.AuthMTLS, Credentials{TLS: certified(&x509.Certificate{Subject: pkix.Name{CommonName: "common"}})}, "common", nil},
		{"a certificate without a name", config.AuthMTLS, Credentials{TLS: certified(&x509.Certificate{})}, "", ErrWrongCredentials},
		{"another certificate", config.AuthMTLS, Credentials{TLS: certified(&x509.Certificate{DNSNames: []string{"a"}})}, "", ErrWrongCredentials},
		{"a certificate that is not verified", config.AuthMTLS, Credentials{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{DNSNames: []string{"named.example"}}}}}, "", ErrNoCredentials},
		{"a token where only certificates count", config.AuthMTLS, Credentials{Token: "t1"}, "", ErrNoCredentials},
		{"a certificate where only tokens count", config.AuthToken, Credentials{TLS: certified(&x509.Certificate{DNSNames: []string{"named.example"}})}, "", ErrNoCredentials},
		{"a token before a certificate", config.AuthToken | config.AuthMTLS, Credentials{Token: "t1", TLS: certified(&x509.Certificate{DNSNames: []string{"named.example"}})}, "shop", nil},
		{"a wrong token beside a certificate", config.AuthToken | config.AuthMTLS, Credentials{Token: "t4", TLS: certified(&x509.Certificate{DNSNames: []string{"named.example"}})}, "", ErrWrongCredentials},
		{"a certificate alone", config.AuthToken | config.AuthMTLS, Credentials{TLS: certified(&x509.Certificate{DNSNames: []string{"named.example"}})}, "named", nil},
	} {
		client, err := c.Gate("server.grpc", row.auth, true).Authenticate(&row.by)
		if !errors.Is(err, row.err) || client.Name() != row.name {
			t.Errorf("%s: got %q, %v, want %q, %v", row.about, client.Name(), err, row.name, row.err)
		}
	}
}

// TestPermit lists scopes, domains and rules.
func TestPermit(t *testing.T) {
	t.Parallel()
	shop := caller("shop", config.ScopeDecide|config.ScopeRead, "t")
	shop.Domains, shop.Rules = []string{"a", "b"}, []string{"search"}
	c := control(t, config.ServerLimits{}, shop)
	client, err := c.Gate("server.grpc", config.AuthToken, false).Authenticate(&Credentials{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	near, err := c.Gate("server.grpc", 0, true).Authenticate(&Credentials{})
	far, err2 := c.Gate("server.grpc", 0, false).Authenticate(&Credentials{})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, row := range []struct {
		client *Client
		scope  config.Scope
		passes bool
	}{
		{client, config.ScopeDecide, true},
		{client, config.ScopeRead, true},
		{client, config.ScopeSendLimits, false},
		{client, config.ScopeAdminister, false},
		{nil, config.ScopeDecide | config.ScopeSendLimits | config.ScopeRead, true},
		{nil, config.ScopeAdminister, false},
		{near, config.ScopeAdminister, true},
		{far, config.ScopeRead, true},
		{far, config.ScopeAdminister, false},
	} {
		err := row.client.Permit(row.scope)
		if reason, refused := ReasonOf(err); (err == nil) != row.passes || refused == row.passes || refused && reason != Forbidden {
			t.Errorf("%q with scope %v: got %v", row.client.Name(), row.scope, err)
		}
	}
	if client.PermitDomain("a") != nil || client.PermitDomain("c") == nil || near.PermitDomain("c") != nil {
		t.Error("a domain outside the list passes, or one inside is refused")
	}
	if !client.Rules()("search") || client.Rules()("other") || near.Rules() != nil {
		t.Error("a rule outside the list passes, or one inside is refused")
	}
	long := strings.Repeat("ä", 1000)
	if text := client.PermitDomain(long).Error(); len(text) > 300 {
		t.Errorf("the error repeats %d bytes", len(text))
	}
}

// TestSessionsEnd: a removed token and a caller that ends end their sessions, and changed rights apply to open ones.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := caller("late", config.ScopeDecide, "late")
		late.Until = time.Now().Add(time.Hour)
		c := control(t, config.ServerLimits{}, caller("a", config.ScopeDecide, "a1", "a2"), late)
		g := c.Gate("server.resp", config.AuthToken, true)
		var mu sync.Mutex
		ended := map[string]bool{}
		sessions := map[string]*Session{}
		for _, token := range []string{"a1", "a2", "late"} {
			s, err := g.Open(&Credentials{Token: token}, func() {
				mu.Lock()
				defer mu.Unlock()
				ended[token] = true
			})
			if err != nil {
				t.Fatal(err)
			}
			sessions[token] = s
		}
		check := func(about string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(ended) != len(want) {
				t.Errorf("%s: %v have ended, want %v", about, ended, want)
			}
			for _, token := range want {
				if !ended[token] {
					t.Errorf("%s: the session of %s has not ended", about, token)
				}
			}
		}
		check("at the start")
		change(t, c, config.ServerLimits{}, caller("a", config.ScopeDecide|config.ScopeRead, "a2", "a3"), late)
		check("after a rotation", "a1")
		if sessions["a2"].Client().Permit(config.ScopeRead) != nil {
			t.Error("an open session has not got a new scope")
		}
		sessions["a2"].Close()
		change(t, c, config.ServerLimits{}, late)
		check("a session that was closed before", "a1")
		time.Sleep(time.Hour - time.Nanosecond) //nolint:forbidigo // the time of the bubble
		check("just before the end", "a1")
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the time of the bubble
		check("at the end", "a1", "late")
		if _, err := g.Open(&Credentials{Token: "late"}, func() {}); !errors.Is(err, ErrWrongCredentials) {
			t.Errorf("a session after the end: %v", err)
		}
		if len(c.sessions) != 0 {
			t.Errorf("%d sessions are kept", len(c.sessions))
		}
		c.Close()
	})
}

// TestCallerLimit: a caller has its limit, over all its tokens and across reloads.
func TestCallerLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := config.ServerLimits{Caller: headgate.Limit{Count: 10, Per: time.Second}}
		all := []config.Caller{caller("a", config.ScopeDecide, "a1", "a2"), caller("b", config.ScopeDecide, "b")}
		c := control(t, limits, all...)
		g := c.Gate("server.grpc", config.AuthToken, true)
		client := func(token string) *Client {
			t.Helper()
			client, err := g.Authenticate(&Credentials{Token: token})
			if err != nil {
				t.Fatal(err)
			}
			return client
		}
		some := func(about, token string, n, want int) {
			t.Helper()
			got, err := client(token).TakeSome(n)
			if _, busy := errors.AsType[*BusyError](err); got != want || busy != (got < n) {
				t.Errorf("%s: got %d, %v, want %d", about, got, err, want)
			}
		}
		some("within the limit", "a1", 7, 7)
		some("a part is within the limit", "a2", 7, 3)
		some("above the limit", "a1", 1, 0)
		some("another caller", "b", 25, 10)
		change(t, c, limits, all...)
		some("after a reload", "a1", 1, 0)
		limits.Caller.Count = 20
		change(t, c, limits, all...)
		if got, _ := client("a1").TakeSome(100); got > 10 {
			t.Errorf("a reload with twice the limit gives %d units at once, want at most 10", got)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
		if err := client("a1").TakeAll(1000); err != nil {
			t.Errorf("a call with more requests than the limit, after a pause: %v", err)
		}
		some("after such a call", "a1", 1, 0)
		time.Sleep(time.Second / 2) //nolint:forbidigo // the time of the bubble
		if err := client("a1").TakeAll(11); err == nil {
			t.Error("a call above the rest is decided")
		}
		some("a refused call has taken nothing", "a1", 11, 10)
		limits.Caller = headgate.Limit{Count: 1, Per: time.Hour}
		change(t, c, limits, all...)
		some("another period begins anew", "a1", 2, 1)
		limits.Caller = headgate.Limit{Count: 20, Per: time.Second}
		change(t, c, limits, all...)
		some("a unit of the hour does not count for an hour", "a1", 20, 20)
		change(t, c, config.ServerLimits{}, all...)
		some("without a limit", "a1", 1000, 1000)
	})
}

// TestAddressLimit: the limit is for an IPv4 address and an IPv6 /64, and not for trusted proxies.
func TestAddressLimit(t *testing.T) {
	t.Parallel()
	exempt := netip.MustParseAddr("10.0.0.1")
	c := New(slog.New(slog.DiscardHandler), func(a netip.Addr) bool { return a == exempt })
	t.Cleanup(c.Close)
	g := c.Gate("server.grpc", 0, true)
	limits := config.ServerLimits{Address: headgate.Limit{Count: 2, Per: time.Hour}, Connections: headgate.Limit{Count: 1, Per: time.Hour}}
	change(t, c, limits)
	arrive := func(at string) bool { return g.Arrive(netip.MustParseAddr(at)) == nil }
	for i, row := range []struct {
		at     string
		passes bool
	}{
		{"192.0.2.1", true},
		{"::ffff:192.0.2.1", true},
		{"192.0.2.1", false},
		{"192.0.2.2", true},
		{"2001:db8::1", true},
		{"2001:db8::2", true},
		{"2001:db8::ffff:1", false},
		{"2001:db8:0:1::1", true},
		{"10.0.0.1", true},
		{"10.0.0.1", true},
		{"10.0.0.1", true},
	} {
		if got := arrive(row.at); got != row.passes {
			t.Errorf("%d, %s: passes %v, want %v", i, row.at, got, row.passes)
		}
	}
	if g.Arrive(netip.Addr{}) != nil {
		t.Error("a client without an address is limited")
	}
	at := netip.MustParseAddr("192.0.2.9")
	if !g.Connect(at) || g.Connect(at) || g.Refusals(Busy) != 1 {
		t.Errorf("connections: %d are refused, want the second one", g.Refusals(Busy))
	}
	change(t, c, config.ServerLimits{})
	if !arrive("192.0.2.1") || !g.Connect(at) {
		t.Error("a limit that was removed refuses")
	}
}

// TestCountApart: a flood at one listener leaves the operator's address its limit at another one.
func TestCountApart(t *testing.T) {
	t.Parallel()
	c := New(slog.New(slog.DiscardHandler), nil)
	t.Cleanup(c.Close)
	change(t, c, config.ServerLimits{Address: headgate.Limit{Count: 2, Per: time.Hour}})
	grpc, http, admin := c.Gate("server.grpc", 0, true), c.Gate("server.http", 0, true), c.Gate("admin.listen", 0, true).CountApart()
	at := netip.MustParseAddr("192.0.2.1")
	for i, row := range []struct {
		gate   *Gate
		passes bool
	}{{grpc, true}, {http, true}, {grpc, false}, {http, false}, {admin, true}, {admin, true}, {admin, false}} {
		if got := row.gate.Arrive(at) == nil; got != row.passes {
			t.Errorf("%d, %s: passes %v, want %v", i, row.gate.Listener(), got, row.passes)
		}
	}
	change(t, c, config.ServerLimits{Address: headgate.Limit{Count: 3, Per: time.Hour}})
	if admin.Arrive(at) != nil {
		t.Error("a raised limit does not apply to addresses that are counted apart")
	}
	change(t, c, config.ServerLimits{})
	if admin.Arrive(at) != nil {
		t.Error("a limit that was removed refuses")
	}
}

// TestManyAddresses: addresses above their limit never lock others out, however many they are.
func TestManyAddresses(t *testing.T) {
	t.Parallel()
	c := New(slog.New(slog.DiscardHandler), nil)
	t.Cleanup(c.Close)
	c.addresses.memory = 64 << 10 // 2,048 places
	change(t, c, config.ServerLimits{Address: headgate.Limit{Count: 1, Per: time.Hour}})
	g := c.Gate("server.grpc", 0, true)
	var b [16]byte
	refused := 0
	for n := range 5000 {
		b[3], b[4], b[5] = byte(n>>16), byte(n>>8), byte(n)
		for range 2 {
			if g.Arrive(netip.AddrFrom16(b)) != nil {
				refused++
			}
		}
	}
	if refused < 1000 {
		t.Errorf("%d arrivals are refused: the places are not in use", refused)
	}
	for n := range 1000 {
		if err := g.Arrive(netip.AddrFrom4([4]byte{192, 0, byte(n >> 8), byte(n)})); err != nil {
			t.Fatalf("a new address is refused: %v", err)
		}
	}
}

// TestRefusedLog: refusals are counted, and some are logged, without the token.
func TestRefusedLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		c := New(slog.New(slog.NewTextHandler(&text, nil)), nil)
		defer c.Close()
		g := c.Gate("server.grpc", config.AuthToken, false)
		for range 1000 {
			_, err := g.Authenticate(&Credentials{Token: "hg_secret"})
			g.Refused(err, netip.MustParseAddr("192.0.2.1"), nil)
		}
		if n := strings.Count(text.String(), "\n"); n != 1 || g.Refusals(Unauthenticated) != 1000 {
			t.Errorf("%d lines for %d refusals, want 1 for 1000", n, g.Refusals(Unauthenticated))
		}
		time.Sleep(loglimit.Every) //nolint:forbidigo // the time of the bubble
		g.Refused(ErrNoCredentials, netip.Addr{}, nil)
		if out := text.String(); strings.Count(out, "\n") != 2 || !strings.Contains(out, "since_last_line=1000") || strings.Contains(out, "secret") {
			t.Errorf("the log is %s", out)
		}
		g.Refused(errors.New("other"), netip.Addr{}, nil)
		if g.Refusals(Unauthenticated)+g.Refusals(Forbidden)+g.Refusals(Busy) != 1001 {
			t.Error("an error of another kind counts as a refusal")
		}
	})
}
