//go:build soak

package acceptance

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

const waysConfiguration = `version: 1
max_memory: 16MiB
paths: {ignore_case: true, ignore_trailing_slash: true, ignore_parameters: true}
identity: {trusted_proxies: ["10.0.0.0/8"], user_ip_headers: [X-Real-User-Ip]}
rules:
  - {name: key, match: {path: /t}, key: [header:X-Api-Key], limits: ["1000000/s"]}
  - {name: get, match: {path: /get/*, methods: [GET]}, key: [all], limits: ["0/s"]}
  - {name: product, match: {path: /v1/product}, key: [all], limits: ["0/s"]}
  - {name: options, match: {methods: [OPTIONS]}, key: [all], limits: ["0/s"]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", hosts: [metrics.example]}
`

// TestSoakWaysAround sends random variants of trailers, OPTIONS *, HEAD, folded paths and the
// Host of /metrics. No request bypasses a rule, no forbidden trailer reaches the service, and
// /metrics answers no other host name.
func TestSoakWaysAround(t *testing.T) {
	began := time.Now()
	behind := newWitness(t)
	i := launch(t, file(t, fmt.Sprintf(waysConfiguration, behind.url)))
	idle := quietly(t, i, behind)
	w := ways{i: i, behind: behind, random: rand.New(rand.NewPCG(9, 12)), done: map[string]int{}}
	for range 4000 {
		w.trailers(t)
		w.refusals(t)
		w.scrape(t)
	}
	settles(t, i, behind, idle)
	t.Logf("in %v: %v", time.Since(began).Round(time.Second), w.done)
	for _, kind := range []string{"trailers that passed", "429", "metrics 200", "metrics 403"} {
		if w.done[kind] < 100 {
			t.Errorf("%s: %d, the soak shows nothing", kind, w.done[kind])
		}
	}
}

// ways sends requests and counts their results.
type ways struct {
	i      *instance
	behind *witness
	random *rand.Rand
	done   map[string]int
}

func (w *ways) pick(from ...string) string { return from[w.random.IntN(len(from))] }

// some gives some of the names, in random order.
func (w *ways) some(names []string) []string {
	all := slices.Clone(names)
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:w.random.IntN(5)]
}

// letters changes the case of some letters, and some separators.
func (w *ways) letters(text string, marks bool) string {
	out := []byte(text)
	for i, c := range out {
		switch {
		case w.random.IntN(3) > 0:
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			out[i] ^= 0x20
		case c == '-' && marks:
			out[i] = "_.~-"[w.random.IntN(4)]
		}
	}
	return string(out)
}

// allowedTrailers may follow a body if they are declared; no other name of the test may.
var allowedTrailers = []string{"x-sum", "digest", "server-timing", "x-a"}

var forbiddenTrailers = []string{
	"Host", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Anything", "Forwarded", "X-Api-Key", "X-Real-User-Ip", "X-Real-Ip", "Cookie",
	"Authorization", "Content-Length", "Transfer-Encoding", "Content-Type", "Te", "Trailer", "Via", "Upgrade", "Connection", "Headgate-Warning",
}

// trailers sends a body with declared and undeclared trailers.
func (w *ways) trailers(t *testing.T) {
	t.Helper()
	names := slices.Concat(allowedTrailers, allowedTrailers, forbiddenTrailers)
	declared, sent := w.some(names), w.some(names)
	if w.random.IntN(2) == 0 {
		sent = append(sent, declared...)
	}
	head := []string{"POST /t HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Connection: close"}
	for _, name := range declared {
		head = append(head, "Trailer: "+w.letters(name, false))
	}
	body := "5\r\nhello\r\n0\r\n"
	for _, name := range sent {
		body += w.letters(name, w.random.IntN(4) == 0) + ": forged" + w.pick("", "", "", "", " ", "\t", "\r\n x") + "\r\n"
	}
	c := dial(t, "tcp", w.i.Proxy)
	c.send(request(head...) + body + "\r\n")
	status := statusOr0(c.answer())
	c.Close()
	for _, r := range w.behind.take() {
		for line := range strings.Lines(r.trailer) {
			name, _, _ := strings.Cut(strings.ToLower(line), ":")
			same := func(d string) bool { return strings.EqualFold(d, name) }
			if !slices.Contains(allowedTrailers, name) || !slices.ContainsFunc(declared, same) || status != http.StatusOK {
				t.Errorf("declared %q, sent %q: status %d, the service gets %q", declared, body, status, r.trailer)
			}
			w.done["trailers that passed"]++
		}
		for _, name := range []string{"x-api-key", "x-real-user-ip", "cookie", "authorization"} {
			if r.fields[name] != nil {
				t.Errorf("sent %q: the service gets the header %s", body, name)
			}
		}
	}
	w.done[fmt.Sprint("trailers ", status)]++
}

