package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/config"
)

// rewrite renews the .want files. Read what changes.
var rewrite = flag.Bool("rewrite", false, "write what is printed to the .want files of testdata")

const explained = "testdata/explain/headgate.yaml"

// golden holds got against a file of testdata/explain.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "explain", name+".want")
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

// TestExplain holds the whole text for each kind of answer.
func TestExplain(t *testing.T) {
	for name, args := range map[string][]string{
		"passes":                 {"GET /v1/product/7", "-H", "X-Client-Id: a"},
		"passes-with-a-warning":  {"GET /v1/product/7", "-H", "X-Client-Id: a", "--times", "4"},
		"refused":                {"GET /v1/product/7", "-H", "X-Client-Id: a", "--times", "6"},
		"banned":                 {"GET /v1/product/7", "-H", "X-Client-Id: a", "--times", "31"},
		"override":               {"HEAD /v1/product", "-H", "X-Client-Id: gold", "--times", "20"},
		"key-is-missing":         {"GET /v1/product", "-H", "X-Other-Id: a"},
		"trusted-proxy":          {"POST /v1/x", "--ip", "10.1.2.3", "-H", "X-Real-User-Ip: 192.0.2.77", "--subject", "o=Example, cn=billing", "--times", "4"},
		"proxy-that-is-not":      {"POST /v1/x", "--ip", "2001:db8::7", "-H", "X-Real-User-Ip: 192.0.2.77"},
		"peer-on-a-socket":       {"POST /v1/x", "--ip", "unix", "-H", "X-Real-User-Ip: 192.0.2.77"},
		"path-is-resolved":       {"GET /v1/x/..//product/./a%20b?q=1", "-H", "X-Client-Id: a"},
		"path-of-two-meanings":   {"GET /v1/product/..;/x"},
		"grpc-of-two-meanings":   {"POST /v1/product/..;/x", "-H", "Content-Type: application/grpc"},
		"redirected":             {"GET /shop/a%20b", "-H", "Host: WWW.shop.example.com:8080", "-H", "X-Tenant: t", "-H", "X-Plan: free", "-H", "X-Cost: 6", "--times", "2"},
		"url-in-place-of-a-path": {"GET http://shop.example.com/shop/a", "-H", "X-Tenant: t", "-H", "X-Plan: free"},
		"cost-that-is-none":      {"GET /shop/a", "-H", "Host: shop.example.com", "-H", "X-Tenant: t", "-H", "X-Plan: free", "-H", "X-Cost: 9"},
		"waits":                  {"GET /reports", "--times", "61"},
		"waits-too-long":         {"GET /reports", "--times", "122"},
		"degraded":               {"GET /feed", "-H", "X-Level: high", "--times", "3"},
		"degraded-no-more":       {"GET /feed", "--times", "6"},
		"marks-of-clients":       {"GET /feed", "-H", "X-Level: high", "-H", "Headgate-Warning: none"},
		"no-rule":                {"GET /nothing"},
		"no-rule-other-method":   {"DELETE /v2/product"},
		"no-rule-other-host":     {"GET /shop/a", "-H", "Host: example.com", "-H", "X-Tenant: t"},
		"no-rule-no-host":        {"GET /shop/a", "-H", "X-Tenant: t", "-H", "X-Plan: free"},
		"no-rule-off":            {"GET /old/a"},
		"no-rule-descriptors":    {"GET /service/a"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := call(t, append([]string{"check", "--config", explained, "--explain"}, args...)...)
			if status != 0 || stderr != "" {
				t.Fatalf("status %d: %s", status, stderr)
			}
			golden(t, name, stdout)
		})
	}
}

