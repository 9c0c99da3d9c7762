package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPathTricks sends every spelling of a forbidden path that some service might accept. No
// spelling bypasses the rule. Other paths are forwarded as they were matched.
func TestPathTricks(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, hostileConfiguration, behind.url)
	idle := quietly(t, i, behind)
	const refused, unclear, malformed = "429", "400", "closed"
	for sent, want := range map[string]string{
		"/secret/x": refused, "/secret": refused, "/secret/": refused, "/secret?/x": refused,
		"//secret/x": refused, "///secret//x": refused, "/./secret/x": refused, "/a/../secret/x": refused, "/a/b/../../../secret/x": refused,
		"/%73ecret/x": refused, "/secret%2fx": refused, "/%2e/secret/x": refused, "/a/%2e%2E/secret/x": refused, "/a/.%2e/secret/x": refused,
		"http://a/secret/x": refused, "HTTPS://u:p@other/secret/x": refused, "http://other//secret/x": refused,
		"http:/secret/x": refused, "http:///secret/x": refused, "x:/secret/x": refused,

		"/a/..;/secret/x": unclear, "/a/..;x=y/secret/x": unclear, "/a/..%2fsecret/x": unclear, "/a%2f..%2fsecret/x": unclear, "/x/%2f/y": unclear,
		`/a/..\secret/x`: unclear, `/\secret/x`: unclear, "/%5csecret/x": unclear, "/secret%00/x": unclear, "/%0d%0aX:y": unclear, "/%7f": unclear,
		"http:secret/x": unclear, "http:..": unclear, "mailto:a@b": unclear, "javascript:alert(1)": unclear, "*": unclear,

		"/%": malformed, "/%zz": malformed, "/%2": malformed, "x": malformed, "?x": malformed, "secret/x": malformed, "http://a b/x": malformed,
		"http://a:b:c/x": malformed, "http://[::1/x": malformed,

		"/SECRET/x": "/SECRET/x", "/secrets": "/secrets", "/secret/../x": "/x", "/secret%20/x": "/secret%20/x", "/secret;a=b/x": "/secret;a=b/x",
		"/x?/../secret": "/x?/../secret", "/x#/secret": "/x%23/secret", "/%252e%252e/secret/x": "/%252e%252e/secret/x",
		"//other/secret/x": "/other/secret/x", "/": "/", "//": "/", "/.": "/", "/..": "/", "/x/.": "/x/", "/x/..": "/", "/x//y": "/x/y",
		"/x%2fy": "/x%2fy", "/x/;/y": "/x/;/y", "/...": "/...", "/%ff": "/%ff", "/\xff": "/%FF", "/größe": "/gr%C3%B6%C3%9Fe",
		"/%C0%AE%C0%AE/secret/x": "/%C0%AE%C0%AE/secret/x", "/%e2%80%ae": "/%e2%80%ae", "/x%3f/secret": "/x%3f/secret",
		"/x?a=%zz;b&c=<>\"'": "/x?a=%zz;b&c=<>\"'", "/x?\xff": "/x?\xff", "http://other": "/", "http://other?x": "/?x", "http://[::1]/x": "/x",
	} {
		answers, reached := talk(t, i, behind, request("GET "+sent+" HTTP/1.1", "Host: a"))
		got := fmt.Sprint(append(answers, 0)[0])
		switch {
		case len(reached) == 2 && len(answers) == 2:
			got = reached[0].target
			if meant := meaning(got); meant == "/secret" || strings.HasPrefix(meant, "/secret/") {
				t.Errorf("%q reaches the upstream as %q, which means %s", sent, got, meant)
			}
		case len(reached) == 1 && len(answers) == 2: // only the last request
		case len(reached) == 0 && len(answers) == 1 && answers[0] == http.StatusBadRequest:
			got = malformed
		default:
			got = fmt.Sprint(answers, reached)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", sent, got, want)
		}
	}
	settles(t, i, behind, idle)
	if log := i.text(); strings.ContainsAny(log, "\x00\x1b\x7f") || !utf8.ValidString(log) {
		t.Errorf("clients write into the log: %q", log)
	}
}

