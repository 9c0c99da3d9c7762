package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

const loggedConfiguration = `version: 1
max_memory: 16MiB
log: {access: %s, access_file: %s}
identity: {trusted_proxies: [%s]}
rules:
  - {name: client, match: {path: /limited}, key: [header:X-Client-Id], limits: ["1/1h"]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// logged waits until an access log has the given number of lines, and reads them.
func logged(t *testing.T, path string, lines int) []string {
	t.Helper()
	var all []string
	eventually(t, fmt.Sprint(lines, " lines in ", path), func() bool {
		text, _ := os.ReadFile(path)
		all = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return len(all) >= lines && len(text) > 0
	})
	return all
}

// TestRequestID: a request's ID is sent to the upstream, in the answer and to the log. Only a
// trusted peer may set the ID.
func TestRequestID(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for _, c := range []struct {
		trusted, sent string
		kept          bool
	}{
		{"127.0.0.0/8", "trace/abc-123", true},
		{"127.0.0.0/8", "", false},
		{"127.0.0.0/8", `a"b`, false},
		{"127.0.0.0/8", strings.Repeat("x", 129), false},
		{"10.0.0.0/8", "trace/abc-123", false},
	} {
		behind := newWitness(t)
		path := filepath.Join(t.TempDir(), "access.log")
		i := start(t, fmt.Sprintf(loggedConfiguration, "json", path, c.trusted), behind.url)
		resp, _ := get(t, "http://"+i.Proxy+"/x", "X-Request-Id", c.sent, "Connection", "x-request-id, close")
		id := resp.Header.Get("X-Request-Id")
		if c.kept && id != c.sent || !c.kept && !made.MatchString(id) {
			t.Errorf("sent %q by a peer of %s: %q is answered", c.sent, c.trusted, id)
		}
		if got := behind.take(); len(got) != 1 || got[0].one("x-request-id") != id {
			t.Errorf("%q is answered, and the upstream is told %+v", id, got)
		}
		var line struct {
			ID string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(logged(t, path, 1)[0]), &line); err != nil || line.ID != id {
			t.Errorf("%q is answered and %q logged: %v", id, line.ID, err)
		}
		// A refusal also has an ID.
		for range 2 {
			resp, _ = get(t, "http://"+i.Proxy+"/limited", "X-Client-Id", "a")
		}
		if resp.StatusCode != http.StatusTooManyRequests || !made.MatchString(resp.Header.Get("X-Request-Id")) {
			t.Errorf("a refusal: %d %v", resp.StatusCode, resp.Header)
		}
	}
}

// TestAccessLogJSON: each request is one line of JSON, whatever clients send. Unprintable
// characters are escaped, for example the right-to-left override.
func TestAccessLogJSON(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	path := filepath.Join(t.TempDir(), "access.log")
	i := start(t, fmt.Sprintf(loggedConfiguration, "json", path, "10.0.0.0/8"), behind.url)
	w := dial(t, "tcp", i.Proxy)
	w.send(request(`GET /limited?q="%0a&x=<b> HTTP/1.1`, "Host: Api.Example:80", "X-Client-Id: a", "User-Agent: evil\u202e\"\\", "Referer: \xff\xfe"))
	if got := w.answer(); got == nil || got.status != http.StatusOK {
		t.Fatalf("the answer is %+v", got)
	}
	head, _ := curl(t, "--http2-prior-knowledge", "-H", "X-Client-Id: a", "http://"+i.Proxy+"/limited")
	if head[0] != "HTTP/2 429 " {
		t.Errorf("%q", head)
	}
	want := []map[string]any{
		{
			"remote_ip": "127.0.0.1", "method": "GET", "host": "Api.Example:80", "uri": `/limited?q="%0a&x=<b>`, "proto": "HTTP/1.1",
			"status": 200.0, "bytes": 5.0, "user_agent": "evil\u202e\"\\", "referer": "\uFFFD\uFFFD", "upstream_status": 200.0,
			"verdict": "allow", "reason": "within_limit", "rule": "client",
		},
		{
			"proto": "HTTP/2.0", "status": 429.0, "verdict": "deny", "reason": "over_limit", "rule": "client", "upstream_status": nil,
		},
	}
	for n, line := range logged(t, path, 2) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil || strings.Contains(line, "\u202e") {
			t.Fatalf("%v: %q", err, line)
		}
		for name, value := range want[n] {
			if got[name] != value {
				t.Errorf("line %d: %s is %v, want %v", n+1, name, got[name], value)
			}
		}
		if duration, ok := got["duration"].(float64); !ok || duration <= 0 || duration > 10 {
			t.Errorf("line %d: the duration is %v", n+1, got["duration"])
		}
	}
}

// TestAccessLogCombined checks the combined format. Values from clients cannot add lines or
// fields.
func TestAccessLogCombined(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	path := filepath.Join(t.TempDir(), "access.log")
	i := start(t, fmt.Sprintf(loggedConfiguration, "combined", path, "10.0.0.0/8"), behind.url)
	w := dial(t, "tcp", i.Proxy)
	w.send(request("GET /x?y=1 HTTP/1.1", "Host: a", "User-Agent: a\"b\\c\xff", "Referer: http://a/"))
	w.answer()
	get(t, "http://"+i.Proxy+"/limited", "X-Client-Id", "a", "User-Agent", "")
	get(t, "http://"+i.Proxy+"/limited", "X-Client-Id", "a", "User-Agent", "")
	const when = `\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] `
	for n, want := range []string{
		`^127\.0\.0\.1 - - ` + when + `"GET /x\?y=1 HTTP/1\.1" 200 5 "http://a/" "a\\"b\\\\c\\xFF"$`,
		`^127\.0\.0\.1 - - ` + when + `"GET /limited HTTP/1\.1" 200 5 "-" "-"$`,
		`^127\.0\.0\.1 - - ` + when + `"GET /limited HTTP/1\.1" 429 \d+ "-" "-"$`,
	} {
		if line := logged(t, path, 3)[n]; !regexp.MustCompile(want).MatchString(line) {
			t.Errorf("line %d is\n%s\nwant\n%s", n+1, line, want)
		}
	}
}

// TestAccessLogRotated renames the log and sends SIGHUP during requests, as logrotate does. No
// line is lost or written twice.
func TestAccessLogRotated(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	path := filepath.Join(t.TempDir(), "access.log")
	i := start(t, fmt.Sprintf(loggedConfiguration, "json", path, "10.0.0.0/8"), behind.url)
	var asked atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				get(t, fmt.Sprintf("http://%s/%d", i.Proxy, asked.Load()))
				asked.Add(1)
			}
		}
	}()
	for n := range 3 {
		logged(t, path, 10)
		if err := os.Rename(path, fmt.Sprint(path, ".", n)); err != nil {
			t.Fatal(err)
		}
		if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	logged(t, path, 10)
	close(stop)
	<-stopped
	if status := i.stop(); status != 0 { // The process writes its buffered lines.
		t.Errorf("exit status %d\n%s", status, i.text())
	}
	seen := map[string]int{}
	for _, name := range []string{path + ".0", path + ".1", path + ".2", path} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var entry struct {
				URI string `json:"uri"`
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("%s: %v: %q", name, err, line)
			}
			seen[entry.URI]++
		}
	}
	for n := range asked.Load() {
		if seen[fmt.Sprint("/", n)] != 1 {
			t.Errorf("request %d of %d has %d lines", n, asked.Load(), seen[fmt.Sprint("/", n)])
		}
	}
}
