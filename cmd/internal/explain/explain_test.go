package explain

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// rewrite updates the .want files. Review the differences before a commit.
var rewrite = flag.Bool("rewrite", false, "write what is printed to the .want files of testdata")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".want")
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// explained returns the explanation of a request.
func explained(t *testing.T, c *config.Config, f Flags, now time.Time) string {
	t.Helper()
	f.Times = max(1, f.Times)
	r, err := f.Parse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Explain(&out, c, now); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestExplain compares the whole text for each kind of answer.
func TestExplain(t *testing.T) {
	c, err := config.Load(filepath.Join("testdata", "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]Flags{
		"passes":                 {Request: "GET /v1/product/7", Header: []string{"X-Client-Id: a"}},
		"passes-with-a-warning":  {Request: "GET /v1/product/7", Header: []string{"X-Client-Id: a"}, Times: 4},
		"refused":                {Request: "GET /v1/product/7", Header: []string{"X-Client-Id: a"}, Times: 6},
		"banned":                 {Request: "GET /v1/product/7", Header: []string{"X-Client-Id: a"}, Times: 31},
		"override":               {Request: "HEAD /v1/product", Header: []string{"X-Client-Id: gold"}, Times: 20},
		"key-is-missing":         {Request: "GET /v1/product", Header: []string{"X-Other-Id: a"}},
		"trusted-proxy":          {Request: "POST /v1/x", Header: []string{"X-Real-User-Ip: 192.0.2.77"}, IP: "10.1.2.3", Subject: "o=Example, cn=billing", Times: 4},
		"proxy-that-is-not":      {Request: "POST /v1/x", Header: []string{"X-Real-User-Ip: 192.0.2.77"}, IP: "2001:db8::7"},
		"peer-on-a-socket":       {Request: "POST /v1/x", Header: []string{"X-Real-User-Ip: 192.0.2.77"}, IP: "unix"},
		"path-is-resolved":       {Request: "GET /v1/x/..//product/./a%20b?q=1", Header: []string{"X-Client-Id: a"}},
		"path-of-two-meanings":   {Request: "GET /v1/product/..;/x"},
		"grpc-of-two-meanings":   {Request: "POST /v1/product/..;/x", Header: []string{"Content-Type: application/grpc"}},
		"redirected":             {Request: "GET /shop/a%20b", Header: []string{"Host: WWW.shop.example.com:8080", "X-Tenant: t", "X-Plan: free", "X-Cost: 6"}, Times: 2},
		"url-in-place-of-a-path": {Request: "GET http://shop.example.com/shop/a", Header: []string{"X-Tenant: t", "X-Plan: free"}},
		"cost-that-is-none":      {Request: "GET /shop/a", Header: []string{"Host: shop.example.com", "X-Tenant: t", "X-Plan: free", "X-Cost: 9"}},
		"waits":                  {Request: "GET /reports", Times: 61},
		"waits-too-long":         {Request: "GET /reports", Times: 122},
		"degraded":               {Request: "GET /feed", Header: []string{"X-Level: high"}, Times: 3},
		"degraded-no-more":       {Request: "GET /feed", Times: 6},
		"marks-of-clients":       {Request: "GET /feed", Header: []string{"X-Level: high", "Headgate-Warning: none"}},
		"no-rule":                {Request: "GET /nothing"},
		"no-rule-other-method":   {Request: "DELETE /v2/product"},
		"no-rule-other-host":     {Request: "GET /shop/a", Header: []string{"Host: example.com", "X-Tenant: t"}},
		"no-rule-no-host":        {Request: "GET /shop/a", Header: []string{"X-Tenant: t", "X-Plan: free"}},
		"no-rule-off":            {Request: "GET /old/a"},
		"no-rule-descriptors":    {Request: "GET /service/a"},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, explained(t, c, f, time.Now()))
		})
	}
}