// meaning reads a target as leniently as some services do: decoded and resolved.
func meaning(target string) string {
	at, _, _ := strings.Cut(target, "?")
	decoded, err := url.PathUnescape(at)
	if err != nil {
		decoded = at
	}
	return path.Clean("/" + strings.ReplaceAll(decoded, `\`, "/"))
}

// TestOneKeyForOneThing: all spellings of a path or a host are one key. Different resources of
// the service are different keys.
func TestOneKeyForOneThing(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, hostileConfiguration, behind.url)
	send := func(client, target, host string, more ...string) int {
		answers, _ := talk(t, i, behind, request(append([]string{"GET " + target + " HTTP/1.1", "Host: " + host, "X-Client-Id: " + client}, more...)...))
		return append(answers, 0)[0]
	}
	if got := send("a", "/limited/a", "h"); got != http.StatusOK {
		t.Fatalf("the first: %d", got)
	}
	for _, same := range []string{"//limited/a", "/limited/./a", "/x/../limited/a", "/limited/%61", "/%6cimited/a?x=1", "/limited/a?", "http://b/limited/a", "/limited%2fa"} {
		if got := send("a", same, "h"); got != http.StatusTooManyRequests {
			t.Errorf("%s is another thing than /limited/a: %d", same, got)
		}
	}
	for _, other := range []string{"/limited/A", "/limited/a/", "/limited/a%20", "/limited/a;b", "/limited/%2561", "/limited/a%3f"} {
		if got := send("a", other, "h"); got != http.StatusOK {
			t.Errorf("%s is the same thing as /limited/a: %d", other, got)
		}
	}
	if got := send("b", "/site", "Site.Example"); got != http.StatusOK {
		t.Fatalf("the first: %d", got)
	}
	for _, same := range []string{"site.example", "SITE.EXAMPLE", "site.example.", "site.example:80", "Site.Example.:8080"} {
		if got := send("b", "/site", same); got != http.StatusTooManyRequests {
			t.Errorf("Host: %s is another site: %d", same, got)
		}
	}
	if got := send("b", "http://SITE.example:81/site", "other"); got != http.StatusTooManyRequests {
		t.Errorf("a target with a host is another site: %d", got)
	}
	for _, other := range []string{"other.example", "xsite.example", "site.example.org", "[::1]"} {
		if got := send("b", "/site", other); got != http.StatusOK {
			t.Errorf("Host: %s is the same site: %d", other, got)
		}
	}
	// A hop-by-hop field does not reach the service, and the rules do not read it.
	for n, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got := send(fmt.Sprint("c", n), "/limited/hop", "h", "Connection: x-client-id"); got != want {
			t.Errorf("client %d that takes its name back: %d, want %d", n, got, want)
		}
	}
}

// TestManyCookies: among ten thousand cookies, the rule finds the right one.
func TestManyCookies(t *testing.T) {
	t.Parallel()
	behind := newWitness(t)
	i := start(t, hostileConfiguration, behind.url)
	many := strings.Repeat("a=b; ", 10_000)
	for _, c := range []struct{ client, cookies string }{{"last", many + "session=s1"}, {"first", "session=s1; " + many}, {"none", many}} {
		for n, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			answers, reached := talk(t, i, behind, request("GET /visit HTTP/1.1", "Host: a", "X-Case: "+c.client, "Cookie: "+c.cookies))
			if append(answers, 0)[0] != want {
				t.Errorf("%s, request %d: %v, want %d", c.client, n+1, answers, want)
			}
			if n == 0 && len(reached) > 0 && reached[0].one("cookie") != strings.TrimSpace(c.cookies) {
				t.Errorf("%s: the upstream has other cookies", c.client)
			}
		}
	}
	// Ten thousand separate Cookie fields work too.
	head := request("GET /visit HTTP/1.1", "Host: a", "X-Case: fields", strings.Repeat("Cookie: a=b\r\n", 3000)+"Cookie: session=s1")
	for n, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if answers, _ := talk(t, i, behind, head); append(answers, 0)[0] != want {
			t.Errorf("3001 fields, request %d: %v, want %d", n+1, answers, want)
		}
	}
}

// TestPipelining: pipelined requests are answered in order, each by its own rules.
func TestPipelining(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	}))
	defer behind.Close()
	i := start(t, hostileConfiguration, behind.URL)
	idle := quietly(t, i, behind)
	var sent strings.Builder
	const rounds = 50
	for n := range rounds {
		body := fmt.Sprintf("body %d", n)
		sent.WriteString(request(fmt.Sprintf("POST /x/%d HTTP/1.1", n), "Host: a", fmt.Sprintf("Content-Length: %d", len(body))) + body)
		sent.WriteString(request("POST /secret/x HTTP/1.1", "Host: a", "Content-Length: 9") + "GET /y HT")
		sent.WriteString(request(fmt.Sprintf("GET /limited/%d HTTP/1.1", n/2), "Host: a", "X-Client-Id: a"))
	}
	w := dial(t, "tcp", i.Proxy)
	w.send(sent.String() + last)
	for n := range rounds {
		if got := w.answer(); got == nil || got.status != http.StatusOK || got.body != fmt.Sprintf("/x/%d body %d", n, n) {
			t.Fatalf("round %d: %+v", n, got)
		}
		if got := w.answer(); got == nil || got.status != http.StatusTooManyRequests {
			t.Fatalf("round %d, refused: %+v", n, got)
		}
		want := http.StatusOK
		if n%2 == 1 {
			want = http.StatusTooManyRequests
		}
		if got := w.answer(); got == nil || got.status != want || want == http.StatusOK && got.body != fmt.Sprintf("/limited/%d ", n/2) {
			t.Fatalf("round %d, limited: %+v, want %d", n, got, want)
		}
	}
	if got := w.answer(); got == nil || got.body != "/last " || !w.ended() {
		t.Errorf("the last answer is %+v", got)
	}
	settles(t, i, behind, idle)
}
