package acceptance

import (
	"context"
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/guard"
)

// bearer is a token that each call shows, as the initial metadata of Envoy do. "" shows none.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if b == "" {
		return map[string]string{}, nil
	}
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return false }

// dialAs connects to a server with a token, and with TLS unless it is nil.
func dialAs(t *testing.T, at, token string, secured *tls.Config) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if secured != nil {
		transport = credentials.NewTLS(secured)
	}
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(transport), grpc.WithPerRPCCredentials(bearer(token)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// newToken makes a token with headgate token, and gives its digest too.
func newToken(t *testing.T, name string) (token, digest string) {
	t.Helper()
	path, digest := tokenOf(t, name, "decide")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text)), digest
}

// askAsEnvoy makes a call of Envoy's protocol, and gives the remaining units.
func askAsEnvoy(t *testing.T, conn *grpc.ClientConn) (remaining uint32, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{
		Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "client", Value: "a"}}}},
	})
	if err != nil {
		return 0, err
	}
	return answer.GetStatuses()[0].GetLimitRemaining(), nil
}

// asEnvoy is a row of a table: what a client shows, and the code of its call.
type asEnvoy struct {
	about, token string
	tls          *tls.Config
	code         codes.Code
}

// callAll makes the calls of a table, and checks that only answered calls take one unit each. Each client also asks for the
// health, which needs no proof.
func callAll(t *testing.T, at string, left uint32, rows []asEnvoy) {
	t.Helper()
	for _, row := range rows {
		conn := dialAs(t, at, row.token, row.tls)
		remaining, err := askAsEnvoy(t, conn)
		if status.Code(err) != row.code {
			t.Errorf("%s: got %v, want %s", row.about, err, row.code)
		}
		if row.code == codes.OK {
			if left--; remaining != left {
				t.Errorf("%s: %d units are left, want %d: refused calls take none", row.about, remaining, left)
			}
		}
		for _, name := range []string{"", "ratelimit"} {
			if got := healthOf(t, healthpb.NewHealthClient(conn), name); got != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("%s: the health of %q is %s", row.about, name, got)
			}
		}
	}
}

const shopDomain = "\nrules: [{name: own, match: {path: /own}, key: [all], limits: [1000000/1d]}]\n" +
	"domains: {shop: {descriptors: [{key: client, limits: 100/365d}]}}\n"

// TestServerTokens: with auth: token, calls of Envoy need the token of a caller with the scope and the domain.
func TestServerTokens(t *testing.T) {
	t.Parallel()
	envoy, envoyDigest := newToken(t, "envoy")
	reader, readerDigest := newToken(t, "reader")
	other, otherDigest := newToken(t, "other")
	operator, operatorDigest := tokenOf(t, "operator", "administer")
	i := launchServer(t, file(t, "version: 1\nserver:\n  grpc: {address: '127.0.0.1:0', auth: token}\n  http: off\n  callers:\n"+
		"    - {name: envoy, tokens: ['"+envoyDigest+"'], scopes: [decide]}\n"+
		"    - {name: reader, tokens: ['"+readerDigest+"'], scopes: [read]}\n"+
		"    - {name: other, tokens: ['"+otherDigest+"'], scopes: [decide], domains: [other]}\n"+
		"    - {name: operator, tokens: ['"+operatorDigest+"'], scopes: [administer]}\n"+shopDomain+
		"admin: {listen: '127.0.0.1:0', health: '127.0.0.1:0', auth: token}\n"))
	callAll(t, i.GRPC, 100, []asEnvoy{
		{"without a token", "", nil, codes.Unauthenticated},
		{"with a wrong token", "hg_wrong", nil, codes.Unauthenticated},
		{"with the digest", envoyDigest, nil, codes.Unauthenticated},
		{"without the scope", reader, nil, codes.PermissionDenied},
		{"with another domain", other, nil, codes.PermissionDenied},
		{"with the token", envoy, nil, codes.OK},
		{"without a token again", "", nil, codes.Unauthenticated},
		{"with the token again", envoy, nil, codes.OK},
	})
	for reason, want := range map[string]float64{"unauthenticated": 4, "forbidden": 2} {
		if got := metric(t, i, `headgate_refused_clients_total{listener="server.grpc",reason="`+reason+`"}`); got != want {
			t.Errorf("the metric has %v refusals with the reason %s, want %v", got, reason, want)
		}
	}
	for variable, want := range map[string]int{"HEADGATE_TOKEN_FILE=" + operator: 0, "HEADGATE_TOKEN_FILE=": 1} {
		reload := exec.CommandContext(t.Context(), binary, "ctl", "reload", "--admin", i.Admin)
		reload.Env = append(os.Environ(), variable)
		if text, err := reload.CombinedOutput(); exitStatus(err) != want {
			t.Errorf("ctl reload with %s: %v\n%s", variable, err, text)
		}
	}
	if status := i.stop(); status != 0 {
		t.Errorf("the exit status is %d", status)
	}
	for _, token := range []string{envoy, reader, other, "hg_wrong"} {
		if strings.Contains(i.text(), token) {
			t.Errorf("the log has a token:\n%s", i.text())
		}
	}
	if !strings.Contains(i.text(), "server.grpc") {
		t.Errorf("the log has no line about refusals:\n%s", i.text())
	}
}

