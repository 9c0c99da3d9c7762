package httpdecide

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/internal/loglimit"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/internal/testkit/logs"
)

const subrequestRules = `
identity: {trusted_proxies: [10.0.0.0/8], user_ip_headers: [X-Real-Ip]}
rules:
- {name: path, match: {path: /a/*}, key: [path, ip], limits: [1/365d]}
- {name: host, match: {hosts: [api.example.com]}, key: [method], limits: [1/365d]}
- {name: header, match: {path: /header}, key: ["header:X-Client-Id"], limits: [1/365d]}
- {name: cookie, match: {path: /cookie}, key: ["cookie:id"], limits: [1/365d]}
- {name: query, match: {path: "/q/{id}"}, key: ["path:{id}", "query:user"], limits: [1/365d]}
- {name: user, match: {path: /user}, key: [user_ip], limits: [1/365d]}
- {name: moved, match: {path: /moved}, key: [all], limits: [1/365d], on_exceed: {action: redirect, location: "https://b.example/x"}}
- {name: less, match: {path: /less}, key: [all], limits: [1/365d], on_exceed: {action: degrade, header: X-Degraded, value: "1"}}
- {name: late, match: {path: /late}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
- {name: failing, match: {path: /failing}, key: [all], limits: [1/365d], on_exceed: {status: 500}}
- {name: post, match: {methods: [POST], path: /post}, key: [all], limits: [1/365d]}
`

// described gives the fields of a gateway for a request, with the names of a family.
func described(family, method, uri string, more ...string) []string {
	return append([]string{"X-" + family + "-Method: " + method, "X-" + family + "-Uri: " + uri, "X-Forwarded-For: 192.0.2.1"}, more...)
}

