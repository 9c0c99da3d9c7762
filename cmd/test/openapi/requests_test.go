package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// markName is the header of the rule less.
const markName = "X-Degraded"

// The configurations of the servers.
const (
	// usual decides.
	usual = `
version: 1
server: {grpc: off, http: {address: "127.0.0.1:0", max_body: 16KiB}}
identity: {trusted_proxies: [127.0.0.1]}
rules:
- {name: search, match: {path: /search}, key: [ip], limits: [1/365d]}
- {name: hosts, match: {hosts: [api.example.com]}, key: [method], limits: [9/365d]}
- {name: cookie, match: {path: /cookie}, key: ["cookie:id"], limits: [9/365d]}
- {name: header, match: {path: /header}, key: ["header:X-Client-Id"], limits: [9/365d]}
- {name: query, match: {path: /query, query: {format: json}}, key: [ip], limits: [9/365d]}
- {name: subject, match: {path: /subject}, key: [mtls_subject], limits: [9/365d]}
- {name: tenant, match: {domain: rules}, key: ["descriptor:tenant"], limits: [9/365d]}
- {name: moved, match: {path: /moved}, key: [all], limits: [1/365d], on_exceed: {action: redirect, location: "https://b.example/x"}}
- {name: less, match: {path: /less}, key: [all], limits: [1/365d], on_exceed: {action: degrade, header: X-Degraded, value: "1"}}
- {name: late, match: {path: /late}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
- {name: soft, match: {path: /soft}, key: [all], limits: [3/365d], soft: 50%}
- {name: metered, match: {path: /metered}, key: ["header:X-Customer"], quota: calls}
- {name: teapot, match: {path: /teapot}, key: [all], limits: [1/365d], on_exceed: {status: 418}}
- {name: broken, match: {path: /broken}, key: [all], limits: [1/365d], on_exceed: {status: 599}}
- {name: failing, match: {path: /failing}, key: [all], limits: [1/365d], on_exceed: {status: 500}}
- {name: closed, match: {path: /closed}, key: [all], limits: [1/365d], on_exceed: {status: 403}}
domains:
  shop:
    descriptors:
    - {key: client, limits: 2/365d, name: clients}
    - {key: sent, limits: 2/365d}
    - {key: second, limits: 9/1s}
    - {key: minute, limits: 9/1m}
    - {key: hour, limits: 9/1h}
    - {key: day, limits: 9/1d}
    - {key: week, limits: 9/7d}
    - {key: month, limits: 9/30d}
    - {key: odd, limits: 9/5s}
    - {key: free, unlimited: true}
default_plan: paid
plans:
  paid: {after: meter, quotas: {calls: [{limit: 1/365d, hard: 9}]}}
`
	// talkative adds what few servers add to answers. It trusts no peer.
	talkative = `
version: 1
server:
  grpc: off
  http: "127.0.0.1:0"
  rate_limit_service: {response_headers: true, dynamic_metadata: true}
rules: []
domains:
  shop:
    descriptors:
    - {key: client, limits: 2/365d, metadata: {tier: gold}}
    - {key: quota, limits: 1/365d, quota_mode: true}
    - {key: other, limits: 9/365d, quota_mode: true}
`
	// away has a store that does not answer.
	away = `
version: 1
store: redis://127.0.0.1:1
store_timeout: 100ms
server: {grpc: off, http: "127.0.0.1:0"}
identity: {trusted_proxies: [127.0.0.1]}
rules:
- {name: error, match: {path: /error}, key: [all], limits: [1/1d], fallback: error}
- {name: deny, match: {path: /deny}, key: [all], limits: [1/1d], fallback: deny}
domains:
  shop: {descriptors: [{key: client, limits: 2/365d}]}
`
)