// TestExplainOverrides checks what is said about overrides for many values, without limits, and with an end.
func TestExplainOverrides(t *testing.T) {
	c, err := config.Parse("headgate.yaml", []byte(`version: 1
rules:
  - name: client
    key: [ip]
    limits: [1/m]
    overrides:
      10.0.0.0/8: {unlimited: true}
      10.1.0.0/16: {limits: [5/m], until: 2026-12-31T12:00:00Z}
`))
	if err != nil {
		t.Fatal(err)
	}
	before := time.Date(2026, time.December, 31, 11, 59, 59, 0, time.UTC)
	golden(t, "override-of-a-network", explained(t, c, Flags{Request: "GET /", IP: "10.1.2.3"}, before))
	golden(t, "override-unlimited", explained(t, c, Flags{Request: "GET /", IP: "10.1.2.3"}, before.Add(time.Second)))
}

// TestExplainVariables checks what is said about keys by a segment of the path, as the rules see it, by a label of the host, and by a
// value of the query.
func TestExplainVariables(t *testing.T) {
	c, err := config.Parse("headgate.yaml", []byte(`version: 1
paths: {ignore_case: true, ignore_parameters: true}
fair_share: {client: "path:{id}", capacity: 10, match: {path: "/users/{id}/**"}}
rules:
  - {name: user, match: {path: "/Users/{id}/**"}, key: ["path:{id}", "query:page"], limits: [9/m], overrides: {acme: {limits: [5/m]}}}
  - {name: tenant, match: {hosts: ["{tenant}.example.com"]}, key: ["host:{tenant}"], missing: shared, limits: [9/m]}
`))
	if err != nil {
		t.Fatal(err)
	}
	request := Flags{Request: "GET /users;v=1/ACME/a?page=a%20b", Header: []string{"Host: Shop.example.com"}}
	golden(t, "variables", explained(t, c, request, time.Unix(0, 0)))
	request.Request = "GET /users/x/a?page=1&page=2"
	golden(t, "query-of-two-meanings", explained(t, c, request, time.Unix(0, 0)))
}

// TestExplainAGroup checks what is said about rules that another one of their group replaces.
func TestExplainAGroup(t *testing.T) {
	c, err := config.Parse("headgate.yaml", []byte(`version: 1
rules:
  - {name: trial, group: api, match: {path: /v2/*}, key: [ip], limits: [1/h], mode: shadow}
  - {name: upload, group: api, match: {path: /v2/upload}, key: [ip], limits: [3/m]}
  - {name: old, group: api, match: {path: /v2/*}, key: [ip], limits: [3/m], mode: off}
  - {name: api, group: api, key: [ip], limits: [1/m]}
  - {name: all, key: [all], limits: [9/s]}
`))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "group", explained(t, c, Flags{Request: "GET /v2/upload"}, time.Now()))
}

