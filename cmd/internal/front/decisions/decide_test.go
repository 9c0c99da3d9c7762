package decisions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// everyField has a rule for each attribute of a request.
const everyField = `
identity: {trusted_proxies: [10.0.0.0/8]}
rules:
- {name: method, match: {methods: [PUT]}, key: [all], limits: [1/1d]}
- {name: host, match: {hosts: [api.example.com]}, key: [host], limits: [1/1d]}
- {name: path, match: {path: /a/*}, key: [path], limits: [1/1d]}
- {name: ip, match: {path: /ip}, key: [ip], limits: [1/1d]}
- {name: forwarded, match: {path: /xff}, key: [xff_ip], limits: [1/1d]}
- {name: header, match: {path: /header}, key: ["header:X-Client-Id"], limits: [1/1d]}
- {name: cookie, match: {path: /cookie}, key: ["cookie:id"], limits: [1/1d]}
- {name: query, match: {path: /query}, key: ["query:user"], limits: [1/1d]}
- {name: segment, match: {path: "/users/{id}/**", hosts: ["{sub}.example"]}, key: ["path:{id}", "host:{sub}"], limits: [1/1d]}
- {name: subject, match: {path: /subject}, key: [mtls_subject], limits: [1/1d]}
- {name: domain, match: {domain: shop}, key: ["descriptor:tenant"], limits: [1/1d]}
- {name: cost, match: {path: /cost}, key: [all], limits: [9/1d]}
`

// TestAttributes: each attribute of a request chooses what it counts under. Of two rows with one policy,
// the second one is refused if it counts under the same key.
func TestAttributes(t *testing.T) {
	r := serve(t, guards.New(t, everyField), Options{})
	header := func(path, name, value string) *headgatev1.Request {
		return &headgatev1.Request{Path: path, Headers: map[string]string{name: value}}
	}
	for i, row := range []struct {
		request *headgatev1.Request
		policy  string
		denied  bool
	}{
		{&headgatev1.Request{Method: "PUT"}, "method", false},
		{&headgatev1.Request{Method: "PUT"}, "method", true},
		{&headgatev1.Request{Host: "API.example.com:8080"}, "host", false},
		{&headgatev1.Request{Host: "api.example.com."}, "host", true},
		{&headgatev1.Request{Path: "/a/b"}, "path", false},
		{&headgatev1.Request{Path: "/x/..//a/./b"}, "path", true},
		{&headgatev1.Request{Path: "/a/c"}, "path", false},
		{&headgatev1.Request{Path: "/ip", Ip: "192.0.2.1"}, "ip", false},
		{&headgatev1.Request{Path: "/ip", Ip: "::ffff:192.0.2.1"}, "ip", true},
		{&headgatev1.Request{Path: "/ip", Ip: "192.0.2.2"}, "ip", false},
		{&headgatev1.Request{Path: "/xff", Ip: "10.0.0.1", Headers: map[string]string{"x-forwarded-for": "192.0.2.1, 10.0.0.9"}}, "forwarded", false},
		{&headgatev1.Request{Path: "/xff", Ip: "192.0.2.1", Headers: map[string]string{"X-Forwarded-For": "192.0.2.7"}}, "forwarded", true},
		{header("/header", "X-Client-Id", "a"), "header", false},
		{header("/header", "x-CLIENT-id", " a\t"), "header", true},
		{header("/header", "x-client-id", "b"), "header", false},
		{&headgatev1.Request{Path: "/cookie", Cookies: map[string]string{"id": "a"}}, "cookie", false},
		{&headgatev1.Request{Path: "/cookie", Cookies: map[string]string{"ID": "a"}}, "cookie", true},
		{&headgatev1.Request{Path: "/query", Query: map[string]string{"user": "a b"}}, "query", false},
		{&headgatev1.Request{Path: "/query", Query: map[string]string{"user": "a b", "x": "y"}}, "query", true},
		{&headgatev1.Request{Path: "/users/a/x", Host: "s.example"}, "segment", false},
		{&headgatev1.Request{Path: "/users/a/y", Host: "S.example:80"}, "segment", true},
		{&headgatev1.Request{Path: "/users/a/y", Host: "t.example"}, "segment", false},
		{&headgatev1.Request{Path: "/subject", Subject: "CN=a"}, "subject", false},
		{&headgatev1.Request{Path: "/subject", Subject: "CN=a"}, "subject", true},
		{&headgatev1.Request{Domain: "shop", Descriptors: []*headgatev1.Descriptor{{Key: "tenant", Value: "a"}}}, "domain", false},
		{&headgatev1.Request{Domain: "shop", Path: "/a/b", Descriptors: []*headgatev1.Descriptor{{Key: "tenant", Value: "a"}}}, "domain", true},
		{&headgatev1.Request{Domain: "other", Path: "/a/b"}, "", false},
		{&headgatev1.Request{Path: "/cost", Cost: 9}, "cost", false},
		{&headgatev1.Request{Path: "/cost", Cost: 1}, "cost", true},
		{&headgatev1.Request{}, "", false},
	} {
		answers, err := r.decide(t, row.request)
		if err != nil || len(answers) != 1 || answers[0].GetError() != nil {
			t.Fatalf("row %d: got %v, %v", i, answers, err)
		}
		if a := answers[0]; a.GetPolicy() != row.policy || (a.GetVerdict() == headgatev1.Verdict_VERDICT_DENY) != row.denied {
			t.Errorf("row %d, %v: got %v", i, row.request, a)
		}
	}
}

