package app

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/front/httpdecide"
	"github.com/headgate/headgate/internal/config"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// digest gives the form of a token in the configuration.
func digest(token string) string {
	d := access.DigestOf(token)
	return "sha256:" + hex.EncodeToString(d[:])
}

// everyListener is the section server with an auth, and limits of the server.
func everyListener(auth, limits string) string {
	text := "identity: {trusted_proxies: [192.0.2.0/24]}\nserver:\n"
	for _, listener := range []string{"grpc", "http", "resp"} {
		text += fmt.Sprintf("  %s: {address: '127.0.0.1:0', auth: %s}\n", listener, auth)
	}
	return text + limits
}

// clients asks an instance over every protocol.
type clients struct {
	at    string // of the admin listener
	grpc  *grpc.ClientConn
	http  string
	resp  string
	token string
}

func clientsOf(t *testing.T, i *Instance, token string) *clients {
	t.Helper()
	at := i.Addresses()
	conn, err := grpc.NewClient("passthrough:///"+at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &clients{at: at.Admin, grpc: conn, http: at.HTTP, resp: at.RESP, token: token}
}

// call decides over gRPC.
func (c *clients) call(t *testing.T) error {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+c.token)
	out := new(headgatev1.DecideResponse)
	err := c.grpc.Invoke(ctx, "/headgate.v1.Decisions/Decide", &headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: "/"}}}, out)
	if err == nil && out.GetAnswers()[0].GetError() != nil {
		return status.Error(codes.Code(out.GetAnswers()[0].GetError().GetCode()), out.GetAnswers()[0].GetError().GetMessage())
	}
	return err
}