// TestSubrequests: the fields of the family decide what a request counts under.
func TestSubrequests(t *testing.T) {
	s := serviceOf(t, subrequestRules)
	for i, row := range []struct {
		query  string
		fields []string
		status int
	}{
		{"from=original", described("Original", "GET", "/a/b?q=1"), 204},
		{"from=original", described("Original", "GET", "/a/b"), 429},
		{"from=forwarded", described("Forwarded", "GET", "//x/../a/./%62"), 429},
		{"from=forwarded&refuse=403", described("Forwarded", "GET", "/a/b"), 403},
		{"refuse=403&from=forwarded", described("Forwarded", "GET", "/a/b"), 403},
		{"from=original", described("Original", "GET", "/a/c"), 204},
		// The other family is the client's.
		{"from=original", described("Original", "GET", "/a/c", "X-Forwarded-Uri: /a/new", "X-Forwarded-Method: PUT", "X-Forwarded-Host: b"), 429},
		{"from=forwarded", described("Forwarded", "GET", "/a/c", "X-Original-Uri: /a/new", "X-Original-Method: PUT"), 429},
		// The last address that is no trusted proxy is the client's.
		{"from=original", []string{"X-Original-Method: GET", "X-Original-Uri: /a/c", "X-Forwarded-For: 203.0.113.9, 192.0.2.1, 10.9.9.9"}, 429},
		{"from=original", []string{"X-Original-Method: GET", "X-Original-Uri: /a/c", "X-Forwarded-For: 203.0.113.9"}, 204},
		{"from=original", described("Original", "GET", "/", "X-Original-Host: API.example.com.:443"), 204},
		{"from=original", described("Original", "GET", "/?x", "X-Original-Host: api.example.com"), 429},
		{"from=original", described("Original", "GET", "/header", "X-Client-Id: a"), 204},
		{"from=original", described("Original", "GET", "/header", "X-Client-Id: a"), 429},
		{"from=original", described("Original", "GET", "/header", "X-Client-Id: a", "X-Client-Id: b"), 400},
		{"from=original&refuse=403", described("Original", "GET", "/header", "X-Client-Id: a", "X-Client-Id: b"), 403},
		{"from=original", described("Original", "GET", "/cookie", "Cookie: id=a"), 204},
		{"from=original", described("Original", "GET", "/cookie", "Cookie: b=c; id=a"), 429},
		{"from=original", described("Original", "GET", "/q/a?user=b"), 204},
		{"from=original", described("Original", "GET", "/q/%61?x=y&us%65r=b"), 429},
		{"from=original", described("Original", "GET", "/q/a?user=c"), 204},
		{"from=original", described("Original", "GET", "/q/a?user=c&user=d"), 400},
		{"from=original", described("Original", "GET", "/q/a?user=a+b"), 400},
		{"from=original", described("Original", "GET", "/user", "X-Real-Ip: 198.51.100.1"), 204},
		{"from=original", described("Original", "GET", "/user", "X-Real-Ip: 198.51.100.1"), 429},
		{"from=original", described("Original", "GET", "/moved"), 204},
		{"from=original", described("Original", "GET", "/moved"), 302},
		{"from=original", described("Original", "GET", "/late"), 204},
		{"from=original", described("Original", "GET", "/late"), 429},
		{"from=original", described("Original", "GET", "/late"), 429},
		// No call of gRPC gets the status 200, and a gateway the body with the refusal.
		{"from=original", described("Original", "POST", "/post", "Content-Type: application/grpc"), 204},
		{"from=original", described("Original", "POST", "/post", "Content-Type: application/grpc"), 429},
		{"from=original", described("Original", "POST", "/post", "Connect-Protocol-Version: 1", "Content-Type: application/json"), 429},
		{"from=original", described("Original", "GET", "/a%5cb"), 400},
		{"from=original&refuse=403", described("Original", "GET", "/a%5cb"), 403},
		{"from=original", described("Original", "GET", "a/b"), 400},
		// nginx sends the service /a/b for all of these, and other gateways the rest too.
		{"from=original", described("Original", "GET", "/a/b#x"), 400},
		{"from=original", described("Original", "GET", "/%61/b#"), 400},
		{"from=original", described("Original", "GET", "/a/b#y?q=1"), 400},
		{"from=forwarded", described("Forwarded", "GET", "http://h/a/b?q=1#x"), 400},
		{"from=original&refuse=403", described("Original", "GET", "/a/b#x"), 403},
		{"from=original", described("Original", "GET", "/a/b%23x"), 204}, // The service gets it as %23 too.
		{"from=original", described("Original", "GET", ""), 400},
		{"from=original", described("Original", "", "/a"), 400},
		{"from=original", described("Original", "GET", "/a", "X-Original-Method: PUT"), 400},
		{"from=original", described("Original", "GET", "/a", "X-Original-Uri: /b"), 400},
		{"from=original", described("Original", "GET", "/", "X-Original-Host: a", "X-Original-Host: b"), 400},
		{"from=original", described("Forwarded", "GET", "/a"), 400},
		{"from=original", []string{"X-Original-Method: GET", "X-Original-Uri: /a"}, 400}, // No address.
		{"", described("Original", "GET", "/a"), 400},
		{"from=both", described("Original", "GET", "/a"), 400},
		{"from=original&from=forwarded", described("Original", "GET", "/a"), 400},
		{"from=original&refuse=404", described("Original", "GET", "/a"), 400},
		{"from=original&limit=5", described("Original", "GET", "/a"), 400},
		{"from=original&refuse=403&refuse=403", described("Original", "GET", "/a"), 400},
	} {
		if w := s.subrequest(t, row.query, row.fields...); w.Code != row.status {
			t.Errorf("row %d, %s, %v: got %d %s, want %d", i, row.query, row.fields, w.Code, w.Body, row.status)
		}
	}
}

// TestAmbiguousFields: a value that a gateway or a service can read in another way is refused with the name of its field.
func TestAmbiguousFields(t *testing.T) {
	s := serviceOf(t, subrequestRules)
	for _, family := range []string{"Original", "Forwarded"} {
		for field, values := range map[string][]string{
			"Method": {"", "GET, PUT", "GET,PUT", "GET PUT", "GET\tPUT", "G\xc4T", "GET/", "(GET)"},
			"Host": {
				"a, b", "a,b", "a b", "a\tb", "user@a", "user:secret@a", "a/b", "a/", "http://a", "a?b", "a#b", "a\\b", "a%2fb", "a:80:90", "a:b",
				"a:65536", ":80", "[::1", "::1", "[::1]x", "[::1%25eth0]", "[a]", "a..b", ".a", "\xc3\xa4.example",
			},
			"Uri": {
				"", "a", "*", "?a", "http://b/a", "b:80", "//b/a#", "/a#b", "/a b", "/a\tb", "/a?b c", "/a?b#c", "/a, /b", "/%zz", "/a\\b", "/a/..%2fb",
			},
		} {
			for _, value := range values {
				stated := map[string]string{"Method": "GET", "Uri": "/free", "Host": "a"}
				stated[field] = value
				sent := described(family, stated["Method"], stated["Uri"], "X-"+family+"-Host: "+stated["Host"])
				w := s.subrequest(t, "from="+strings.ToLower(family), sent...)
				named := strings.Contains(w.Body.String(), "X-"+family+"-"+field)
				if w.Code != http.StatusBadRequest || !named && !strings.Contains(value, "\\") && !strings.Contains(value, "%") {
					t.Errorf("X-%s-%s: %q gets %d %s", family, field, value, w.Code, w.Body)
				}
			}
		}
		for _, sent := range [][]string{
			described(family, "GET", "/free"), // HTTP/1.0 without a host.
			described(family, "GET", "/free", "X-"+family+"-Host: "),
			described(family, "GET", "/free", "X-"+family+"-Host: [2001:db8::1]:8443"),
			described(family, "GET", "/free", "X-"+family+"-Host: my_host.example.com.:80"),
			described(family, "OPTIONS", "*"),
			described(family, "M-SEARCH", "/free"),
			described(family, "GET", "/free?a=b,c;d&e=%20\xc3\xa4"),
			described(family, "GET", "//free//"),
		} {
			if w := s.subrequest(t, "from="+strings.ToLower(family), sent...); w.Code != http.StatusNoContent {
				t.Errorf("%q gets %d %s", sent, w.Code, w.Body)
			}
		}
	}
}

