package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/rueidis"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/server"
	"github.com/headgate/headgate/internal/config"
	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// method is a row of the table in docs/security.md.
type method struct{ listener, name, scope string }

// anyCaller is the scope of methods that need a caller, and no scope of it.
const anyCaller = "any caller"

// methodsOfTheDocumentation reads the table.
func methodsOfTheDocumentation(t *testing.T) (all []method) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`server.") && !strings.Contains(cells[1], "`admin.") {
			continue
		}
		verb := ""
		for i, name := range strings.Split(cells[2], ",") {
			name = strings.Trim(name, " `")
			if before, _, found := strings.Cut(name, " "); found && i == 0 {
				verb = before + " "
			} else if i > 0 {
				name = verb + name
			}
			all = append(all, method{strings.Trim(cells[1], " `"), name, strings.Trim(cells[3], " `")})
		}
	}
	return all
}

// asker calls methods of an instance.
type asker struct {
	instance *Instance
	grpc     *grpc.ClientConn
}

// The answers to a client.
const (
	wasAnswered     = "answered"
	unauthenticated = "unauthenticated"
	forbidden       = "forbidden"
)

// ask calls a method with a token; "" sends none.
func (a *asker) ask(t *testing.T, m method, token string) string {
	t.Helper()
	at := a.instance.Addresses()
	switch m.listener {
	case "server.grpc":
		return a.call(t, m.name, token)
	case "server.resp":
		return command(t, at.RESP, m.name, token)
	case "server.http":
		return requested(t, at.HTTP, m.name, token)
	case "admin.listen":
		return requested(t, at.Admin, m.name, token)
	default:
		return requested(t, at.Health, m.name, token)
	}
}

// call calls a method of gRPC.
func (a *asker) call(t *testing.T, name, token string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	limited := &rlsv3.RateLimitRequest{Domain: "none", Descriptors: []*ratelimitv3.RateLimitDescriptor{
		{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}},
	}}
	decided := &headgatev1.DecideRequest{Requests: []*headgatev1.Request{{Path: "/"}}}
	released := &leasev1.ReportRequest{Holder: "the-name-of-one-holder", Seq: 1, Claims: []*leasev1.Claim{{Resource: "db", Release: true}}}
	var err error
	switch name {
	case "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit":
		err = a.grpc.Invoke(ctx, name, limited, new(rlsv3.RateLimitResponse))
	case "/headgate.v1.Decisions/Decide":
		err = a.grpc.Invoke(ctx, name, decided, new(headgatev1.DecideResponse))
	case "/headgate.v1.Decisions/Stream":
		err = a.stream(ctx, name, decided, new(headgatev1.DecideResponse))
	case "/headgate.lease.v1.Leases/Report":
		err = a.grpc.Invoke(ctx, name, released, new(leasev1.ReportResponse))
	case "/headgate.lease.v1.Leases/Stream":
		err = a.stream(ctx, name, new(leasev1.ReportRequest), new(leasev1.ReportResponse))
	case "/grpc.health.v1.Health/Watch":
		err = a.stream(ctx, name, new(healthpb.HealthCheckRequest), new(healthpb.HealthCheckResponse))
	case "/grpc.health.v1.Health/Check":
		err = a.grpc.Invoke(ctx, name, new(healthpb.HealthCheckRequest), new(healthpb.HealthCheckResponse))
	case "/grpc.health.v1.Health/List":
		err = a.grpc.Invoke(ctx, name, new(healthpb.HealthListRequest), new(healthpb.HealthListResponse))
	default:
		t.Fatalf("the test does not know how to call %s", name)
	}
	switch status.Code(err) {
	case codes.OK:
		return wasAnswered
	case codes.Unauthenticated:
		return unauthenticated
	case codes.PermissionDenied:
		return forbidden
	default:
		return err.Error()
	}
}

func (a *asker) stream(ctx context.Context, name string, in, out any) error {
	stream, err := a.grpc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, name)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(in) // The errors come from RecvMsg.
	_ = stream.CloseSend()
	return stream.RecvMsg(out)
}

