package resp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
)

// tallied is a store that counts its queries and their Ops.
type tallied struct {
	headgate.Store

	calls, ops atomic.Int64
}

// Apply implements headgate.Store.
func (s *tallied) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.calls.Add(1)
	s.ops.Add(int64(len(ops)))
	return s.Store.Apply(ctx, ops, decisions)
}

// TestPipelineIsOneApply: commands that have arrived together are one query for the limits that they send, and another one for
// the rules.
func TestPipelineIsOneApply(t *testing.T) {
	store := &tallied{Store: memoryStore(t)}
	_, at := startOn(t, store, Config{}, WriteTimeout)
	conn := dial(t, at)
	const n = 30 // A short text arrives as a whole.
	var sent, both, want strings.Builder
	for i := range n {
		fmt.Fprintf(&sent, "CL.THROTTLE k%d 4 1 3600\r\n", i)
		fmt.Fprintf(&both, "CL.THROTTLE j%d 4 1 3600\r\nHG.DECIDE ip=192.0.2.%d\r\n", i, i)
		want.WriteString(five(0, 5, 4, -1, 3600))
	}
	exchange(t, conn, sent.String(), want.String())
	if calls, ops := store.calls.Load(), store.ops.Load(); calls != 1 || ops != n {
		t.Errorf("%d commands are %d queries with %d Ops, want 1 with %d", n, calls, ops, n)
	}
	if _, err := io.WriteString(conn, both.String()+"QUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if allowed := strings.Count(string(text), "allow"); err != nil || allowed != n {
		t.Errorf("%d of %d requests pass, %v", allowed, n, err)
	}
	if calls, ops := store.calls.Load(), store.ops.Load(); calls != 3 || ops != 3*n {
		t.Errorf("%d queries with %d Ops, want 3 with %d", calls, ops, 3*n)
	}
}

// TestNamesOfDecide: each name of HG.DECIDE chooses what a request counts under. A second request with the same value is
// refused, and one with another value passes.
func TestNamesOfDecide(t *testing.T) {
	g := guards.New(t, `
identity: {trusted_proxies: [10.0.0.0/8]}
rules:
- {name: method, match: {path: /method}, key: [method], limits: [1/1d]}
- {name: host, match: {path: /host}, key: [host], limits: [1/1d]}
- {name: path, match: {path: /path/*}, key: [path], limits: [1/1d]}
- {name: ip, match: {path: /ip}, key: [ip], limits: [1/1d]}
- {name: forwarded, match: {path: /xff}, key: [xff_ip], limits: [1/1d]}
- {name: header, match: {path: /header}, key: ["header:X-Client-Id"], limits: [1/1d]}
- {name: cookie, match: {path: /cookie}, key: ["cookie:id"], limits: [1/1d]}
- {name: query, match: {path: /query}, key: ["query:user"], limits: [1/1d]}
- {name: segment, match: {path: "/users/{id}/**"}, key: ["path:{id}"], limits: [1/1d]}
- {name: label, match: {hosts: ["{sub}.example"], path: /label}, key: ["host:{sub}"], limits: [1/1d]}
- {name: subject, match: {path: /subject}, key: [mtls_subject], limits: [1/1d]}
- {name: domain, match: {domain: shop}, key: ["descriptor:tenant"], limits: [1/1d]}
`)
	_, at := startWith(t, Config{Guard: g}, WriteTimeout)
	for policy, row := range map[string][2]string{
		"method":    {"path=/method method=GET", "path=/method method=PUT"},
		"host":      {"path=/host host=a.example", "path=/host host=b.example"},
		"path":      {"path=/path/a", "path=/path/b"},
		"ip":        {"path=/ip ip=192.0.2.1", "path=/ip ip=2001:db8::1"},
		"forwarded": {"path=/xff ip=10.0.0.1 header:X-Forwarded-For=192.0.2.1", "path=/xff ip=10.0.0.1 header:x-forwarded-for=192.0.2.2"},
		"header":    {"path=/header header:x-client-id=a", "path=/header header:X-Client-Id=b"},
		"cookie":    {"path=/cookie cookie:id=a", "path=/cookie cookie:id=b"},
		"query":     {"path=/query query:user=a", "path=/query query:user=b"},
		"segment":   {"path=/users/a/x", "path=/users/b/x"},
		"label":     {"path=/label host=a.example", "path=/label host=b.example"},
		"subject":   {"path=/subject subject=CN=a", "path=/subject subject=CN=b"},
		"domain":    {"domain=shop descriptor:tenant=a", "domain=shop descriptor:tenant=b"},
	} {
		for i, ask := range []string{row[0], row[0], row[1], row[0]} {
			verdict, reason := "allow", "within_limit"
			if i%2 == 1 {
				verdict, reason = "deny", "over_limit"
			}
			want := "*30\r\n"
			for _, text := range []string{"verdict", verdict, "reason", reason, "policy", policy} {
				want += fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
			}
			exchange(t, dial(t, at), "HG.DECIDE "+ask+"\r\n", want)
		}
	}
}