// post decides over HTTP.
func (c *clients) post(t *testing.T) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.http+"/v1/decide", strings.NewReader(`{"path": "/"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// commands sends commands of the Redis protocol on one connection, and gives the first line of each answer.
func (c *clients) commands(t *testing.T, all ...string) (answers []string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", c.resp)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(conn)
	ask := func(command string) string {
		if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
			t.Fatal(err)
		}
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return line
	}
	for _, command := range all {
		first := ask(command)
		answers = append(answers, first)
		if !strings.ContainsAny(first[:1], "%*") {
			continue
		}
		for line := ask("PING"); line != "+PONG\r\n"; { // The rest of a list comes before.
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatalf("%s: %v", command, err)
			}
		}
	}
	return answers
}

// TestClientAboveItsLimit: a caller above server.limits.caller gets the answer of each protocol, and the metric counts it.
func TestClientAboveItsLimit(t *testing.T) {
	o := serverOptions(t, everyListener("token", fmt.Sprintf(
		"  limits: {caller: 2/1h}\n  callers: [{name: a, tokens: [%q], scopes: [decide, read]}]\n"+
			"rules: [{name: all, key: [all], limits: [1000/1h]}]", digest("one"))))
	i := startServer(t, o)
	c := clientsOf(t, i, "one")
	for range 2 {
		if err := c.call(t); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.call(t); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "server.limits.caller") {
		t.Errorf("gRPC answers %v", err)
	}
	if code, header, text := c.post(t); code != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("HTTP answers %d %v %s", code, header, text)
	}
	if got := c.commands(t, "AUTH one", "HG.DECIDE path=/"); !strings.HasPrefix(got[1], "-BUSY") {
		t.Errorf("the Redis protocol answers %q", got)
	}
	_, text := get(t, c.at+"/metrics")
	for _, listener := range []string{"server.grpc", "server.http", "server.resp"} {
		want := fmt.Sprintf(`headgate_refused_clients_total{listener=%q,reason="busy"} 1`, listener)
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// TestRefusedSubrequests: with refuse=403, the refusals of access control have this status too, and name their own one. A gateway
// above server.limits gets 503: its client is within its limits.
func TestRefusedSubrequests(t *testing.T) {
	settings := everyListener("token", fmt.Sprintf("  limits: {caller: 1/1h}\n  callers:\n  - {name: a, tokens: [%q], scopes: [decide]}\n"+
		"  - {name: b, tokens: [%q], scopes: [read]}\n", digest("one"), digest("two")))
	i := startServer(t, serverOptions(t, strings.Replace(settings, "192.0.2.0/24", "127.0.0.1", 1)))
	for n, row := range []struct {
		query, token string
		code         int
		status       string
	}{
		{"from=original&refuse=403", "one", http.StatusNoContent, ""},
		{"from=original&refuse=403", "one", http.StatusServiceUnavailable, ""},
		{"from=original&refuse=403", "two", http.StatusForbidden, "403"},
		{"from=original&refuse=403", "none", http.StatusForbidden, "401"},
		{"from=original", "one", http.StatusServiceUnavailable, ""},
		{"from=original", "none", http.StatusUnauthorized, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.Addresses().HTTP+"/v1/decide?"+row.query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{
			access.TokenField: {row.token}, "X-Original-Method": {"GET"}, "X-Original-Uri": {"/"}, "X-Forwarded-For": {"192.0.2.1"},
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		limited := row.code == http.StatusServiceUnavailable
		retry, own := answer.Header.Get("Retry-After"), answer.Header.Get(httpdecide.StatusField)
		if answer.StatusCode != row.code || own != row.status || (retry != "") != limited {
			t.Errorf("row %d: got %d, %v", n, answer.StatusCode, answer.Header)
		}
	}
}

// TestGatewayAboveItsAddressLimit: a subrequest above the limit of its address, before authentication, has 503 too.
func TestGatewayAboveItsAddressLimit(t *testing.T) {
	i := startServer(t, serverOptions(t, "server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', limits: {address: 1/1h}}\n"))
	for _, want := range []int{http.StatusForbidden, http.StatusServiceUnavailable} { // The first is that of a peer outside trusted_proxies.
		if status, text := get(t, i.Addresses().HTTP+"/v1/decide?from=original&refuse=403"); status != want {
			t.Errorf("got %d %s, want %d", status, text, want)
		}
	}
}

// TestAddressAboveItsLimit: an address above server.limits is refused before it authenticates.
func TestAddressAboveItsLimit(t *testing.T) {
	i := startServer(t, serverOptions(t, everyListener("none", "  limits: {address: 3/1h}\n")))
	c := clientsOf(t, i, "none")
	for range 3 {
		if got := c.commands(t, "PING"); got[0] != "+PONG\r\n" && !strings.HasPrefix(got[0], "-BUSY") {
			t.Errorf("PING is answered with %q", got)
		}
	}
	if err := c.call(t); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC answers %v", err)
	}
	if code, header, _ := c.post(t); code != http.StatusTooManyRequests || header.Get("Retry-After") == "" {
		t.Errorf("HTTP answers %d %v", code, header)
	}
	if got := c.commands(t, "PING"); !strings.HasPrefix(got[0], "-BUSY") {
		t.Errorf("the Redis protocol answers %q", got)
	}
}

// TestConnectionsAboveTheirLimit: further connections of an address are closed, on each listener.
func TestConnectionsAboveTheirLimit(t *testing.T) {
	i := startServer(t, serverOptions(t, everyListener("none", "  limits: {connections: 4/1h}\n")))
	at := i.Addresses()
	closed := func(at string) bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, "PING\r\n")
		text, err := io.ReadAll(io.LimitReader(conn, 1))
		return len(text) == 0 && !errors.Is(err, os.ErrDeadlineExceeded)
	}
	for n := range 4 {
		if closed(at.RESP) {
			t.Errorf("connection %d is closed", n)
		}
	}
	for _, listener := range []string{at.RESP, at.HTTP, at.GRPC} {
		if !closed(listener) {
			t.Errorf("a fifth connection to %s is open", listener)
		}
	}
}

// TestHelloAuthenticates: HELLO with a token makes a connection that of its caller.
func TestHelloAuthenticates(t *testing.T) {
	o := serverOptions(t, everyListener("token", fmt.Sprintf("  callers: [{name: a, tokens: [%q], scopes: [decide]}]\n", digest("one"))))
	c := clientsOf(t, startServer(t, o), "one")
	if got := c.commands(t, "HELLO 3 AUTH a one", "HG.DECIDE path=/", "CL.THROTTLE k 1 1 1"); !strings.HasPrefix(got[0], "%") ||
		!strings.HasPrefix(got[1], "%") || !strings.HasPrefix(got[2], "-NOPERM") {
		t.Errorf("with a token: %q", got)
	}
	if got := c.commands(t, "HELLO 3 AUTH a two"); !strings.HasPrefix(got[0], "-WRONGPASS") {
		t.Errorf("with a wrong token: %q", got)
	}
	if got := c.commands(t, "HELLO 3"); !strings.HasPrefix(got[0], "-NOAUTH") {
		t.Errorf("without a token: %q", got)
	}
}

// TestSentLimitNeedsItsScope: a descriptor with a limit of its own needs the scope send_limits beside decide.
func TestSentLimitNeedsItsScope(t *testing.T) {
	o := serverOptions(t, everyListener("token", fmt.Sprintf("  callers:\n  - {name: a, tokens: [%q], scopes: [decide]}\n"+
		"  - {name: b, tokens: [%q], scopes: [decide, send_limits]}\n  - {name: c, tokens: [%q], scopes: [send_limits]}\n",
		digest("one"), digest("both"), digest("other")))+
		"domains: {shop: {descriptors: [{key: k, limits: 5/1h}]}}\nrules: []\n")
	c := clientsOf(t, startServer(t, o), "")
	call := func(token string, limited bool) error {
		d := &ratelimitv3.RateLimitDescriptor{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}}
		if limited {
			d.Limit = &ratelimitv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1000, Unit: typev3.RateLimitUnit_HOUR}
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		_, err := rlsv3.NewRateLimitServiceClient(c.grpc).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
			Domain: "shop", Descriptors: []*ratelimitv3.RateLimitDescriptor{d},
		})
		return err
	}
	for _, row := range []struct {
		token   string
		limited bool
		code    codes.Code
	}{
		{"one", false, codes.OK},
		{"one", true, codes.PermissionDenied},
		{"both", true, codes.OK},
		{"both", false, codes.OK},
		{"other", true, codes.PermissionDenied},
		{"other", false, codes.PermissionDenied},
	} {
		if err := call(row.token, row.limited); status.Code(err) != row.code {
			t.Errorf("token %s, with a limit %t: %v, want %s", row.token, row.limited, err, row.code)
		}
	}
}

// TestCallersFileIsReadAgain: a running server takes a changed file of callers, and keeps the former callers after a
// faulty one.
func TestCallersFileIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "callers.yaml")
	write := func(text string) {
		if err := errors.Join(os.WriteFile(file+".next", []byte(text), 0o600), os.Rename(file+".next", file)); err != nil {
			t.Fatal(err)
		}
	}
	caller := func(token string) string {
		return fmt.Sprintf("callers: [{name: a, tokens: [%q], scopes: [decide]}]\n", digest(token))
	}
	path := filepath.Join(folder, "headgate.yaml")
	text := "version: 1\nmax_memory: 1MiB\nadmin: {listen: '127.0.0.1:0', health: off}\n" +
		everyListener("token", "  callers_file: callers.yaml\nrules: [{name: all, key: [all], limits: [1000/1h]}]\n")
	write(caller("one"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := serverOptions(t, "")
	o.Path, o.Load = path, func() (*config.Config, error) { return config.Load(path) }
	var err error
	if o.Config, err = o.Load(); err != nil {
		t.Fatal(err)
	}
	i := startServer(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := i.follow(ctx)
	defer func() { cancel(); <-ended }()
	one, two := clientsOf(t, i, "one"), clientsOf(t, i, "two")
	if one.call(t) != nil || status.Code(two.call(t)) != codes.Unauthenticated {
		t.Errorf("before: one gets %v, two %v", one.call(t), two.call(t))
	}
	write(caller("two"))
	eventually(t, "the new callers", func() bool { return two.call(t) == nil })
	if err := one.call(t); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a removed token gets %v", err)
	}
	write("callers: [{name: a, tokens: [none], scopes: [decide]}]\n")
	eventually(t, "the failed reload", func() bool { return i.Status().Reload.Failed > 0 })
	if err := two.call(t); err != nil {
		t.Errorf("after a faulty file: %v", err)
	}
}

// TestWarnsOfOpenListeners: a listener outside loopback without auth is named at the start, and others are not.
func TestWarnsOfOpenListeners(t *testing.T) {
	for settings, warns := range map[string]bool{
		"server: {grpc: '127.0.0.1:0', http: off}": false,
		"server: {grpc: ':0', http: off}":          true,
		"server: {grpc: {address: ':0', auth: token}, http: off, callers: [{name: a, tokens: [\"" + digest("one") + "\"], scopes: [decide]}]}": false,
	} {
		var lines logs.Text
		o := serverOptions(t, settings)
		o.Log = lines.Logger()
		startServer(t, o)
		if got := strings.Contains(lines.String(), "every client that reaches a listener may use it") &&
			strings.Contains(lines.String(), "listener=server.grpc"); got != warns {
			t.Errorf("%s: warned %t, want %t\n%s", settings, got, warns, lines.String())
		}
	}
}
