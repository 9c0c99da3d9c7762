package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/internal/testkit/backend"
	"github.com/headgate/headgate/rule"
)

// view is what the rules or the service saw of a request.
type view struct{ host, key, cookie, path string }

// seen records what the rules saw of the last request.
type seen struct{ last atomic.Pointer[view] }

// Observe implements guard.Observer.
func (s *seen) Observe(req *headgate.Request, _ *guard.Answer) {
	key, _ := req.Header.Lookup("X-Api-Key")
	cookie, _ := req.Cookie.Lookup("session")
	s.last.Store(&view{req.Host, key, cookie, req.Path})
}

// attempt is a request of the comparison. If key or cookie contains "\n", the value is
// sent on two lines, or in two fields.
type attempt struct{ host, key, cookie, path string }

// TestRulesAndServicesSeeTheSame checks that rules and service see the same host, path,
// cookie and header value. Otherwise the proxy must respond with 400. The test covers each
// protocol and each server.
func TestRulesAndServicesSeeTheSame(t *testing.T) { compareServices(t, 20) }

// compareServices compares the values of the tables, and random more values of each kind.
func compareServices(t *testing.T, random int) {
	t.Helper()
	serviced := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session, cookie := "", r.CookiesNamed("session")
		if len(cookie) > 0 {
			session = cookie[0].Value
		}
		_, _ = io.WriteString(w, strings.Join([]string{r.Host, r.Header.Get("X-Api-Key"), r.Method, session, r.URL.Path}, backend.Separator))
	}))
	t.Cleanup(serviced.Close)
	for name, at := range map[string]*url.URL{
		"net/http": parsed(t, serviced.URL),
		"nginx":    {Scheme: "unix", Path: backend.Nginx(t)},
		"Node":     {Scheme: "unix", Path: backend.Node(t)},
	} {
		t.Run(name, func(t *testing.T) { compare(t, at, random) })
	}
}

// The values that the generator joins, in addition to those of the tables.
var (
	differentialHosts = []string{
		"a.example", "A.Example.:0080", "a.example:80:", "a.example:80:x", "a.example:", "", `a"b`, "[x%zz]", "[::1]:80", "[FE80::1%25e]", "a.example\t",
		"bücher.example", "a..b", ".", ":80", "a,b", "a%41.example", "xn--bcher-kva.example", "127.0.0.1", "a_b.example", "u@a", "a/b", " a",
	}
	differentialKeys    = []string{"K", " K", "K ", "\tK", "K\t", " \tK\t ", "", " ", "K, L", "K L", "\"K\"", "K\x01", "é", "K\nL", "K\nK", "\nK"}
	differentialCookies = []string{
		"session=K", "SESSION=K", "session=K; session=L", "session=K\nsession=L", "session=K\nother=1", "other=1; session=K", "session = K", `session="K"`,
		`session="K`, `session="\K"`, "session=%4b", "session=%4B; session=K", "session", "session=", "=session", ";session=K", "a=b,session=K", "session=K,L",
		"session=a b", "session=é", "xsession=K", "$Version=1; session=K", "session=K;session=L", "session=K; Session=L", "other=\"; session=K; x=\"", "session\t=\tK",
		"a=b, session=K", "session,session=K", "session\t=L,session=K", "session=K,session=L", "a,b=c", "Session=\"a,session=b\"",
		"session=K a1=1", "session=L; a=x session=K", "session=K; session[x]=L", "session=K\u00a0", `a="; session=K; b="; session=L`,
	}
	differentialPaths = []string{
		"/x", "/a/../x", "//x", "/./x", "/%78", "/a%2fx", "/a%2f..%2fx", "/x;y=1", "/x;y/../z", "/x/.", "/x/..", "/x//y", `/a\x`, "/%5cx", "/x%00", "/x?y=/../z",
		"/x#y", "/%2e%2e/x", "/.%2e/x", "/%252e%252e/x", "/x%3fy", "/x%23y", "/é", "/%c3%a9", "/%ff", "/x%20y", "/x+y", "/...", "/..;/x", "/a/%2e", "/X",
		"http://b.example/y", "http://b.example", "*", "x", "", "?", "/%zz", "/x%", "/%2F/x", "/x/%2e%2e%2fy", "/~a", "/a:b", "/%7ea", "/a|b", "/a{b}", "/a\"b",
	}
	differentialPieces = []string{"a", "B", ".", ":", "80", "[", "]", "%", " ", "\t", "é", "-", "_", "\"", "@", ","}
	cookiePieces       = []string{"session", "Session", "=", "session=", "session=K", "K", "\"", ";", "; ", " ", ",", "%4b", "%", "\\", "\t", "other=1", "\n", "é"}
	pathPieces         = []string{"/", "/", "a", "B", ".", "..", "%2e", "%2f", "%5c", "\\", ";", "?", "%41", "%", "#", "é", "%ff", "%25", " ", "*", "+", "//", ":"}
)

// comparison sends requests over each protocol and compares both views of each.
type comparison struct {
	*testing.T

	saw           *seen
	plain, secure string
	trusting      *tls.Config
	forwarded     [4]int // number of forwarded requests for host, key, cookie and path
	kind          int    // index of the value that varies
}