// TestExplainAtATime checks that a fixed window ends at its own time, whenever the requests
// arrive in it.
func TestExplainAtATime(t *testing.T) {
	c, err := config.Parse("headgate.yaml", []byte("version: 1\nrules:\n"+
		"  - {name: hour, key: [all], algorithm: fixed_window, limits: [2/h]}\nproxy: {upstream: 'http://a', header_style: x-ratelimit}\n"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "fixed-window", explained(t, c, Flags{Request: "GET /", Times: 3}, time.Date(2026, 1, 1, 12, 45, 0, 0, time.UTC)))
}

// TestExplainInFlight checks a rule that bounds requests in flight alone.
func TestExplainInFlight(t *testing.T) {
	c, err := config.Parse("headgate.yaml", []byte("version: 1\nrules: [{name: alone, key: [all], in_flight: 3}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := explained(t, c, Flags{Request: "GET /"}, time.Now())
	if want := "alone-in-flight: 2 of 3 left"; !strings.Contains(got, want) {
		t.Errorf("got %q, want it to contain %q", got, want)
	}
}

// sharing has a rule of two requests per minute, and a capacity of 40 units. home-loan has weight 2.
const sharing = `version: 1
rules: [{name: product, match: {path: /v1/*}, key: [header:X-Client-Id], limits: [2/m]}]
proxy:
  upstream: http://127.0.0.1:9000
fair_share: {client: header:X-Client-Id, capacity: 40, cycle: 10s, weights: {home-loan: 2}, cost: header:X-Cost}
`

// exempt excludes probes from fair share. It comes before the cost.
const exempt = "match: {path: /v1/*}, exempt: {paths: [/v1/healthz], methods: [OPTIONS], addresses: [10.0.0.0/8]}, cost:"

// TestExplainOfFairShare compares the whole text for each result of fair share.
func TestExplainOfFairShare(t *testing.T) {
	with := func(old, more string) string { return strings.Replace(sharing, old, more, 1) }
	for name, row := range map[string]struct {
		config string
		flags  Flags
	}{
		"share-of-one-of-two":     {sharing, Flags{Request: "GET /v1/a", Header: []string{"X-Client-Id: barley"}}},
		"share-of-a-pinned":       {sharing, Flags{Request: "GET /v2/a", Header: []string{"X-Client-Id: home-loan", "X-Cost: 7"}, Times: 3}},
		"share-is-used":           {sharing, Flags{Request: "GET /v2/a", Header: []string{"X-Client-Id: barley"}, Times: 20}},
		"share-is-returned":       {sharing, Flags{Request: "GET /v1/a", Header: []string{"X-Client-Id: barley"}, Times: 20}},
		"share-of-nobody":         {sharing, Flags{Request: "GET /v1/a"}},
		"share-of-the-anonymous":  {with("cost:", "anonymous: guests, cost:"), Flags{Request: "GET /v1/a"}},
		"share-of-the-others":     {with("cost:", "new_clients_per_cycle: 0, cost:"), Flags{Request: "GET /v1/a", Header: []string{"X-Client-Id: barley"}}},
		"share-in-shadow":         {with("cost:", "mode: shadow, cost:"), Flags{Request: "GET /v1/a"}},
		"share-off":               {with("cost:", "mode: off, cost:"), Flags{Request: "GET /v1/a"}},
		"share-beside-all":        {with("rules:", "evaluate: independent\nrules:"), Flags{Request: "GET /v1/a"}},
		"share-of-long-names":     {sharing, Flags{Request: "GET /v2/a", Header: []string{"X-Client-Id: " + strings.Repeat("barley ", 30)}}},
		"share-of-no-cost-at-all": {sharing, Flags{Request: "GET /v1/a", Header: []string{"X-Client-Id: barley", "X-Cost: 41"}}},
		"share-exempt-path":       {with("cost:", exempt), Flags{Request: "GET //v1/./healthz"}},
		"share-exempt-address":    {with("cost:", exempt), Flags{Request: "GET /v1/a", IP: "10.1.2.3"}},
		"share-exempt-method":     {with("cost:", exempt), Flags{Request: "OPTIONS /v1/a"}},
		"share-exempt-no-more":    {with("cost:", exempt), Flags{Request: "GET /v1/healthz/../a", Header: []string{"X-Forwarded-For: 10.1.2.3"}}},
		"share-not-matched":       {with("cost:", exempt), Flags{Request: "GET /V1/healthz"}},
		"share-exempt-folded": {
			"paths: {ignore_case: true, ignore_parameters: true}\n" + with("cost:", exempt),
			Flags{Request: "GET /V1;a/HEALTHZ"},
		},
		"share-exempt-health": {
			strings.NewReplacer("http:", "h2c:", "/v1/*", "/*").Replace(sharing),
			Flags{Request: "POST /grpc.health.v1.Health/Check", Header: []string{"Content-Type: application/grpc"}},
		},
		"share-without-rules": {
			"version: 1\nfair_share: {client: ip, capacity: 5, weights: {192.0.2.7: 1, 192.0.2.8: 1, 192.0.2.9: 1, 192.0.2.10: 1, 192.0.2.11: 1}}\n",
			Flags{Request: "GET /", IP: "2001:db8::7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("headgate.yaml", []byte(row.config))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, explained(t, c, row.flags, time.Date(2026, 1, 1, 12, 45, 7, 0, time.UTC)))
		})
	}
}

// TestSubject checks that a parsed subject has the same values as a certificate's subject.
func TestSubject(t *testing.T) {
	for text, want := range map[string]string{
		"CN=billing":                     "CN=billing",
		"cn = billing , O=Example":       "CN=billing,O=Example",
		"O=Example,CN=billing":           "CN=billing,O=Example",
		`CN=a\,b,OU=c\+d+OU=e`:           `CN=a\,b,OU=c\+d+OU=e`,
		"C=NL,ST=x,L=y,STREET=z":         "STREET=z,L=y,ST=x,C=NL",
		"POSTALCODE=1,SERIALNUMBER=2":    "SERIALNUMBER=2,POSTALCODE=1",
		`CN=\\`:                          `CN=\\`,
		"CN=größe":                       "CN=größe",
		"OU=a,OU=b,CN=c,O=d,C=e,CN=f":    "CN=f,OU=a+OU=b,O=d,C=e",
		"CN=" + strings.Repeat("x", 300): "CN=" + strings.Repeat("x", 300),
	} {
		name, err := parseSubject(text)
		if got := strings.ReplaceAll(name.String(), ", ", ","); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, err, want)
		}
	}
}

// TestManyWaysToEnd checks that the output about many requests is bounded.
func TestManyWaysToEnd(t *testing.T) {
	e := &explanation{}
	for n := 1; n <= 100; n++ {
		e.count(n, []string{"one", "two"}[n%2])
	}
	if last := e.runs[len(e.runs)-1]; len(e.runs) != maxRuns || last.from != maxRuns || last.to != 100 || last.text != "with different results" {
		t.Errorf("%d outcomes, the last is %+v", len(e.runs), last)
	}
}

// TestExplainQuota: the text of a quota has the customer, the plan, and what follows the included units.
func TestExplainQuota(t *testing.T) {
	c, err := config.Load(filepath.Join("testdata", "headgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)
	for name, f := range map[string]Flags{
		"metered":              {Request: "GET /calls", Header: []string{"X-Customer: acme"}, Times: 3},
		"above-the-hard-limit": {Request: "GET /calls", Header: []string{"X-Customer: b"}, Times: 5},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, explained(t, c, f, now)) })
	}
}

