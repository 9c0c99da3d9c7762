package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/internal/testkit/decisions"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/grpclimit"
	"github.com/headgate/headgate/middleware/httplimit"
)

// twinRules have a rule of each kind. Their windows are long, so that both sides count in the same ones.
const twinRules = `
identity: {trusted_proxies: [192.0.2.1], user_ip_headers: [X-User-Ip]}
rules:
- {name: client, match: {path: /client}, key: ["header:X-Client-Id"], algorithm: fixed_window, limits: [2/365d]}
- {name: session, match: {path: /session}, key: ["cookie:session"], algorithm: fixed_window, limits: [1/365d]}
- {name: chain, match: {path: /chain}, key: [xff_ip], algorithm: fixed_window, limits: [1/365d]}
- {name: user, match: {path: /user}, key: [user_ip], algorithm: fixed_window, limits: [1/365d]}
- {name: host, match: {path: /host, hosts: [shop.example]}, key: [host], algorithm: fixed_window, limits: [1/365d]}
- {name: moved, match: {path: /moved/*}, key: [ip], algorithm: fixed_window, limits: [1/365d], on_exceed: {action: redirect, location: "https://b.example/{path}"}}
- {name: less, match: {path: /less}, key: [ip], algorithm: fixed_window, limits: [1/365d], on_exceed: {action: degrade, header: X-Level, value: low}}
- {name: soft, match: {path: /soft}, key: [ip], algorithm: fixed_window, limits: [3/365d], soft: 34%}
- {name: cost, match: {path: /cost}, key: [ip], algorithm: fixed_window, limits: [10/365d], cost: "header:X-Cost", max_cost: 10}
- {name: teapot, match: {path: /teapot}, key: [ip], algorithm: fixed_window, limits: [1/365d], on_exceed: {action: reject, status: 418}}
- {name: both-a, match: {path: /both}, key: [ip], algorithm: fixed_window, limits: [1/365d]}
- {name: both-b, match: {path: /both}, key: [all], algorithm: fixed_window, limits: [1/365d]}
- {name: metered, match: {path: /metered}, key: ["header:X-Client-Id"], quota: calls}
- {name: slow, match: {path: /slow}, key: ["header:X-Client-Id"], quota: slow-calls}
default_plan: paid
plans:
  paid:
    after: meter
    quotas: {calls: [{limit: 1/365d, soft: 50%, hard: 3}], slow-calls: [{limit: 2/365d}]}
  slow:
    after: degrade
    header: X-Slow
    value: yes
    quotas: {calls: [{limit: 1/365d}], slow-calls: [{limit: 1/365d, hard: 2}]}
customers: {slow: {plan: slow}}
`

// served gives what a service behind the middleware gets, and its client.
func served(h http.Handler, r *http.Request) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text := fmt.Sprintf("%d %v\n%s", w.Code, w.Header(), w.Body)
	return regexp.MustCompile(`t=[0-9]+|"retry-?[aA]fter": ?[0-9]+|Retry-After:\[[0-9]+\]|[0-9]+ s(econds?)?\b`).ReplaceAllString(text, "TIME")
}

// echo is a service that shows the headers which it gets.
func echo(w http.ResponseWriter, r *http.Request) {
	var names []string
	for name, values := range r.Header {
		names = append(names, name+"="+strings.Join(values, ","))
	}
	slices.Sort(names)
	_, _ = fmt.Fprint(w, r.URL.Path, names)
}

