package acceptance

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In this configuration, the proxy trusts 127.0.0.1 and 10.0.0.0/8. Every rule has one unit an
// hour for each key, so a second request of a key is refused.
const keysConfiguration = `version: 1
max_memory: 16MiB
identity:
  trusted_proxies: [127.0.0.1, 10.0.0.0/8]
  user_ip_headers: [X-Real-User-Ip, X-Client-Ip]
rules:
  - {name: all, match: {path: /all}, key: [all], limits: ["1/1h"]}
  - {name: ip, match: {path: /ip}, key: [ip], limits: ["1/1h"]}
  - {name: xff, match: {path: /xff}, key: [xff_ip], limits: ["1/1h"]}
  - {name: user, match: {path: /user}, key: [user_ip], limits: ["1/1h"]}
  - {name: path, match: {path: /path/*}, key: [path], limits: ["1/1h"]}
  - {name: method, match: {path: /method}, key: [method], limits: ["1/1h"]}
  - {name: host, match: {path: /host}, key: [host], limits: ["1/1h"]}
  - {name: header, match: {path: /header}, key: [header:X-Client-Id], limits: ["1/1h"]}
  - {name: cookie, match: {path: /cookie}, key: [cookie:session], limits: ["1/1h"]}
  - {name: login, match: {path: /login}, key: [ip, header:X-User], limits: ["1/1h"]}
  - {name: three, match: {path: /three/*}, key: [xff_ip, path, method], limits: ["1/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

func TestKeys(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	t.Cleanup(behind.Close)
	i := start(t, keysConfiguration, behind.URL)
	longest := strings.Repeat("a", 128)
	for name, steps := range map[string][]step{
		"all": {
			{path: "/all", args: from("127.0.0.2", "X-Client-Id: a"), want: 200},
			{path: "/all", args: from("127.0.0.3", "X-Client-Id: b"), want: 429},
		},
		"ip": {
			{path: "/ip", args: from("127.0.0.2"), want: 200},
			{path: "/ip", args: from("127.0.0.3"), want: 200},
			{path: "/ip", args: from("127.0.0.2"), want: 429},
			{path: "/ip", args: from("127.0.0.3", "X-Forwarded-For: 192.0.2.77", "X-Real-User-Ip: 192.0.2.78"), want: 429},
			{path: "/ip", args: from("127.0.0.1", "X-Forwarded-For: 192.0.2.77"), want: 200},
			{path: "/ip", args: from("127.0.0.1", "X-Forwarded-For: 192.0.2.78"), want: 429},
		},
		"xff_ip of a trusted proxy": {
			{path: "/xff", args: with("X-Forwarded-For: 192.0.2.1"), want: 200},
			{path: "/xff", args: with("X-Forwarded-For: 203.0.113.9, 192.0.2.1, 10.0.0.2"), want: 429}, // the first address is forged
			{path: "/xff", args: with("X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 192.0.2.1"), want: 429},
			{path: "/xff", args: with("X-Forwarded-For: 192.0.2.2"), want: 200},
			{path: "/xff", args: with("X-Forwarded-For: 2001:db8:0:1::1"), want: 200},
			{path: "/xff", args: with("X-Forwarded-For: 2001:db8:0:1::2"), want: 429}, // one subscriber has a /64
			{path: "/xff", args: with("X-Forwarded-For: 2001:db8:0:2::1"), want: 200},
			{path: "/xff", args: with("X-Forwarded-For: 192.0.2.3, nonsense"), want: 200}, // counts as 127.0.0.1
			{path: "/xff", args: with("X-Forwarded-For: 192.0.2.4, nonsense"), want: 429}, // counts as 127.0.0.1 too
			{path: "/xff", want: 429}, // counts as 127.0.0.1 too
		},
		"xff_ip of anybody else": {
			{path: "/xff", args: from("127.0.0.50", "X-Forwarded-For: 192.0.2.5"), want: 200},
			{path: "/xff", args: from("127.0.0.50", "X-Forwarded-For: 192.0.2.6"), want: 429},
			{path: "/xff", args: from("127.0.0.1", "X-Forwarded-For: 192.0.2.6"), want: 200},
		},
		"user_ip": {
			{path: "/user", args: with("X-Real-User-Ip: 192.0.2.1"), want: 200},
			{path: "/user", args: with("X-Real-User-Ip: 192.0.2.1", "X-Forwarded-For: 192.0.2.9"), want: 429},
			{path: "/user", args: with("X-Client-Ip: 192.0.2.1"), want: 429},
			{path: "/user", args: with("X-Real-User-Ip: 192.0.2.2"), want: 200},
			{path: "/user", args: from("127.0.0.50", "X-Real-User-Ip: 192.0.2.3"), want: 200},
			{path: "/user", args: from("127.0.0.50", "X-Real-User-Ip: 192.0.2.4"), want: 429}, // the peer is not trusted
			{path: "/user", args: with("X-Client-Ip: unresolvable"), want: 200},
			{path: "/user", want: 429}, // both requests count as 127.0.0.1
		},
		"path": {
			{path: "/path/a", want: 200},
			{path: "/path/a?x=1", want: 429},
			{path: "/path/%61", want: 429},
			{path: "//path/x/../a", want: 429},
			{path: "/path/b", want: 200},
		},
		"method": {
			{path: "/method", want: 200},
			{path: "/method", args: []string{"-d", "x"}, want: 200},
			{path: "/method", want: 429},
			{path: "/method", args: []string{"-X", "POST"}, want: 429},
		},
		"host": {
			{path: "/host", args: with("Host: a.example.com"), want: 200},
			{path: "/host", args: with("Host: b.example.com"), want: 200},
			{path: "/host", args: with("Host: A.Example.com.:8080"), want: 429},
		},
		"header": {
			{path: "/header", args: with("X-Client-Id: a"), want: 200},
			{path: "/header", args: with("X-Client-Id: b"), want: 200},
			{path: "/header", args: with("x-client-id: a"), want: 429},
			{path: "/header", want: 200},
			{path: "/header", args: with("X-Client-Id;"), want: 429}, // curl sends an empty value
			{path: "/header", args: with("X-Client-Id: " + longest + "b"), want: 200},
			{path: "/header", args: with("X-Client-Id: " + longest + "c"), want: 200},
			{path: "/header", args: with("X-Client-Id: " + longest + "c"), want: 429},
		},
		"cookie": {
			{path: "/cookie", args: []string{"-b", "lang=nl; session=s1"}, want: 200},
			{path: "/cookie", args: []string{"-b", `session="s1"`}, want: 429},
			{path: "/cookie", args: []string{"-b", "session=s2"}, want: 200},
			{path: "/cookie", want: 200},
			{path: "/cookie", args: []string{"-b", "other=1"}, want: 429},
		},
		"two parts": {
			{path: "/login", args: from("127.0.0.2", "X-User: a"), want: 200},
			{path: "/login", args: from("127.0.0.2", "X-User: b"), want: 200},
			{path: "/login", args: from("127.0.0.3", "X-User: a"), want: 200},
			{path: "/login", args: from("127.0.0.2", "X-User: a"), want: 429},
		},
		"three parts": {
			{path: "/three/a", args: with("X-Forwarded-For: 192.0.2.1"), want: 200},
			{path: "/three/a", args: with("X-Forwarded-For: 192.0.2.2"), want: 200},
			{path: "/three/b", args: with("X-Forwarded-For: 192.0.2.1"), want: 200},
			{path: "/three/a", args: append(with("X-Forwarded-For: 192.0.2.1"), "-d", "x"), want: 200},
			{path: "/three/a", args: with("X-Forwarded-For: 192.0.2.1"), want: 429},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walk(t, "http://"+i.Proxy, steps)
		})
	}
}

const regionConfiguration = `version: 1
max_memory: 16MiB
identity: {trusted_proxies: [127.0.0.1], region_db: FILE}
rules:
  - {name: country, key: [region], limits: ["1/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestKeyRegion counts requests by country while the database is replaced.
func TestKeyRegion(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	database := filepath.Join(t.TempDir(), "country.mmdb")
	replace(t, database, countries(t, map[string]string{"192.0.2.0/24": "NL", "203.0.113.0/24": "DE"}))
	i := start(t, strings.Replace(regionConfiguration, "FILE", database, 1), behind.URL)
	walk(t, "http://"+i.Proxy, []step{
		{args: with("X-Forwarded-For: 192.0.2.1"), want: 200},
		{args: with("X-Forwarded-For: 192.0.2.200"), want: 429},
		{args: with("X-Forwarded-For: 203.0.113.1"), want: 200},
		{args: with("X-Forwarded-For: 198.51.100.1"), want: 200},
		{args: with("X-Forwarded-For: 198.51.100.2"), want: 429}, // all unknown addresses are one region
		{args: from("127.0.0.50", "X-Forwarded-For: 192.0.2.1"), want: 429},
	})
	replace(t, database, countries(t, map[string]string{"192.0.2.0/25": "NL", "192.0.2.128/25": "BE", "203.0.113.0/24": "DE"}))
	i.hangup(t)
	walk(t, "http://"+i.Proxy, []step{
		{args: with("X-Forwarded-For: 192.0.2.1"), want: 429}, // the count of NL is kept
		{args: with("X-Forwarded-For: 192.0.2.200"), want: 200},
		{args: with("X-Forwarded-For: 192.0.2.201"), want: 429},
		{args: with("X-Forwarded-For: 203.0.113.2"), want: 429},
	})
	// A file that is not a database changes nothing.
	replace(t, database, []byte("nonsense"))
	i.hangup(t)
	if good := metric(t, i, "headgate_config_last_reload_successful"); good != 0 {
		t.Errorf("headgate_config_last_reload_successful is %v with a broken database", good)
	}
	if !strings.Contains(i.text(), "identity.region_db") {
		t.Errorf("the log does not tell which file is broken:\n%s", i.text())
	}
	walk(t, "http://"+i.Proxy, []step{{args: with("X-Forwarded-For: 192.0.2.202"), want: 429}})
}

const tokenConfiguration = `version: 1
max_memory: 16MiB
identity: {jwt: {keys: FILE, issuer: https://login.example.com, audience: api.example.com}}
rules:
  - {name: tenant, key: [jwt:tenant], limits: ["1/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestKeyToken counts tenants by valid tokens. All other requests share one key.
func TestKeyToken(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	login, next, stranger := newIssuer(t, "a"), newIssuer(t, "b"), newIssuer(t, "a")
	keys := filepath.Join(t.TempDir(), "jwks.json")
	replace(t, keys, keySet(t, login))
	i := start(t, strings.Replace(tokenConfiguration, "FILE", keys, 1), behind.URL)
	inTime := time.Now().Add(time.Hour)
	bearer := func(token string) []string { return with("Authorization: Bearer " + token) }
	unsigned := "eyJhbGciOiJub25lIn0.eyJ0ZW5hbnQiOiJmcmVlIn0."
	walk(t, "http://"+i.Proxy, []step{
		{args: bearer(login.token(t, "acme", inTime)), want: 200},
		{args: bearer(login.token(t, "other", inTime)), want: 200},
		{args: bearer(login.token(t, "acme", inTime.Add(time.Minute))), want: 429},
		{args: bearer(stranger.token(t, "new", inTime)), want: 200},
		{args: bearer(login.token(t, "old", time.Now().Add(-time.Hour))), want: 429},
		{args: bearer(login.token(t, "new", inTime) + "x"), want: 429},
		{args: bearer(next.token(t, "next", inTime)), want: 429},
		{args: bearer(unsigned), want: 429},
		{args: bearer("nonsense"), want: 429},
		{want: 429},
	})
	// After the keys are rotated and reloaded, tokens of the new key are valid.
	replace(t, keys, keySet(t, login, next))
	i.hangup(t)
	walk(t, "http://"+i.Proxy, []step{
		{args: bearer(next.token(t, "next", inTime)), want: 200},
		{args: bearer(next.token(t, "acme", inTime)), want: 429},
		{args: bearer(login.token(t, "next", inTime)), want: 429},
	})
}

const subjectConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: service, key: [mtls_subject], limits: ["1/1h"]}
proxy:
  listen: "127.0.0.1:0"
  tls: {cert: CERT, key: KEY, client_ca: CLIENTS, client_auth: request}
  upstream: "%s"
`

// TestKeySubject counts services by their certificates. All requests without a certificate share
// one key.
func TestKeySubject(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	ours, strangers := newAuthority(t), newAuthority(t)
	as := func(p pair) []string { return []string{"--cacert", ours.path, "--cert", p.cert, "--key", p.key} }
	server, billing, reports := ours.issue(t, "server", 2), ours.issue(t, "billing", 3), ours.issue(t, "reports", 4)
	forged := strangers.issue(t, "billing", 5)
	i := start(t, strings.NewReplacer("CERT", server.cert, "KEY", server.key, "CLIENTS", ours.path).Replace(subjectConfiguration), behind.URL)
	nobody := []string{"--cacert", ours.path}
	walk(t, "https://"+i.Proxy, []step{
		{args: as(billing), want: 200},
		{args: as(reports), want: 200},
		{args: as(billing), want: 429},
		{args: nobody, want: 200},
		{args: nobody, want: 429},
	})
	if out, err := command(t, "curl", append(as(forged), "-sS", "https://"+i.Proxy)...); err == nil {
		t.Errorf("a certificate of strangers is answered:\n%s", out)
	}
}

const overridesConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: client
    match: {path: /v1/*}
    key: [header:X-Client-Id, path]
    limits: ["1/1h"]
    overrides:
      gold: {limits: ["3/1h"]}
      blocked: {limits: ["0/1h"]}
  - name: address
    match: {path: /ip}
    key: [ip]
    limits: ["1/1h"]
    overrides: {127.0.0.9: {limits: ["2/1h"]}}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

func TestOverrides(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, overridesConfiguration, behind.URL)
	walk(t, "http://"+i.Proxy, []step{
		{path: "/v1/a", args: with("X-Client-Id: gold"), want: 200, tells: []string{`RateLimit-Policy: "client";q=3;w=3600`}},
		{path: "/v1/a", args: with("X-Client-Id: gold"), want: 200, times: 2},
		{path: "/v1/a", args: with("X-Client-Id: gold"), want: 429},
		{path: "/v1/b", args: with("X-Client-Id: gold"), want: 200},
		{path: "/v1/a", args: with("X-Client-Id: blocked"), want: 429},
		{path: "/v1/a", args: with("X-Client-Id: other"), want: 200, tells: []string{`RateLimit-Policy: "client";q=1;w=3600`}},
		{path: "/v1/a", args: with("X-Client-Id: other"), want: 429},
		{path: "/ip", args: from("127.0.0.9"), want: 200, times: 2},
		{path: "/ip", args: from("127.0.0.9"), want: 429},
		{path: "/ip", args: from("127.0.0.8"), want: 200},
		{path: "/ip", args: from("127.0.0.8"), want: 429},
	})
}

const costConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: export, match: {path: /export}, key: [all], cost: 5, limits: ["10/1h"]}
  - {name: query, match: {path: /query}, key: [all], cost: header:X-Cost, max_cost: 6, limits: ["10/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// TestCost: a request with an invalid cost gets 400, takes nothing, and does not reach the
// service.
func TestCost(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(mirror())
	defer behind.Close()
	i := start(t, costConfiguration, behind.URL)
	steps := []step{
		{path: "/export", want: 200, times: 2},
		{path: "/export", want: 429},
		{path: "/query", args: with("X-Cost: 6"), want: 200, tells: []string{`RateLimit: "query";r=4;t=~2160`}, seen: []string{"X-Cost: 6"}},
	}
	for _, bad := range []string{"7", "0", "-1", "+1", "1.5", "many", "1e3", "0x2", "99999999999999999999", "1 2"} {
		steps = append(steps, step{path: "/query", args: with("X-Cost: " + bad), want: 400, tells: []string{
			"Content-Type: application/problem+json", "Retry-After:", "RateLimit:",
		}})
	}
	walk(t, "http://"+i.Proxy, append(steps,
		step{path: "/query", args: with("X-Cost;"), want: 400},
		step{path: "/query", want: 200}, // a request without a cost takes one unit
		step{path: "/query", args: with("X-Cost: 4"), want: 429},
		step{path: "/query", args: with("X-Cost: 3"), want: 200},
		step{path: "/query", want: 429},
	))
	if n := decisions(t, i, "query", "enforce", "allow", "within_limit"); n != 3 {
		t.Errorf("query allowed %v, want 3", n)
	}
}