// TestExplainTheThrottle: the throttle has a bound of its own, and no limit of units.
func TestExplainTheThrottle(t *testing.T) {
	for bound, want := range map[string]string{
		"concurrency: 4":                          "bound     4 requests in flight at once; others wait in a queue of 10000 requests, within a deadline of 1s\n",
		"cpu_in_flight: 2s":                       "bound     2s of CPU time in flight at once; others wait in a queue of 10000 requests, within a deadline of 1s\n",
		"concurrency: 4, mode: shadow":            "stage throttle, which is in mode shadow: it reports this result, and does not enforce it\n",
		"concurrency: 4, queue: {max_waiters: 7}": "a queue of 7 requests",
		"concurrency: 1, criticality: critical":   "  decision  allow, within_limit\n",
	} {
		c, err := config.Parse("t.yaml", []byte("version: 1\nthrottle: {deadline: 1s, "+bound+"}\n"+
			"rules: [{name: a, key: [ip], limits: [2/1m]}]\n"))
		if err != nil {
			t.Fatalf("%s: %v", bound, err)
		}
		got := explained(t, c, Flags{Request: "GET /x"}, time.Unix(0, 0))
		if !strings.Contains(got, "\nstage throttle") || !strings.Contains(got, want) || strings.Contains(got, "0/0s") {
			t.Errorf("%s: got\n%s\nwant %q", bound, got, want)
		}
	}
}