// refusals sends random spellings of a resource with a limit of 0.
func (w *ways) refusals(t *testing.T) {
	t.Helper()
	path := w.letters("/v1/product", false)
	path = strings.Replace(path, "/", w.pick("/", "//", "/./", "/x/../", "/;a/"), 1) + w.pick("", "/", ";x=1", ";x=1/", "/;", ";", ";;", "?a=b", "/?a")
	if strings.HasPrefix(path, "/;a/") {
		path = path[len("/;a"):]
	}
	if w.random.IntN(4) == 0 {
		at := strings.LastIndexByte(path, '/') + 1
		if at < len(path) && path[at] != ';' && path[at] != '?' {
			path = path[:at] + fmt.Sprintf("%%%02x", path[at]) + path[at+1:]
		}
	}
	line := w.pick("GET "+path, "POST "+path, "HEAD "+path, "HEAD /get/x", "HEAD /GET/x;y", "HEAD /get/", "OPTIONS *", "OPTIONS *", "OPTIONS /x", "OPTIONS http://a/x", "OPTIONS http://a")
	c := dial(t, "tcp", w.i.Proxy)
	c.send(request(line+" HTTP/1.1", "Host: "+w.pick("a", "b.example:80"), "Connection: close"))
	resp := c.head()
	c.Close()
	if resp != http.StatusTooManyRequests {
		t.Errorf("%s: status %d, want 429", line, resp)
	}
	if got := w.behind.take(); len(got) > 0 {
		t.Errorf("%s reaches the service: %s", line, got[0].raw)
	}
	w.done[fmt.Sprint(resp)]++
}

// head reads the status of an answer, which may have no body.
func (w *wire) head() int {
	w.t.Helper()
	resp, err := http.ReadResponse(w.in, &http.Request{Method: http.MethodHead})
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// scrape reads /metrics with a random Host.
func (w *ways) scrape(t *testing.T) {
	t.Helper()
	name := w.pick("metrics.example", "localhost", "127.0.0.1", "[::1]", "192.0.2.1", "evil.example", "a", "metrics.example.evil.example",
		"xmetrics.example", "127.0.0.1.evil.example", "localhost.evil.example", "2130706433", "0x7f.1", "127.1", "")
	host := w.letters(name, false) + w.pick("", ".", ":9902", ":80", "..", ":", ":x", " ", "\t", ",a", "@a", "%00", "/", "#", "?")
	c := dial(t, "tcp", w.i.Health)
	c.send(request("GET /metrics HTTP/1.1", "Host: "+host, "Connection: close"))
	got := c.answer()
	c.Close()
	status := statusOr0(got)
	w.done[fmt.Sprint("metrics ", status)]++
	if status == http.StatusOK && !isOurs(host) {
		t.Errorf("/metrics answers Host %q", host)
	}
	if plain := strings.EqualFold(name, "metrics.example") || name == "127.0.0.1"; plain && host == name && status != http.StatusOK {
		t.Errorf("/metrics answers Host %q with %d", host, status)
	}
}

// isOurs is the rule in other words: an address, localhost or the name, and a port.
func isOurs(host string) bool {
	host = strings.ToLower(strings.Trim(host, " \t"))
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:colon]
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.TrimSuffix(host, ".") == "metrics.example"
}