// guarded wants the token of a caller. %[1]s and %[2]s stand for the digests of tokens of a program and of an operator.
const guarded = `
version: 1
server:
  grpc: off
  http: {address: "127.0.0.1:0", auth: token}
  callers:
  - {name: program, tokens: ["%[1]s"], scopes: [decide], domains: [shop], rules: [free]}
  - {name: operator, tokens: ["%[2]s"], scopes: [read]}
  limits: {caller: 8/1h}
identity: {trusted_proxies: [127.0.0.1]}
rules:
- {name: free, match: {path: /free}, key: [all], limits: [9/365d]}
- {name: other, match: {path: /other}, key: [all], limits: [9/365d]}
domains:
  shop: {descriptors: [{key: client, limits: 9/365d}]}
  other: {descriptors: [{key: client, limits: 9/365d}]}
`

// row is a request, and the status of its answer.
type row struct {
	to      string // the configuration of the server
	method  string
	target  string
	fields  []string // NAME: VALUE
	body    string
	status  int
	follows bool // the document
}

// exchanges sends all requests, and gives them with their answers, and the document.
func exchanges(t *testing.T) (text []byte, all []*exchange) {
	t.Helper()
	servers := map[string]string{}
	for _, configuration := range []string{usual, talkative, away} {
		servers[configuration] = launch(t, configuration)
	}
	program, operator := newToken(t), newToken(t)
	servers[guarded] = launch(t, fmt.Sprintf(guarded, program.digest, operator.digest))
	tokens := strings.NewReplacer("PROGRAM", program.text, "OPERATOR", operator.text)
	send := func(r row) *exchange {
		e := &exchange{method: r.method, target: r.target, header: http.Header{}, body: r.body, follows: r.follows}
		for _, field := range r.fields {
			name, value, _ := strings.Cut(field, ": ")
			e.header.Add(name, tokens.Replace(value))
		}
		if r.body != "" {
			e.header.Set("Content-Type", "application/json")
		}
		if e.send(t, servers[r.to]); e.status != r.status {
			t.Errorf("%v: want the status %d", e, r.status)
		}
		all = append(all, e)
		return e
	}
	text = send(row{usual, "GET", "/openapi.json", nil, "", 200, true}).answer
	for _, rows := range [][]row{posts(), subrequests(), rateLimits(), healthchecks(), callers(), examplesOf(t, read(t, text))} {
		for _, r := range rows {
			send(r)
		}
	}
	return text, all
}

// examplesOf are the requests that a document has as examples.
func examplesOf(t *testing.T, d *document) (all []row) {
	t.Helper()
	d.operations(func(at string, _ map[string]any) {
		content, found := d.at(at + "/requestBody/content/application~1json")
		if !found {
			return
		}
		path, method := strings.ReplaceAll(strings.Split(at, "/")[2], "~1", "/"), strings.Split(at, "/")[3]
		examples := object(content["examples"])
		if len(examples) == 0 {
			t.Errorf("%s has no example", at)
		}
		for _, example := range examples {
			body, err := json.Marshal(object(example)["value"])
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, row{talkative, strings.ToUpper(method), path, nil, string(body), http.StatusOK, true})
		}
	})
	return all
}