// TestGuardIsTheTwinOfRules: a program whose rules decide on a server behaves as one with the rules.
func TestGuardIsTheTwinOfRules(t *testing.T) {
	k := connect(t, client.Config{}, decisions.Start(t, guards.New(t, twinRules), ""))
	ours := httplimit.New(k.Guard(), httplimit.Options{})(http.HandlerFunc(echo))
	twin := httplimit.New(guards.New(t, twinRules), httplimit.Options{})(http.HandlerFunc(echo))
	for _, row := range []struct {
		path    string
		headers map[string]string
		host    string
	}{
		{"/none", nil, ""},
		{"/client", map[string]string{"X-Client-Id": "a"}, ""},
		{"/client", map[string]string{"X-Client-Id": " a "}, ""},
		{"/client", nil, ""},
		{"/client", map[string]string{"x-client-id": "b"}, ""},
		{"/session", map[string]string{"Cookie": "x=1; session=s"}, ""},
		{"/chain", map[string]string{"X-Forwarded-For": "198.51.100.7"}, ""},
		{"/chain", map[string]string{"X-Forwarded-For": "198.51.100.8, 192.0.2.1"}, ""},
		{"/user", map[string]string{"X-User-Ip": "198.51.100.9"}, ""},
		{"/user", map[string]string{"X-User-Ip": "198.51.100.10"}, ""},
		{"/host", nil, "shop.example"},
		{"/host", nil, "SHOP.example:443"},
		{"/host", nil, "other.example"},
		{"/moved/a%20b", nil, ""},
		{"/less", map[string]string{"X-Level": "forged"}, ""},
		{"/soft", map[string]string{"Headgate-Warning": "forged"}, ""},
		{"/cost", map[string]string{"X-Cost": "4"}, ""},
		{"/cost", map[string]string{"X-Cost": "30"}, ""},
		{"/teapot", nil, ""},
		{"/metered", map[string]string{"X-Client-Id": "a"}, ""},
		{"/slow", map[string]string{"X-Client-Id": "slow", "X-Slow": "forged"}, ""},
		{"/both", nil, ""},
		{"//client", nil, ""},
	} {
		for n := range 4 {
			request := func() *http.Request {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example"+row.path, http.NoBody)
				if r.RemoteAddr = "192.0.2.1:1234"; row.host != "" {
					r.Host = row.host
				}
				for name, value := range row.headers {
					r.Header[http.CanonicalHeaderKey(name)] = []string{value}
				}
				return r
			}
			if got, want := served(ours, request()), served(twin, request()); got != want {
				t.Errorf("%s %v, request %d:\n%s\nwant\n%s", row.path, row.headers, n, got, want)
			}
		}
	}
	if got := k.Stats(); got.Fallbacks != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestGuardFollowsReloads: what changed rules read is sent from the next requests on.
func TestGuardFollowsReloads(t *testing.T) {
	const by = "rules: [{name: a, match: {path: /a}, key: [\"header:%s\"], algorithm: fixed_window, limits: [1/365d]}]"
	g := guards.New(t, fmt.Sprintf(by, "X-Old"))
	k := connect(t, client.Config{}, decisions.Start(t, g, ""))
	h := httplimit.New(k.Guard(), httplimit.Options{})(http.HandlerFunc(echo))
	ask := func(name, value string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", http.NoBody)
		r.Header.Set(name, value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if ask("X-Old", "1") != http.StatusOK || ask("X-Old", "2") != http.StatusOK || ask("X-Old", "1") != http.StatusTooManyRequests {
		t.Fatal("the first rules do not count by X-Old")
	}
	next := guards.Config(t, fmt.Sprintf(by, "X-New"), g.Store())
	if err := g.Reload(next); err != nil {
		t.Fatal(err)
	}
	until(t, "the new header", func() bool { return ask("X-New", fmt.Sprint(k.Stats().Decided)) == http.StatusOK })
	if ask("X-New", "x") != http.StatusOK || ask("X-New", "x") != http.StatusTooManyRequests {
		t.Error("the new rules do not count by X-New")
	}
}

// TestGuardFallbacks: without a server, the fallback decides, and refusals are those of an unreachable store.
func TestGuardFallbacks(t *testing.T) {
	local := guards.New(t, "rules: [{name: a, match: {path: /a}, key: [\"header:X-Client-Id\"], limits: [1/1d]}]")
	for _, row := range []struct {
		fallback guard.Fallback
		local    *guard.Guard
		want     [2]int
	}{
		{guard.FallbackAllow, nil, [2]int{200, 200}},
		{guard.FallbackDeny, nil, [2]int{503, 503}},
		{guard.FallbackError, nil, [2]int{503, 503}},
		{guard.FallbackLocal, local, [2]int{200, 429}},
	} {
		k := connect(t, client.Config{Servers: []string{unused(t)}, Fallback: row.fallback, Local: row.local, Timeout: client.DefaultTimeout})
		h := httplimit.New(k.Guard(), httplimit.Options{})(http.HandlerFunc(echo))
		for n, want := range row.want {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", http.NoBody)
			r.Header.Set("X-Client-Id", "c")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%v, request %d: status %d, want %d", row.fallback, n, w.Code, want)
			}
		}
	}
}

// TestGuardOfGRPC: the interceptors of grpclimit ask the server too.
func TestGuardOfGRPC(t *testing.T) {
	const text = "rules: [{name: a, match: {path: /shop.Orders/Get}, key: [\"header:X-Client-Id\"], algorithm: fixed_window, limits: [2/365d]}]"
	k := connect(t, client.Config{}, decisions.Start(t, guards.New(t, text), ""))
	intercept := grpclimit.Unary(k.Guard(), grpclimit.Options{})
	call := func(id string) codes.Code {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-client-id", id))
		_, err := intercept(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/shop.Orders/Get"}, func(context.Context, any) (any, error) {
			return "served", nil
		})
		return status.Code(err)
	}
	for n, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		if got := call("a"); got != want {
			t.Errorf("call %d: %v, want %v", n, got, want)
		}
	}
	if got := call("b"); got != codes.OK {
		t.Errorf("another client: %v", got)
	}
}

// TestGuardOfCaller: a caller that leaves gets its own error, and what the server says about a request is no refusal.
func TestGuardOfCaller(t *testing.T) {
	k := connect(t, client.Config{}, decisions.Start(t, guards.New(t, rules), ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var a guard.Answer
	if err := k.Guard().Decide(ctx, &headgate.Request{Path: "/many"}, &a); !errors.Is(err, context.Canceled) || a.Verdict != headgate.Deny {
		t.Errorf("a caller that has left: %v, %v", a.Verdict, err)
	}
	var fault *guard.RequestError
	if err := k.Guard().Decide(t.Context(), &headgate.Request{Path: "no slash"}, &a); !errors.As(err, &fault) || a.Verdict != headgate.Deny {
		t.Errorf("an invalid request: %v, %v", a.Verdict, err)
	}
	if _, err := guard.New(guard.Config{Decider: nil, Rules: nil}); err != nil {
		t.Errorf("no Decider: %v", err)
	}
}
