package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplain checks that each flag reaches the request. cmd/internal/explain tests the output.
func TestExplain(t *testing.T) {
	path := write(t, "version: 1\nidentity: {trusted_proxies: [10.0.0.0/8]}\nrules:\n"+
		"  - {name: product, key: [mtls_subject, header:X-Client-Id], limits: [3/h]}\n")
	status, stdout, stderr := call(t, "check", "--config", path, "--explain", "GET /v1/product",
		"-H", "X-Client-Id: a,b", "--ip", "10.1.2.3", "--subject", "CN=billing", "--times", "4")
	for _, want := range []string{"request GET /v1/product\n", "from      10.1.2.3\n", "subject   CN=billing\n", `"a,b"`, "\nof 4 requests", "answer 429 "} {
		if status != exitOK || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("status %d: %s%s\nwant %q", status, stdout, stderr, want)
		}
	}
}

func TestExplainWithoutRules(t *testing.T) {
	path := write(t, "version: 1\nrules: []\n")
	status, stdout, stderr := call(t, "check", "--config", path, "--explain", "GET /")
	if status != 0 || !strings.Contains(stdout, "the configuration has no rules") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// TestExplainOfAFaultyRequest checks that each error says what to write instead.
func TestExplainOfAFaultyRequest(t *testing.T) {
	path := write(t, fine)
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{""}, `the request is empty: write it like 'GET /v1/product'`},
		{[]string{"/v1/product"}, `the request "/v1/product" has no method: write 'GET /v1/product'`},
		{[]string{"http://a/b"}, `the request "http://a/b" has no method: write 'GET http://a/b'`},
		{[]string{"GET"}, `the request "GET" has no path: write it like 'GET /v1/product'`},
		{[]string{"GET /a b"}, `the request "GET /a b" has a space in its path: write %20 for it, as clients do`},
		{[]string{"get /a"}, `the method "get" does not exist: methods are case-sensitive: write GET`},
		{[]string{"GET v1/product"}, `the path "v1/product" does not begin with a slash: write 'GET /v1/product'`},
		{[]string{"G(T /a"}, `a server would refuse this request: `},
		{[]string{"GET /%zz"}, `a server would refuse this request: `},
		{[]string{"GET /", "-H", "X-Client-Id=a"}, `the header "X-Client-Id=a" has no colon: write it like -H 'X-Client-Id: a'`},
		{[]string{"GET /", "-H", ": a"}, `the header ": a" has no name before its colon: write it like -H 'X-Client-Id: a'`},
		{[]string{"GET /", "-H", "X Client: a"}, `the header's name "X Client" has a space in it: write it like -H 'X-Client-Id: a'`},
		{[]string{"GET /", "-H", "X-A: b\r\nX-B: c"}, `the header "X-A: b\r\nX-B: c" has a control character in it: leave it out`},
		{[]string{"GET /", "-H", "Host: a", "-H", "Host: b"}, `a server would refuse this request: `},
		{[]string{"GET /", "--ip", "localhost"}, `"localhost" is not an address: write --ip 192.0.2.1, --ip 2001:db8::1 or --ip unix`},
		{[]string{"GET /", "--subject", "billing"}, `"billing" in the subject "billing" has no value: write it like 'CN=billing,O=Example'`},
		{[]string{"GET /", "--subject", "CN=a,X=b"}, `the subject "CN=a,X=b" has the unknown part "X": use CN, SERIALNUMBER, C, O, OU, L, ST, STREET or POSTALCODE`},
		{[]string{"GET /", "--times", "0"}, `--times is 0: write 1 to 1000000`},
		{[]string{"GET /", "--times", "1000001"}, `--times is 1000001: write 1 to 1000000`},
	} {
		status, stdout, stderr := call(t, append([]string{"check", "--config", path, "--explain"}, row.args...)...)
		if status != 2 || stdout != "" || !strings.HasPrefix(stderr, "headgate: check: "+row.want) {
			t.Errorf("%q: status %d\n%s\nwant\n%s", row.args, status, stderr, row.want)
		}
	}
}

func TestFlagsOfExplainAlone(t *testing.T) {
	path := write(t, fine)
	for _, args := range [][]string{{"-H", "A: b"}, {"--ip", "192.0.2.1"}, {"--subject", "CN=a"}, {"--times", "2"}} {
		status, _, stderr := call(t, append([]string{"check", "--config", path}, args...)...)
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

// TestCheckSchema checks that --schema reads no configuration file.
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