// posts are requests of programs.
func posts() []row {
	const at = "/v1/decide"
	long := strings.Repeat("x", 300)
	return []row{
		{usual, "POST", at, nil, `{}`, 200, true},
		{usual, "POST", at, nil, `{"method": "GET", "path": "/search", "ip": "192.0.2.1", "cost": 1}`, 200, true},
		{usual, "POST", at, nil, `{"path": "/search", "ip": "192.0.2.1"}`, 200, true},            // refused
		{usual, "POST", at, nil, `{"path": "/search", "ip": "192.0.2.2", "cost": 5}`, 200, true}, // never
		{usual, "POST", at, nil, `{"host": "api.example.com:443", "method": "PUT"}`, 200, true},
		{usual, "POST", at, nil, `{"path": "/cookie", "cookies": {"id": "a"}}`, 200, true},
		{usual, "POST", at, nil, `{"path": "/header", "headers": {"x-client-id": "a"}}`, 200, true},
		{usual, "POST", at, nil, `{"path": "/query", "ip": "192.0.2.1", "query": {"format": "json"}, "peek": true}`, 200, true},
		{usual, "POST", at, nil, `{"query": {"format": 1}}`, 400, false},
		{usual, "POST", at, nil, `{"peek": "yes"}`, 400, false},
		{usual, "POST", at, nil, `{"path": "/subject", "subject": "CN=a"}`, 200, true},
		{usual, "POST", at, nil, `{"domain": "rules", "descriptors": [{"key": "tenant", "value": "a"}, {"key": "b"}]}`, 200, true},
		{usual, "POST", at, nil, `[{"path": "/less"}, {"path": "/less"}]`, 200, true},
		{usual, "POST", at, nil, `[{"path": "/moved"}, {"path": "/moved"}]`, 200, true},
		{usual, "POST", at, nil, `[{"path": "/late"}, {"path": "/late"}]`, 200, true},
		{usual, "POST", at, nil, `[{"path": "/soft"}, {"path": "/soft"}]`, 200, true},
		{usual, "POST", at, nil, `[{"path": "/metered"}, {"path": "/metered"}]`, 200, true},
		{usual, "POST", at, nil, `[{"path": "/teapot"}, {"path": "/teapot"}]`, 200, true},
		{usual, "POST", at, nil, `[{"ip": "a"}, {"path": "/"}]`, 200, true},
		{usual, "POST", at, nil, "[" + strings.Repeat("{},", 999) + "{}]", 200, true},
		{usual, "POST", at, nil, `{"ip": "192.0.2.1:80"}`, 400, true},
		{usual, "POST", at, nil, `{"path": "a\\b"}`, 400, true},
		{usual, "POST", at, nil, `{"domain": "shop"}`, 400, true}, // A domain with a tree.
		{usual, "POST", at, nil, `{"host": "` + long + `x"}`, 400, false},
		{usual, "POST", at, nil, `{"headers": {"": "a"}}`, 400, false},
		{usual, "POST", at, nil, `{"cost": -1}`, 400, false},
		{usual, "POST", at, nil, `{"cost": 1.5}`, 400, false},
		{usual, "POST", at, nil, `{"path": 5}`, 400, false},
		{usual, "POST", at, nil, `{"pth": "/"}`, 400, false},
		{usual, "POST", at, nil, `{"headers": ["a"]}`, 400, false},
		{usual, "POST", at, nil, `{"headers": {"a": 1}}`, 400, false},
		{usual, "POST", at, nil, `{"descriptors": {"a": "b"}}`, 400, false},
		{usual, "POST", at, nil, `{"descriptors": [{"value": "b"}]}`, 400, false},
		{usual, "POST", at, nil, `{"descriptors": [{"key": "a", "vlue": "b"}]}`, 400, false},
		{usual, "POST", at, nil, `{"path": "/"`, 400, false},
		{usual, "POST", at, nil, ``, 400, false},
		{usual, "POST", at, nil, `[]`, 400, false},
		{usual, "POST", at, nil, "[" + strings.Repeat("{},", 1000) + "{}]", 400, false},
		{usual, "POST", at, nil, `{"path": "/` + strings.Repeat(long, 60) + `"}`, 413, false},
		{usual, "POST", at, []string{"Origin: null"}, `{}`, 403, true},
		{away, "POST", at, nil, `{"path": "/error"}`, 503, true},
		{away, "POST", at, nil, `[{"path": "/error"}, {"path": "/error"}]`, 503, true},
		{away, "POST", at, nil, `[{"path": "/error"}, {"path": "/"}]`, 200, true},
		{away, "POST", at, nil, `{"path": "/deny"}`, 200, true},
	}
}