// TestAnswerFields: an answer has the fields of the decision, of the rule and of the limit.
func TestAnswerFields(t *testing.T) {
	r := serve(t, guards.New(t, `
rules:
- {name: plain, match: {path: /plain}, key: [all], algorithm: fixed_window, limits: [2/365d]}
- {name: moved, match: {path: /moved/*}, key: [all], limits: [1/1d], on_exceed: {action: redirect, location: "https://b.example/{path}"}}
- {name: less, match: {path: /less}, key: [all], limits: [1/1d], on_exceed: {action: degrade, header: X-Degraded, value: "1"}}
- {name: soft, match: {path: /soft}, key: [all], limits: [2/1d], soft: 50%}
- {name: late, match: {path: /late}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
`), Options{})
	ask := func(path string) *headgatev1.Answer {
		answers, err := r.decide(t, requestsFor(path)...)
		if err != nil || answers[0].GetError() != nil {
			t.Fatal(answers, err)
		}
		return answers[0]
	}
	a := ask("/plain")
	if a.GetVerdict() != headgatev1.Verdict_VERDICT_ALLOW || a.GetReason() != "within_limit" || a.GetLimit() != 2 || a.GetRemaining() != 1 ||
		a.GetCount() != 2 || a.GetPeriod().AsDuration().Hours() != 8760 || a.GetResetAfter() == nil || a.GetRetryAfter() != nil || a.GetStatus() != 0 {
		t.Errorf("an allowed request: %v", a)
	}
	ask("/plain")
	a = ask("/plain")
	if a.GetVerdict() != headgatev1.Verdict_VERDICT_DENY || a.GetReason() != "over_limit" || a.GetStatus() != 429 || a.GetRetryAfter() == nil ||
		a.GetRemaining() != 0 || !slices.Equal(a.GetViolated(), []string{"plain"}) {
		t.Errorf("a refused request: %v", a)
	}
	ask("/moved/a b")
	if a = ask("/moved/a b"); a.GetStatus() != 302 || a.GetLocation() != "https://b.example/moved/a%20b" {
		t.Errorf("a redirected request: %v", a)
	}
	ask("/less")
	if a = ask("/less"); a.GetVerdict() != headgatev1.Verdict_VERDICT_ALLOW || a.GetReason() != "degraded" || len(a.GetMarks()) != 1 ||
		a.GetMarks()[0].GetName() != "X-Degraded" || a.GetMarks()[0].GetValue() != "1" {
		t.Errorf("a degraded request: %v", a)
	}
	ask("/soft")
	if a = ask("/soft"); a.GetReason() != "soft_limit" || a.GetMarks()[0].GetValue() != `soft-limit; policy="soft"` {
		t.Errorf("a request above a soft limit: %v", a)
	}
	ask("/late")
	if a = ask("/late"); a.GetVerdict() != headgatev1.Verdict_VERDICT_WAIT || a.GetDelay().AsDuration().Minutes() < 59 || a.GetRetryAfter() != nil {
		t.Errorf("a request that waits: %v", a)
	}
}