func compare(t *testing.T, service *url.URL, randoms int) {
	t.Helper()
	upstream, err := NewUpstream(UpstreamConfig{URL: service})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.CloseIdleConnections)
	c := &comparison{T: t, saw: new(seen)}
	p := observed(t, upstream, c.saw)
	served, trusting := certificate(t)
	_, c.plain = start(t, p, nil, ServerConfig{})
	_, c.secure = start(t, p, nil, ServerConfig{TLS: served})
	c.trusting = trusting
	random := rand.New(rand.NewPCG(1, 2))
	text := func(pieces []string) (s string) {
		for range 1 + random.IntN(5) {
			s += pieces[random.IntN(len(pieces))]
		}
		return s
	}
	for kind, values := range [...][]string{differentialHosts, differentialKeys, differentialCookies, differentialPaths} {
		c.kind = kind
		pieces := [...][]string{differentialPieces, append(differentialPieces, "\n"), cookiePieces, pathPieces}[kind]
		for n := range len(values) + randoms {
			switch {
			case n < len(values):
				c.send(values[n])
			case kind == 3:
				c.send("/" + text(pieces))
			default:
				c.send(text(pieces))
			}
		}
	}
	c.kind = 0
	status, body := raw(t, c.plain, "GET /x HTTP/1.0\r\n\r\n")
	c.judge("HTTP/1.0", attempt{}, status, body)
	status, body = raw(t, c.plain, "GET http://B.example:080/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	c.judge("an absolute target", attempt{}, status, body)
	t.Logf("forwarded requests by host, key, cookie and path: %d", c.forwarded)
	if slices.Min(c.forwarded[:]) < 10 {
		t.Errorf("only %d requests were forwarded: too few for a comparison", c.forwarded)
	}
}

// send sends a request with one varied value over each protocol. For HTTP/1.1 it also
// sends the request with a folded line.
func (c *comparison) send(value string) {
	c.Helper()
	a := attempt{"a.example", "K", "session=K", "/x"}
	*[...]*string{&a.host, &a.key, &a.cookie, &a.path}[c.kind] = value
	for _, fold := range []string{"", "\r\n ", "\r\n\t"} {
		if fold != "" && c.kind > 1 {
			break // A target has only one line, and folding a cookie is like folding the key.
		}
		status, body := raw(c.T, c.plain, a.text(fold))
		if fold != "" && status == "200" {
			c.Errorf("%q on a folded line: got status 200, want a refusal", a)
		}
		c.judge("HTTP/1.1", a, status, body)
	}
	status, body := frames(c.T, c.plain, nil, a)
	c.judge("h2c", a, status, body)
	status, body = frames(c.T, c.secure, c.trusting, a)
	c.judge("h2", a, status, body)
}

// text returns the request in HTTP/1.1 form.
func (a attempt) text(fold string) string {
	host, key, cookie := a.host, strings.ReplaceAll(a.key, "\n", "\r\nX-Api-Key: "), strings.ReplaceAll(a.cookie, "\n", "\r\nCookie: ")
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nX-Api-Key: %s%s\r\nConnection: close\r\n\r\n", a.path, host, cookie, key, fold)
}

// judge compares both views of a request that was forwarded.
func (c *comparison) judge(protocol string, a attempt, status, body string) {
	c.Helper()
	last := c.saw.last.Swap(nil)
	if status != "200" {
		return // The proxy, Go's server or the service refused the request.
	}
	c.forwarded[c.kind]++
	parts := strings.Split(body, backend.Separator)
	if last == nil || len(parts) != 5 {
		c.Fatalf("%s, %q: the service sees %q, the rules saw %v", protocol, a, body, last)
	}
	got := view{parts[0], parts[1], parts[3], parts[4]}
	if !got.same(last) || c.kind == 1 && strings.Contains(a.key, "\n") {
		c.Errorf("%s, %q: the service sees %q, the rules saw %q", protocol, a, got, *last)
	}
}

// same reports whether the rules saw what the service sees. The service may find no cookie
// where rules found one, because it ignores names in another case or drops some values.
func (v view) same(rules *view) bool {
	name, _, ok := rule.ParseHost(v.host)
	return ok && name == rules.host && strings.ToLower(v.host) == v.host && latin(v.key) == latin(rules.key) && latin(v.path) == latin(rules.path) &&
		(v.cookie == "" || bareCookie(v.cookie) == latin(rules.cookie))
}

// escapedTable matches a byte written as %XX.
var escapedTable = regexp.MustCompile("%[0-9a-fA-F]{2}")

// bareCookie returns a value in the form that rules count: without surrounding blanks and
// quotes, with %XX decoded, and with "+" for a space. net/http keeps blanks, and nginx decodes nothing.
func bareCookie(value string) string {
	decoded := escapedTable.ReplaceAllStringFunc(strings.Trim(value, " \t\""), func(escaped string) string {
		decoded, _ := url.PathUnescape(escaped)
		return decoded
	})
	return latin(strings.Trim(strings.ReplaceAll(decoded, " ", "+"), " \t\"+"))
}

// latin converts Node's Latin-1 reading and the bytes that others read to the same text.
func latin(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		return "beyond ASCII"
	}
	return s
}

func observed(t *testing.T, upstream *Upstream, saw *seen) *Proxy {
	t.Helper()
	var rules []guard.Rule
	for _, part := range []string{"header:X-Api-Key", "host", "cookie:session"} {
		key, err := rule.ParsePart(part)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, guard.Rule{
			Rule:     rule.Rule{Name: part[:4], Key: []rule.Part{key}},
			Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1000, Per: time.Minute}}},
		})
	}
	g, err := guard.New(guard.Config{Rules: rules, Store: allowed(), Observer: saw})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Guard: g, Upstream: upstream.URL, Transport: upstream, Traffic: new(report.Traffic), BodyIdle: time.Minute,
		Log: slog.New(slog.DiscardHandler),
	}
	onPlane(&c)
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