// requested sends a request like GET /path.
func requested(t *testing.T, at, name, token string) string {
	t.Helper()
	verb, path, _ := strings.Cut(name, " ")
	body := ""
	switch path {
	case "/json":
		body = `{"domain": "none", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`
	case "/v1/decide":
		body = map[string]string{http.MethodPost: `{"path": "/"}`}[verb]
		path += map[string]string{http.MethodGet: "?from=original"}[verb]
	case "/api/v1/rules", "/api/v1/plans", "/api/v1/customers":
		if verb != http.MethodGet {
			body, path = "{}", path+"?name=none&revision=0" // The file can only be read: a conflict.
		}
	case "/api/v1/usage/reset":
		path += "?customer=none" // It is not found, because no rule has a quota.
	case "/api/v1/explain":
		body = `{"request": "GET /v1/search"}`
	case "/api/v1/key/get", "/api/v1/key/reset", "/api/v1/key/ban", "/api/v1/key/unban":
		body = `{"rule": "none"}` // It is not found.
		if strings.HasSuffix(path, "/ban") {
			body = `{"rule": "none", "for": "1h"}`
		}
	case "/api/v1/mode":
		body = map[string]string{http.MethodPost: `{"mode": "file"}`}[verb] // It ends overrides, and there is none.
	case "/api/v1/key/limit":
		body = `{"rule": "none", "value": "x", "end": true}`
	case "/api/v1/trials":
		body = map[string]string{http.MethodPost: `{"rule": "none", "limits": ["1/1s"]}`}[verb]
	case "/api/v1/history":
		path += "?series=requests"
	case "/debug/pprof/profile":
		path += "?seconds=1"
	case "/debug/pprof/trace":
		path += "?seconds=0.01"
	}
	path = strings.NewReplacer("{id}", "none", "{name}", "none").Replace(path)
	req, err := http.NewRequestWithContext(t.Context(), verb, "http://"+at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Original-Method", http.MethodGet)
	req.Header.Set("X-Original-URI", "/")
	req.Header.Set("X-Forwarded-For", "192.0.2.1")
	if field, subrequest := "Authorization", strings.HasPrefix(path, "/v1/decide?"); token != "" {
		if !subrequest {
			token = "Bearer " + token
		} else {
			field = access.TokenField
		}
		req.Header.Set(field, token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return unauthenticated
	case http.StatusForbidden:
		return forbidden
	case http.StatusOK, http.StatusNoContent, http.StatusConflict: // A reload without a file fails.
		return wasAnswered
	case http.StatusNotFound: // There is no such ban, no fair share, and no quota.
		if verb == http.MethodDelete || path == "/api/v1/shares" || strings.HasPrefix(path, "/api/v1/usage/reset") ||
			strings.HasPrefix(path, "/api/v1/key/") || path == "/api/v1/trials" {
			return wasAnswered
		}
	}
	return answer.Status
}

// command sends a command of the Redis protocol.
func command(t *testing.T, at, name, token string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(conn)
	if token != "" && name != "AUTH" && name != "HELLO" {
		_, _ = fmt.Fprintf(conn, "AUTH %s\r\n", token)
		if line, _ := in.ReadString('\n'); strings.HasPrefix(line, "-WRONGPASS") {
			return unauthenticated
		}
	}
	args := map[string]string{
		"CL.THROTTLE": " k 1 1 1", "THROTTLE": " k 1 1 1", "HG.DECIDE": " path=/", "ECHO": " a", "SELECT": " 0", "CLIENT": " ID",
		"AUTH": " " + token, "HELLO": " 3 AUTH caller " + token,
	}
	if token == "" && (name == "AUTH" || name == "HELLO") {
		return wasAnswered // There is nothing to call without one.
	}
	_, _ = fmt.Fprintf(conn, "%s%s\r\n", name, args[name])
	line, err := in.ReadString('\n')
	switch {
	case err != nil:
		t.Fatalf("%s: %v", name, err)
	case strings.HasPrefix(line, "-NOAUTH"), strings.HasPrefix(line, "-WRONGPASS") && (name == "AUTH" || name == "HELLO"):
		return unauthenticated
	case strings.HasPrefix(line, "-NOPERM"):
		return forbidden
	case strings.HasPrefix(line, "-"):
		return line
	}
	return wasAnswered
}

// scoped makes a caller for each of some scopes, whose token is its name, and one without each of them.
func scoped() (yaml string) {
	scopes := []string{"decide", "send_limits", "read", "administer", "lease"}
	add := func(token string, has []string) {
		yaml += fmt.Sprintf("    - {name: %s, tokens: [%q], scopes: [%s]}\n", token, digest(token), strings.Join(has, ", "))
	}
	for i, scope := range scopes {
		add("only-"+scope, []string{scope})
		add("not-"+scope, slices.Concat(scopes[:i], scopes[i+1:]))
	}
	return yaml
}

// startGuarded starts an instance whose listeners have an auth.
func startGuarded(t *testing.T, auth string) *asker {
	t.Helper()
	settings := "identity: {trusted_proxies: [127.0.0.1]}\nserver:\n"
	for _, listener := range []string{"grpc", "http", "resp"} {
		settings += fmt.Sprintf("  %s: {address: '127.0.0.1:0', auth: %s}\n", listener, auth)
	}
	o := serverOptions(t, settings+"  callers:\n"+scoped()+"lease: {resources: [{match: '*', capacity: 5/s}]}\n")
	if auth != "none" {
		o.Config.Admin.Auth = config.AuthToken
	}
	a := &asker{instance: startServer(t, o)}
	var err error
	a.grpc, err = grpc.NewClient("passthrough:///"+a.instance.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.grpc.Close() })
	eventually(t, "the health", func() bool { return serving(t, a.instance.Addresses().GRPC, "ratelimit") })
	return a
}

// TestAccess walks the table of docs/security.md: each method of each listener, with and without its scope.
func TestAccess(t *testing.T) {
	t.Parallel()
	a, without := startGuarded(t, "token"), startGuarded(t, "none")
	all := methodsOfTheDocumentation(t)
	if len(all) < 40 {
		t.Fatalf("the documentation lists %d methods", len(all))
	}
	for _, m := range all {
		check := func(about, token, want string) {
			t.Helper()
			if got := a.ask(t, m, token); got != want {
				t.Errorf("%s %s %s: %s, want %s", m.listener, m.name, about, got, want)
			}
		}
		if got := without.ask(t, m, ""); got != wasAnswered {
			t.Errorf("%s %s of a listener without auth: %s", m.listener, m.name, got)
		}
		switch m.scope {
		case "":
			check("without a token", "", wasAnswered)
		case anyCaller:
			check("without a token", "", unauthenticated)
			check("with a wrong token", "wrong", unauthenticated)
			check("with a token", "only-read", wasAnswered)
		default:
			check("without a token", "", unauthenticated)
			check("with a wrong token", "wrong", unauthenticated)
			check("without the scope", "not-"+m.scope, forbidden)
			check("with the scope", "only-"+m.scope, wasAnswered)
		}
	}
}

// TestFloodLeavesTheAdminListener: clients that use up server.limits.address do not lock an operator at their address out.
func TestFloodLeavesTheAdminListener(t *testing.T) {
	i := startServer(t, serverOptions(t, "server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', limits: {address: 3/1h}}\n"))
	eventually(t, "the limit", func() bool {
		status, _ := get(t, i.Addresses().HTTP+"/v1/decide?from=original")
		return status != http.StatusForbidden // That of a peer outside trusted_proxies.
	})
	for range 3 {
		if status, body := get(t, i.Addresses().Admin+"/api/v1/status"); status != http.StatusOK {
			t.Fatalf("the admin listener answers %d: %s", status, body)
		}
	}
	if status, _ := get(t, i.Addresses().Admin+"/api/v1/status"); status != http.StatusTooManyRequests {
		t.Errorf("the admin listener answers %d above its limit", status)
	}
}

// TestNobodyAdministersFromAfar: on an admin listener outside loopback without auth, calls that need administer are refused, and
// the others are answered. TestAccess has a listener on loopback.
func TestNobodyAdministersFromAfar(t *testing.T) {
	o := serverOptions(t, "lease: {resources: [{match: '*', capacity: 5/s}]}\n")
	o.Config.Admin.Listen = ":0"
	_, port, err := net.SplitHostPort(startServer(t, o).Addresses().Admin)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, m := range methodsOfTheDocumentation(t) {
		if m.listener != "admin.listen" {
			continue
		}
		want := wasAnswered
		if m.scope == "administer" {
			want = forbidden
			refused++
		}
		if got := requested(t, "127.0.0.1:"+port, m.name, ""); got != want {
			t.Errorf("%s: %s, want %s", m.name, got, want)
		}
	}
	if refused < 5 {
		t.Errorf("%d methods of the documentation need administer", refused)
	}
}

// TestEveryMethodHasARow: docs/security.md lists each method of each listener.
func TestEveryMethodHasARow(t *testing.T) {
	a := startGuarded(t, "none")
	var listed []string
	for _, m := range methodsOfTheDocumentation(t) {
		listed = append(listed, m.listener+" "+m.name)
	}
	for _, name := range methodsOf(t, a) {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/security.md has no row for %s", name)
		}
	}
}