// TestExplainAtATime: a fixed window ends when its time has come, wherever in it the
// requests are.
func TestExplainAtATime(t *testing.T) {
	c, err := config.Parse("headgate.yaml", []byte("version: 1\nrules:\n"+
		"  - {name: hour, key: [all], algorithm: fixed_window, limits: [2/h]}\nproxy: {upstream: 'http://a', header_style: x-ratelimit}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	line := "GET /"
	command := checkCommand{Explain: &line, Times: 3}
	if err := command.explain(t.Context(), &out, c, time.Date(2026, 1, 1, 12, 45, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	golden(t, "fixed-window", out.String())
}

// sharing has a rule of two a minute, and 40 units of which home-loan has two parts.
const sharing = `version: 1
rules: [{name: product, match: {path: /v1/*}, key: [header:X-Client-Id], limits: [2/m]}]
proxy:
  upstream: http://127.0.0.1:9000
fair_share: {client: header:X-Client-Id, capacity: 40, cycle: 10s, weights: {home-loan: 2}, cost: header:X-Cost}
`

// exempt leaves probes of fair share out, before its cost.
const exempt = "match: {path: /v1/*}, exempt: {paths: [/v1/healthz], methods: [OPTIONS], addresses: [10.0.0.0/8]}, cost:"

// TestExplainOfFairShare holds the whole text for each thing that fair share may say.
func TestExplainOfFairShare(t *testing.T) {
	line := func(text string) *string { return &text }
	with := func(old, more string) string { return strings.Replace(sharing, old, more, 1) }
	for name, row := range map[string]struct {
		config string
		ask    checkCommand
	}{
		"share-of-one-of-two":     {sharing, checkCommand{Explain: line("GET /v1/a"), Header: []string{"X-Client-Id: barley"}}},
		"share-of-a-pinned":       {sharing, checkCommand{Explain: line("GET /v2/a"), Header: []string{"X-Client-Id: home-loan", "X-Cost: 7"}, Times: 3}},
		"share-is-used":           {sharing, checkCommand{Explain: line("GET /v2/a"), Header: []string{"X-Client-Id: barley"}, Times: 20}},
		"share-is-returned":       {sharing, checkCommand{Explain: line("GET /v1/a"), Header: []string{"X-Client-Id: barley"}, Times: 20}},
		"share-of-nobody":         {sharing, checkCommand{Explain: line("GET /v1/a")}},
		"share-of-the-anonymous":  {with("cost:", "anonymous: guests, cost:"), checkCommand{Explain: line("GET /v1/a")}},
		"share-of-the-others":     {with("cost:", "new_clients_per_cycle: 0, cost:"), checkCommand{Explain: line("GET /v1/a"), Header: []string{"X-Client-Id: barley"}}},
		"share-in-shadow":         {with("cost:", "mode: shadow, cost:"), checkCommand{Explain: line("GET /v1/a")}},
		"share-off":               {with("cost:", "mode: off, cost:"), checkCommand{Explain: line("GET /v1/a")}},
		"share-beside-all":        {with("rules:", "evaluate: independent\nrules:"), checkCommand{Explain: line("GET /v1/a")}},
		"share-of-long-names":     {sharing, checkCommand{Explain: line("GET /v2/a"), Header: []string{"X-Client-Id: " + strings.Repeat("barley ", 30)}}},
		"share-of-no-cost-at-all": {sharing, checkCommand{Explain: line("GET /v1/a"), Header: []string{"X-Client-Id: barley", "X-Cost: 41"}}},
		"share-exempt-path":       {with("cost:", exempt), checkCommand{Explain: line("GET //v1/./healthz")}},
		"share-exempt-address":    {with("cost:", exempt), checkCommand{Explain: line("GET /v1/a"), IP: "10.1.2.3"}},
		"share-exempt-method":     {with("cost:", exempt), checkCommand{Explain: line("OPTIONS /v1/a")}},
		"share-exempt-no-more":    {with("cost:", exempt), checkCommand{Explain: line("GET /v1/healthz/../a"), Header: []string{"X-Forwarded-For: 10.1.2.3"}}},
		"share-not-matched":       {with("cost:", exempt), checkCommand{Explain: line("GET /V1/healthz")}},
		"share-exempt-folded": {
			"paths: {ignore_case: true, ignore_parameters: true}\n" + with("cost:", exempt),
			checkCommand{Explain: line("GET /V1;a/HEALTHZ")},
		},
		"share-exempt-health": {
			strings.NewReplacer("http:", "h2c:", "/v1/*", "/*").Replace(sharing),
			checkCommand{Explain: line("POST /grpc.health.v1.Health/Check"), Header: []string{"Content-Type: application/grpc"}},
		},
		"share-without-rules": {
			"version: 1\nfair_share: {client: ip, capacity: 5, weights: {192.0.2.7: 1, 192.0.2.8: 1, 192.0.2.9: 1, 192.0.2.10: 1, 192.0.2.11: 1}}\n",
			checkCommand{Explain: line("GET /"), IP: "2001:db8::7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("headgate.yaml", []byte(row.config))
			if err != nil {
				t.Fatal(err)
			}
			row.ask.Times = max(1, row.ask.Times)
			var out bytes.Buffer
			if err := row.ask.explain(t.Context(), &out, c, time.Date(2026, 1, 1, 12, 45, 7, 0, time.UTC)); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
		})
	}
}

func TestExplainWithoutRules(t *testing.T) {
	path := write(t, "version: 1\nrules: []\n")
	status, stdout, stderr := call(t, "check", "--config", path, "--explain", "GET /")
	if status != 0 || !strings.Contains(stdout, "the configuration has none") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// TestExplainOfAFaultyRequest: each says what to write instead.
func TestExplainOfAFaultyRequest(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{""}, `the request is empty: write it like 'GET /v1/product'`},
		{[]string{"/v1/product"}, `the request "/v1/product" has no method: write 'GET /v1/product'`},
		{[]string{"http://a/b"}, `the request "http://a/b" has no method: write 'GET http://a/b'`},
		{[]string{"GET"}, `the request "GET" has no path: write it like 'GET /v1/product'`},
		{[]string{"GET /a b"}, `the request "GET /a b" has a space in its path: write %20 for it, as clients do`},
		{[]string{"get /a"}, `the method "get" is never sent: methods are case-sensitive: write GET`},
		{[]string{"GET v1/product"}, `the path "v1/product" does not begin with a slash: write 'GET /v1/product'`},
		{[]string{"G(T /a"}, `no server takes this request: `},
		{[]string{"GET /%zz"}, `no server takes this request: `},
		{[]string{"GET /", "-H", "X-Client-Id=a"}, `the header "X-Client-Id=a" has no colon: write it like -H 'X-Client-Id: a'`},
		{[]string{"GET /", "-H", ": a"}, `the header ": a" has no name before its colon: write it like -H 'X-Client-Id: a'`},
		{[]string{"GET /", "-H", "X Client: a"}, `the header's name "X Client" has a space in it: write it like -H 'X-Client-Id: a'`},
		{[]string{"GET /", "-H", "X-A: b\r\nX-B: c"}, `the header "X-A: b\r\nX-B: c" has a control character in it: leave it out`},
		{[]string{"GET /", "-H", "Host: a", "-H", "Host: b"}, `no server takes this request: `},
		{[]string{"GET /", "--ip", "localhost"}, `"localhost" is no address: write --ip 192.0.2.1, --ip 2001:db8::1 or --ip unix`},
		{[]string{"GET /", "--subject", "billing"}, `"billing" in the subject "billing" has no value: write it like 'CN=billing,O=Example'`},
		{[]string{"GET /", "--subject", "CN=a,X=b"}, `the subject "CN=a,X=b" has the unknown part "X": use CN, SERIALNUMBER, C, O, OU, L, ST, STREET or POSTALCODE`},
		{[]string{"GET /", "--times", "0"}, `--times is 0: write 1 to 1000000`},
		{[]string{"GET /", "--times", "1000001"}, `--times is 1000001: write 1 to 1000000`},
	} {
		status, stdout, stderr := call(t, append([]string{"check", "--config", explained, "--explain"}, row.args...)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "headgate: check: "+row.want) {
			t.Errorf("%q: status %d\n%s\nwant\n%s", row.args, status, stderr, row.want)
		}
	}
}

func TestFlagsOfExplainAlone(t *testing.T) {
	for _, args := range [][]string{{"-H", "A: b"}, {"--ip", "192.0.2.1"}, {"--subject", "CN=a"}, {"--times", "2"}} {
		status, _, stderr := call(t, append([]string{"check", "--config", explained}, args...)...)
		if status != 2 || !strings.Contains(stderr, "belong to --explain") {
			t.Errorf("%q: status %d: %s", args, status, stderr)
		}
	}
	if status, _, stderr := call(t, "check", "--schema", "--explain", "GET /"); status != 2 || !strings.Contains(stderr, "--explain") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestExplainOfAFaultyFile(t *testing.T) {
	path := write(t, strings.Replace(fine, "500/2s", "500/2x", 1))
	if status, _, stderr := call(t, "check", "--config", path, "--explain", "GET /"); status != 2 || !strings.Contains(stderr, path+":3:46: ") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestSubject: what rules see is what a certificate of that subject gives them.
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

// TestManyWaysToEnd: what is told of many requests is bounded.
func TestManyWaysToEnd(t *testing.T) {
	e := &explanation{}
	for n := 1; n <= 100; n++ {
		e.count(n, []string{"one", "two"}[n%2])
	}
	if last := e.runs[len(e.runs)-1]; len(e.runs) != mostRuns || last.from != mostRuns || last.to != 100 || last.text != "in one way and another" {
		t.Errorf("%d runs, the last is %+v", len(e.runs), last)
	}
}

// TestCheckSchema needs no file.
func TestCheckSchema(t *testing.T) {
	status, stdout, stderr := call(t, "check", "--schema", "--config", filepath.Join(t.TempDir(), "none.yaml"))
	var schema struct {
		Schema     string                     `json:"$schema"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal([]byte(stdout), &schema); status != 0 || stderr != "" || err != nil {
		t.Fatalf("status %d: %s%v", status, stderr, err)
	}
	if schema.Schema != "https://json-schema.org/draft/2020-12/schema" || len(schema.Properties["rules"]) == 0 {
		t.Errorf("got\n%s", stdout)
	}
}