// TestSubrequestAnswers: answers have the rate limit fields, the time to wait and the marks.
func TestSubrequestAnswers(t *testing.T) {
	s := serviceOf(t, subrequestRules)
	w := s.subrequest(t, "from=original", described("Original", "GET", "/a/b")...)
	if got := w.Header().Get("Ratelimit-Policy"); got != `"path";q=1;w=31536000` || w.Header().Get("Ratelimit") == "" || w.Body.Len() > 0 {
		t.Errorf("allowed: %v", w.Header())
	}
	w = s.subrequest(t, "from=original&refuse=403", described("Original", "GET", "/a/b")...)
	if w.Header().Get("Retry-After") == "" || w.Header().Get("Ratelimit") == "" || !strings.Contains(w.Body.String(), "quota-exceeded") {
		t.Errorf("refused: %v %s", w.Header(), w.Body)
	}
	s.subrequest(t, "from=original", described("Original", "GET", "/less")...)
	if w = s.subrequest(t, "from=original", described("Original", "GET", "/less")...); w.Code != 204 || w.Header().Get("X-Degraded") != "1" {
		t.Errorf("degraded: %d %v", w.Code, w.Header())
	}
	s.subrequest(t, "from=original", described("Original", "GET", "/moved")...)
	if w = s.subrequest(t, "from=original", described("Original", "GET", "/moved")...); w.Header().Get("Location") != "https://b.example/x" {
		t.Errorf("redirected: %v", w.Header())
	}
}

// TestRestatedStatus: with refuse=403, a refusal names the status that it has without.
func TestRestatedStatus(t *testing.T) {
	s := serviceOf(t, subrequestRules)
	s.subrequest(t, "from=original", described("Original", "GET", "/a/b")...)
	s.subrequest(t, "from=original", described("Original", "GET", "/moved")...)
	s.subrequest(t, "from=original", described("Original", "GET", "/failing")...)
	for uri, want := range map[string]int{"/failing": 500, "/a/b": 429, "/moved": 302, "/a%5cb": 400, "/a/..%2fb": 400, "/a/b#x": 400, "a": 400, "/free": 0} {
		w := s.subrequest(t, "from=original&refuse=403", described("Original", "GET", uri)...)
		if got, _ := strconv.Atoi(w.Header().Get(StatusField)); got != want || want != 0 && w.Code != 403 {
			t.Errorf("%s gets %d, which stands for %d, want %d", uri, w.Code, got, want)
		}
		if w = s.subrequest(t, "from=original", described("Original", "GET", uri)...); w.Header()[StatusField] != nil {
			t.Errorf("%s without refuse=403 gets %v", uri, w.Header())
		}
	}
}

// TestUntrustedPeer: only trusted peers may describe requests.
func TestUntrustedPeer(t *testing.T) {
	s := serviceOf(t, subrequestRules)
	for _, peer := range []string{"192.0.2.1:5", "[2001:db8::1]:5", "@", ""} {
		w := s.subrequestOf(t, peer, "from=original", described("Original", "GET", "/a/b")...)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "identity.trusted_proxies") {
			t.Errorf("%q: got %d %s", peer, w.Code, w.Body)
		}
	}
	if got := s.Stats(); got.Untrusted != 4 || got.Requests != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestRefusedSubrequestsAreLogged: the log names a gateway outside trusted_proxies, and a rule that counts by what a subrequest cannot