// TestServerTokensOrCertificates: with auth: [token, mtls], either one is enough, and a wrong token is refused beside a
// good certificate. Package client shows both.
func TestServerTokensOrCertificates(t *testing.T) {
	t.Parallel()
	a, others := newAuthority(t), newAuthority(t)
	own, gateway, stranger := a.issue(t, "127.0.0.1", 2), a.issue(t, "gateway.internal", 3), a.issue(t, "stranger.internal", 4)
	envoy, digest := newToken(t, "envoy")
	i := launchServer(t, file(t, "version: 1\nserver:\n  grpc: {address: '127.0.0.1:0', auth: [token, mtls], tls: {cert: "+own.cert+
		", key: "+own.key+", client_ca: "+a.path+"}}\n  http: off\n  callers:\n"+
		"    - {name: envoy, tokens: ['"+digest+"'], scopes: [decide]}\n"+
		"    - {name: gateway, certificate: gateway.internal, scopes: [decide]}\n"+shopDomain+adminAnywhere))
	showing := func(shows ...pair) *tls.Config {
		c := &tls.Config{RootCAs: a.pool(), ServerName: "127.0.0.1"}
		for _, p := range shows {
			c.Certificates = append(c.Certificates, p.load(t))
		}
		return c
	}
	callAll(t, i.GRPC, 100, []asEnvoy{
		{"with nothing", "", showing(), codes.Unauthenticated},
		{"with a token", envoy, showing(), codes.OK},
		{"with a certificate", "", showing(gateway), codes.OK},
		{"with both", envoy, showing(gateway), codes.OK},
		{"with a wrong token", "hg_wrong", showing(), codes.Unauthenticated},
		{"with a wrong token and a certificate", "hg_wrong", showing(gateway), codes.Unauthenticated},
		{"with the certificate of no caller", "", showing(stranger), codes.Unauthenticated},
		{"with the certificate of no caller and a token", envoy, showing(stranger), codes.OK},
	})
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte(envoy+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	localhost := strings.Replace(i.GRPC, "127.0.0.1", "localhost", 1)
	for about, row := range map[string]struct {
		config   client.Config
		answered bool
	}{
		"TLS and a token":               {client.Config{TLS: &tls.Config{RootCAs: a.pool()}, TokenFile: tokenFile}, true},
		"TLS by name and a token":       {client.Config{Servers: []string{localhost}, TLS: &tls.Config{RootCAs: a.pool()}, Token: envoy}, true},
		"mutual TLS":                    {client.Config{TLS: &tls.Config{RootCAs: a.pool(), Certificates: []tls.Certificate{gateway.load(t)}}}, true},
		"TLS without a proof":           {client.Config{TLS: &tls.Config{RootCAs: a.pool()}}, false},
		"mutual TLS of no caller":       {client.Config{TLS: showing(stranger)}, false},
		"an authority that is unknown":  {client.Config{TLS: &tls.Config{RootCAs: others.pool()}, Token: envoy}, false},
		"another name than the address": {client.Config{TLS: &tls.Config{RootCAs: a.pool(), ServerName: "other.internal"}, Token: envoy}, false},
		"no TLS":                        {client.Config{Token: envoy}, false},
	} {
		if row.config.Servers == nil {
			row.config.Servers = []string{i.GRPC}
		}
		row.config.Timeout, row.config.Fallback = patience, guard.FallbackDeny
		k, err := client.New(row.config)
		if err != nil {
			t.Fatal(err)
		}
		a, err := k.Decide(t.Context(), &client.Request{Path: "/own"})
		if err != nil || a.Local == row.answered || (a.Verdict == headgate.Allow) != row.answered {
			t.Errorf("package client with %s: got %+v, %v", about, a, err)
		}
		_ = k.Close()
	}
}