// subrequests are requests of gateways.
func subrequests() []row {
	original := func(uri string, more ...string) []string {
		return append([]string{"X-Original-Method: GET", "X-Original-URI: " + uri, "X-Forwarded-For: 192.0.2.9"}, more...)
	}
	forwarded := func(uri string, more ...string) []string {
		return append([]string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: " + uri, "X-Forwarded-For: 192.0.2.9"}, more...)
	}
	const byOriginal, byForwarded = "/v1/decide?from=original", "/v1/decide?from=forwarded"
	return []row{
		{usual, "GET", byOriginal, original("/search?q=a"), "", 204, true},
		{usual, "GET", byOriginal, original("/search"), "", 429, true},
		{usual, "GET", byForwarded, forwarded("/search"), "", 429, true},
		{usual, "GET", byForwarded, forwarded("/new", "X-Forwarded-Host: api.example.com"), "", 204, true},
		{usual, "GET", byOriginal, original("/new", "X-Original-Host: api.example.com"), "", 204, true},
		{usual, "GET", byOriginal + "&refuse=403", original("/search"), "", 403, true},
		{usual, "GET", byForwarded + "&refuse=403", forwarded("/moved"), "", 403, true},
		{usual, "GET", byOriginal, original("/moved"), "", 302, true},
		{usual, "GET", byOriginal, original("/less"), "", 204, true},
		{usual, "GET", byOriginal, original("/late"), "", 429, true},
		{usual, "GET", byOriginal, original("/soft"), "", 204, true},
		{usual, "GET", byOriginal, original("/metered"), "", 204, true},
		{usual, "GET", byOriginal, original("/teapot"), "", 418, true},
		{usual, "GET", byOriginal, original("/broken"), "", 204, true},
		{usual, "GET", byOriginal, original("/broken"), "", 599, true},
		{usual, "GET", byOriginal, original("/failing"), "", 204, true},
		{usual, "GET", byOriginal, original("/failing"), "", 500, true},
		{usual, "GET", byOriginal, original("/subject"), "", 500, true},
		{usual, "GET", byOriginal, original("/closed"), "", 204, true},
		{usual, "GET", byOriginal, original("/closed"), "", 403, true},
		{usual, "GET", byOriginal, original("/a%5cb"), "", 400, true},
		{usual, "GET", byOriginal + "&refuse=403", original("/a%5cb"), "", 403, true},
		{usual, "GET", byOriginal, forwarded("/search"), "", 400, true}, // The fields of the other family.
		{usual, "GET", byOriginal, original(""), "", 400, true},         // An empty field is like none.
		{usual, "GET", "/v1/decide", original("/search"), "", 400, false},
		{usual, "GET", "/v1/decide?from=both", original("/search"), "", 400, false},
		{usual, "GET", byOriginal + "&refuse=404", original("/search"), "", 400, false},
		{talkative, "GET", byOriginal, original("/search"), "", 403, true}, // The peer is not trusted.
		{away, "GET", byOriginal, original("/error"), "", 503, true},
		{away, "GET", byOriginal + "&refuse=403", original("/error"), "", 503, true},
		{away, "GET", byOriginal, original("/deny"), "", 503, true},
		{away, "GET", byOriginal, original("/"), "", 204, true},
	}
}

// rateLimits are requests of programs that speak the protocol of envoyproxy/ratelimit.
func rateLimits() []row {
	const at = "/json"
	one := func(key, more string) string {
		return `{"domain": "shop", "descriptors": [{"entries": [{"key": "` + key + `", "value": "a"}]` + more + `}]}`
	}
	var units []string
	for _, key := range []string{"second", "minute", "hour", "day", "week", "month", "client", "odd", "free", "none"} {
		units = append(units, `{"entries": [{"key": "`+key+`", "value": "b"}]}`)
	}
	return []row{
		{usual, "POST", at, nil, `{"domain": "shop", "descriptors": [` + strings.Join(units, ", ") + `]}`, 200, true},
		{usual, "POST", at, nil, one("client", `, "hitsAddend": 2`), 200, true},
		{usual, "POST", at, nil, one("client", ""), 429, true},
		{usual, "POST", at, nil, one("client", `, "hitsAddend": 2, "isNegativeHits": true`), 200, true},
		{usual, "POST", at, nil, `{"domain": "shop", "hitsAddend": 3, "descriptors": [{"entries": [{"key": "client", "value": "c"}]}]}`, 429, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7, "unit": "SECOND", "unitMultiplier": 3}`), 200, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7, "unit": "MINUTE"}`), 200, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7, "unit": "HOUR"}`), 200, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7, "unit": "DAY"}`), 200, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7, "unit": "MONTH"}`), 200, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"unit": "YEAR"}`), 429, true},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7, "unit": "WEEK"}`), 400, false},
		{usual, "POST", at, nil, one("sent", `, "limit": {"requestsPerUnit": 7}`), 400, false},
		{usual, "POST", at, nil, one("", ""), 400, false},
		{usual, "POST", at, nil, `{"domain": "shop", "descriptors": [{"entries": []}]}`, 400, false},
		{usual, "POST", at, nil, `{"domain": "shop", "descriptors": []}`, 400, false},
		{usual, "POST", at, nil, `{"descriptors": [{"entries": [{"key": "client"}]}]}`, 400, false},
		{usual, "POST", at, nil, `{"domian": "shop"}`, 400, false},
		{usual, "POST", at, nil, `{`, 400, false},
		{usual, "POST", at, nil, `{"domain": "` + strings.Repeat("x", 17_000) + `"}`, 413, false},
		{usual, "POST", at, []string{"Sec-Fetch-Site: cross-site"}, one("client", ""), 403, true},
		{away, "POST", at, nil, one("client", ""), 503, true},
		{talkative, "POST", at, nil, one("client", `, "hitsAddend": 1`), 200, true},
		{talkative, "POST", at, nil, one("client", `, "limit": {"requestsPerUnit": 7, "unit": "HOUR"}`), 200, true},
		{talkative, "POST", at, nil, `{"domain": "shop", "hitsAddend": 2, "descriptors": [{"entries": [{"key": "quota", "value": "a"}]}, ` +
			`{"entries": [{"key": "other", "value": "a"}]}]}`, 200, true},
	}
}

// healthchecks are requests of load balancers.
func healthchecks() []row {
	return []row{
		{usual, "GET", "/healthcheck", nil, "", 200, true},
		{away, "GET", "/healthcheck", nil, "", 500, true},
	}
}

// callers are requests to a server that wants tokens.
func callers() []row {
	const at, program, operator = "/v1/decide", "Authorization: Bearer PROGRAM", "Authorization: Bearer OPERATOR"
	const gateway, descriptors = "Headgate-Token: PROGRAM", `"descriptors": [{"entries": [{"key": "client", "value": "a"}]}]}`
	asked := []string{"X-Original-Method: GET", "X-Original-URI: /free"}
	return []row{
		{guarded, "GET", "/openapi.json", nil, "", 200, true},
		{guarded, "GET", "/healthcheck", nil, "", 200, true},
		{guarded, "POST", at, nil, `{"path": "/free"}`, 401, true},
		{guarded, "POST", at, []string{program + "x"}, `{"path": "/free"}`, 401, true},
		{guarded, "POST", at, []string{operator}, `{"path": "/free"}`, 403, true},
		{guarded, "POST", at, []string{program}, `{"path": "/free"}`, 200, true},
		{guarded, "POST", at, []string{program}, `{"path": "/other"}`, 403, true},
		{guarded, "POST", "/json", nil, `{"domain": "shop", ` + descriptors, 401, true},
		{guarded, "POST", "/json", []string{program}, `{"domain": "shop", ` + descriptors, 200, true},
		{guarded, "POST", "/json", []string{program}, `{"domain": "other", ` + descriptors, 403, true},
		{guarded, "GET", at + "?from=original", asked, "", 401, true},
		{guarded, "GET", at + "?from=original", append([]string{gateway}, asked...), "", 204, true},
		{guarded, "GET", at + "?from=original", append([]string{gateway}, "X-Original-Method: GET", "X-Original-URI: /other"), "", 403, true},
		{guarded, "POST", at, []string{program}, `[{"path": "/other"}` + strings.Repeat(`, {"path": "/free"}`, 7) + "]", 200, true},
		{guarded, "POST", at, []string{program}, `{"path": "/free"}`, 429, true},
		{guarded, "POST", "/json", []string{program}, `{"domain": "shop", ` + descriptors, 429, true},
		{guarded, "GET", at + "?from=original", append([]string{gateway}, asked...), "", 503, true},
		{guarded, "GET", at + "?from=original&refuse=403", append([]string{gateway}, asked...), "", 503, true},
	}
}