// have, at most every 10 s each.
func TestRefusedSubrequestsAreLogged(t *testing.T) {
	for _, c := range []struct{ rules, peer, query, path, has, first, third string }{
		{
			subrequestRules, "192.0.2.1:5", "from=original&refuse=403", "/a/b", "identity.trusted_proxies",
			"peer=192.0.2.1 since_last_line=1\n", "peer=192.0.2.1 since_last_line=2\n",
		},
		{unsuppliedRules, "10.0.0.1:5", "from=original", "/certificate", "mtls_subject", "since_last_line=1\n", "since_last_line=2\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log logs.Text
			s := New(guards.New(t, c.rules), log.Logger())
			for _, want := range []string{c.first, "", c.third} {
				s.subrequestOf(t, c.peer, c.query, described("Original", "GET", c.path)...)
				got := log.Take()
				if strings.Contains(got, c.has) != (want != "") || !strings.HasSuffix(got, want) {
					t.Errorf("logged %q, want %q", got, want)
				}
				time.Sleep(loglimit.Every * 6 / 10) //nolint:forbidigo // the time of the bubble
			}
		})
	}
}

// TestSubrequestUndecided: 503 with the fallback error, whatever refuse says; the other fallbacks decide.
func TestSubrequestUndecided(t *testing.T) {
	s := serviceOf(t, "store: redis://127.0.0.1:1\nstore_timeout: 1ms\nidentity: {trusted_proxies: [10.0.0.0/8]}\nrules:\n"+
		"- {name: e, match: {path: /error}, key: [all], limits: [1/1d], fallback: error}\n"+
		"- {name: d, match: {path: /deny}, key: [all], limits: [1/1d], fallback: deny}\n"+
		"- {name: a, match: {path: /allow}, key: [all], limits: [1/1d], fallback: allow}\n"+
		"- {name: s, match: {path: /shadow}, key: [all], limits: [1/1d], fallback: error, mode: shadow}\n")
	for uri, want := range map[string][2]int{"/error": {503, 503}, "/deny": {503, 403}, "/allow": {204, 204}, "/shadow": {204, 204}} {
		plain := s.subrequest(t, "from=original", described("Original", "GET", uri)...).Code
		restated := s.subrequest(t, "from=original&refuse=403", described("Original", "GET", uri)...).Code
		if plain != want[0] || restated != want[1] {
			t.Errorf("%s: got %d, and %d with refuse=403, want %v", uri, plain, restated, want)
		}
	}
}

// TestPlainPaths compares the quick form of targets with the parser of net/url.
func TestPlainPaths(t *testing.T) {
	const bytes = "/ab.-_~09Z?%;:@#\\ \x7f\n\xc3\xa4*+=&'\"<[|"
	random, plain := rand.New(rand.NewPCG(1, 2)), 0
	for range 20_000 {
		target := []byte{"/ab"[random.IntN(3)]}
		for range random.IntN(6) {
			target = append(target, bytes[random.IntN(len(bytes))])
		}
		if !isPlainPath(string(target)) {
			continue
		}
		plain++
		want, err := url.ParseRequestURI(string(target))
		if err != nil || *want != (url.URL{Path: string(target)}) {
			t.Fatalf("%q: net/url gives %+v, %v", target, want, err)
		}
	}
	if plain < 1000 {
		t.Errorf("%d targets are plain", plain)
	}
}

// FuzzSubrequest: no field harms the service, and only a decision has the status 204.
func FuzzSubrequest(f *testing.F) {
	f.Add("GET", "/a/b?c", "host", "192.0.2.1", "a=b")
	f.Add("OPTIONS", "*", "", "", "")
	f.Add("G T", "/%2e%2e/", "[::1", "1,2,,", "\x00")
	s := serviceOf(f, subrequestRules)
	f.Fuzz(func(t *testing.T, method, uri, host, addresses, cookie string) {
		fields := http.Header{
			"X-Original-Method": {method}, "X-Original-Uri": {uri}, "X-Original-Host": {host}, "X-Forwarded-For": {addresses}, "Cookie": {cookie},
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, Pattern+"?from=original", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.RemoteAddr = fields, "10.0.0.1:5"
		w := &recorder{header: http.Header{}}
		s.ServeHTTP(w, r)
		switch w.status {
		case 204, 302, 400, 429:
		default:
			t.Errorf("%v: got %d", fields, w.status)
		}
	})
}

// recorder keeps the status of an answer.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