// methodsOf lists what an instance serves.
func methodsOf(t *testing.T, a *asker) (all []string) {
	t.Helper()
	for _, c := range a.instance.components {
		if c, serves := c.(*server.Server); serves {
			registered := grpc.NewServer()
			for _, register := range c.GRPCServices() {
				register(registered)
			}
			healthpb.RegisterHealthServer(registered, healthpb.UnimplementedHealthServer{})
			for service, info := range registered.GetServiceInfo() {
				for _, m := range info.Methods {
					all = append(all, "server.grpc /"+service+"/"+m.Name)
				}
			}
			verbs := map[string][]string{"/json": {"POST "}, "/v1/decide": {"GET ", "POST "}}
			for _, s := range c.HTTPServices() {
				for _, verb := range append(verbs[s.Pattern], "")[:max(1, len(verbs[s.Pattern]))] {
					all = append(all, "server.http "+verb+s.Pattern)
				}
			}
		}
		for _, r := range c.Calls() {
			pattern := strings.TrimSuffix(r.Pattern, "{$}") // The row is of the path.
			if !strings.Contains(pattern, " ") {
				pattern = "GET " + pattern
			}
			all = append(all, "admin.listen "+pattern)
		}
	}
	return append(all, commandsOf(t, a.instance.Addresses().RESP)...)
}

// commandsOf lists the commands of the Redis protocol.
func commandsOf(t *testing.T, at string) (all []string) {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{at}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	commands, err := client.Do(t.Context(), client.B().Arbitrary("COMMAND").Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		entry, err := c.ToArray()
		name, wrong := entry[0].ToString()
		if err := errors.Join(err, wrong); err != nil {
			t.Fatal(err)
		}
		all = append(all, "server.resp "+strings.ToUpper(name))
	}
	return all
}