// TestBatch: requests of one message are decided in order. Those that are invalid get an error that names
// the part and the fix, and the others are decided.
func TestBatch(t *testing.T) {
	r := serve(t, guards.New(t, "rules: [{name: a, match: {path: /a}, key: [all], limits: [2/1d]}]"), Options{})
	long := strings.Repeat("x", 5000)
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint("h", i)] = "v"
	}
	requests := append(requestsFor("/a", `/a\b`, "a", "/a", "/a"),
		&headgatev1.Request{Ip: "1.2.3.4:80"}, &headgatev1.Request{Cost: -1}, &headgatev1.Request{Domain: long},
		&headgatev1.Request{Headers: many}, &headgatev1.Request{Descriptors: []*headgatev1.Descriptor{{Value: "a"}}})
	answers, err := r.decide(t, requests...)
	if err != nil || len(answers) != len(requests) {
		t.Fatal(len(answers), err)
	}
	for i, want := range []string{
		"allow", `path "/a\\b" is ambiguous: send a decoded path`, `path "a" is ambiguous`, "allow", "deny",
		`ip "1.2.3.4:80" is not an address: send the client's address without a port`, "cost is -1: send 0 to",
		"domain has 5000 bytes: send at most 4096", "headers has 65 entries: send at most 64", "descriptors[0] has no name: send one",
	} {
		got := strings.ToLower(strings.TrimPrefix(answers[i].GetVerdict().String(), "VERDICT_"))
		if e := answers[i].GetError(); e != nil {
			got = e.GetMessage()
			if e.GetCode() != int32(codes.InvalidArgument) || answers[i].GetVerdict() != headgatev1.Verdict_VERDICT_UNSPECIFIED {
				t.Errorf("request %d: %v", i, answers[i])
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("request %d: got %s, want %s", i, got, want)
		}
	}
	if s := r.Stats(); s.Messages != 1 || s.Requests != 10 || s.Faults != 7 {
		t.Errorf("got %+v", s)
	}
}

// TestTwoValues: services read different ones of two values, so a rule reads neither.
func TestTwoValues(t *testing.T) {
	r := serve(t, guards.New(t, everyField), Options{})
	for _, request := range []*headgatev1.Request{
		{Headers: map[string]string{"X-Client-Id": "a", "x-client-id": "b"}},
		{Cookies: map[string]string{"id": "a", "ID": "a"}},
	} {
		answers, err := r.decide(t, request)
		if err != nil || !strings.Contains(answers[0].GetError().GetMessage(), "twice: send one value") {
			t.Errorf("%v: got %v, %v", request, answers, err)
		}
	}
	same, err := r.decide(t, &headgatev1.Request{Headers: map[string]string{"Accept": "a", "accept": "b", "\u212aey": "c"}})
	if err != nil || same[0].GetError() != nil {
		t.Errorf("headers that no rule reads: %v, %v", same, err)
	}
}

// TestUndecided: without an answer of the store, the fallback decides, or there is an error.
func TestUndecided(t *testing.T) {
	r := serve(t, guards.New(t, "store: redis://127.0.0.1:1\nstore_timeout: 1ms\nrules:\n"+
		"- {name: e, match: {path: /error}, key: [all], limits: [2/1d], fallback: error}\n"+
		"- {name: a, match: {path: /allow}, key: [all], limits: [2/1d], fallback: allow}\n"), Options{Shared: true})
	answers, err := r.decide(t, requestsFor("/error", "/allow", "/none")...)
	if err != nil {
		t.Fatal(err)
	}
	if e := answers[0].GetError(); e.GetCode() != int32(codes.Unavailable) || e.GetMessage() != remote.ErrUnavailable.Error() {
		t.Errorf("fallback error: %v", answers[0])
	}
	if a := answers[1]; a.GetVerdict() != headgatev1.Verdict_VERDICT_ALLOW || !a.GetFallback() || a.GetLimit() != 0 || a.GetReason() != "store_unavailable" {
		t.Errorf("fallback allow: %v", a)
	}
	if a := answers[2]; a.GetVerdict() != headgatev1.Verdict_VERDICT_ALLOW || a.GetReason() != "no_rule" {
		t.Errorf("no rule: %v", a)
	}
}

// TestMessages: a message that is invalid as a whole is refused, and says why.
func TestMessages(t *testing.T) {
	r := serve(t, guards.New(t, "rules: []\ndomains: {tree: {descriptors: [{key: a, limits: 5/s}]}}"), Options{})
	if _, err := r.decide(t); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "no request: send 1 to 1000") {
		t.Errorf("no request: %v", err)
	}
	if _, err := r.decide(t, make([]*headgatev1.Request, 1001)...); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "1001 requests: send at most 1000") {
		t.Errorf("too many requests: %v", err)
	}
	if answers, err := r.decide(t, make([]*headgatev1.Request, 1000)...); len(answers) != 1000 || err != nil {
		t.Errorf("1000 requests: %d answers, %v", len(answers), err)
	}
	answers, err := r.decide(t, &headgatev1.Request{Domain: "tree"})
	if err != nil || !strings.Contains(answers[0].GetError().GetMessage(), "decided by its tree: ask the rate limit service") {
		t.Errorf("a domain with a tree: %v, %v", answers, err)
	}
}
