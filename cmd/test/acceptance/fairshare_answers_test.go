package acceptance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gojwt "github.com/golang-jwt/jwt/v5"
)

// TestOverShare checks the answers to a client beyond its share.
func TestOverShare(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, inOneCycle), behind.URL)
	farFromItsEnd(t, i)
	url, policy := "http://"+i.Proxy+"/", `Ratelimit-Policy: "fair_share";q=2;w=3600`
	for _, left := range []string{"1", "0"} {
		head, body := curl(t, "-H", "X-Client-Id: A", url)
		if body != "fine\n" || !slices.ContainsFunc(head, func(l string) bool { return strings.HasPrefix(l, `Ratelimit: "fair_share";r=`+left+`;t=`) }) {
			t.Errorf("%q %q, want 200 and %s left", head, body, left)
		}
		wants(t, head, "HTTP/1.1 200 OK", policy)
	}
	for range 20 {
		got, after := ask(t, append(with("X-Client-Id: A"), url)...), time.Until(askShares(t, i).Ends)
		// The next cycle's first half, in seconds rounded up.
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		if least, most := after, after+30*time.Minute+2*time.Second; err != nil || got.status != http.StatusTooManyRequests ||
			time.Duration(seconds)*time.Second < least || time.Duration(seconds)*time.Second > most {
			t.Errorf("%d, Retry-After %q: want 429, and %v to %v: %v", got.status, got.header.Get("Retry-After"), least, most, err)
		}
		carries(t, "the answer", got.header, []string{
			policy, fmt.Sprintf(`Ratelimit: "fair_share";r=0;t=%d`, seconds), "Content-Type: application/problem+json", "Cache-Control: no-store",
		})
		problem(t, got.body, map[string]any{
			"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Quota Exceeded",
			"status": 429.0, "reason": "over_share", "violated-policies": []any{"fair_share"},
		})
	}
	// Only client A is refused.
	if head, _ := curl(t, "-H", "X-Client-Id: B", url); head[0] != "HTTP/1.1 200 OK" {
		t.Errorf("B is answered %q", head)
	}
	if n := decisions(t, i, "fair_share", "enforce", "deny", "over_share"); n != 20 {
		t.Errorf("%v refusals are counted, want 20", n)
	}
	if n := metric(t, i, `headgate_share_refused_units_total{client="A"}`); n != 20 {
		t.Errorf("%v refused units of A are counted, want 20", n)
	}
}

// TestRetryAfterOfShortCycles: for short cycles, Retry-After is one or two seconds at any time.
func TestRetryAfterOfShortCycles(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, "capacity: 1, cycle: 1s, reclaim: next_cycle"), behind.URL)
	seen := map[string]int{}
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); {
		if resp, _ := get(t, "http://"+i.Proxy, "X-Client-Id", "A"); resp.StatusCode == http.StatusTooManyRequests {
			seen[resp.Header.Get("Retry-After")]++
		}
	}
	if len(seen) == 0 || len(seen) > 2 || seen["1"]+seen["2"] == 0 || len(seen) == 2 && (seen["1"] == 0 || seen["2"] == 0) {
		t.Errorf("Retry-After was %v, want 1 and 2", seen)
	}
}

// TestAnonymousClients: anonymous requests are refused, or count for a client of the
// configuration.
func TestAnonymousClients(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, inOneCycle), behind.URL)
	for _, args := range [][]string{nil, with("X-Client-Id;")} {
		got := ask(t, append(args, "http://"+i.Proxy)...)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "" {
			t.Errorf("%v: %d, Retry-After %q, want 429 and none: no time mends it", args, got.status, got.header.Get("Retry-After"))
		}
		problem(t, got.body, map[string]any{"status": 429.0, "reason": "anonymous_client", "violated-policies": []any{"fair_share"}})
		if !strings.Contains(got.body, "header:X-Client-Id") {
			t.Errorf("%v: the answer does not say what names a client: %s", args, got.body)
		}
	}
	if n := metric(t, i, "headgate_share_anonymous_total"); n != 2 {
		t.Errorf("headgate_share_anonymous_total is %v, want 2", n)
	}
	if s := ctlShares(t, i); s.Admitted != 0 || len(s.Clients) != 2 {
		t.Errorf("anonymous requests have a share: %+v", s)
	}

	i = start(t, fmt.Sprintf(fairShareConfiguration, strings.Replace(inOneCycle, "{A: 1, B: 1}", "{A: 1, guest: 1}, anonymous: guest", 1)), behind.URL)
	farFromItsEnd(t, i)
	for n, want := range []int{200, 200, 429} {
		if got := ask(t, "http://"+i.Proxy); got.status != want {
			t.Errorf("guest's request %d: %d, want %d", n+1, got.status, want)
		}
	}
	if s := ctlShares(t, i); s.row("guest").Admitted != 2 || s.row("guest").Refused != 1 || metric(t, i, "headgate_share_anonymous_total") != 0 {
		t.Errorf("guest has %+v", s)
	}
}

// provenConfiguration takes the source of the client's name and further settings, and then the
// upstream.
const provenConfiguration = `version: 1
max_memory: 16MiB
rules: []
%s
proxy:
  listen: "127.0.0.1:0"
  %s
  upstream: "%%s"
fair_share: {client: "%s", capacity: 8, cycle: 1h, reclaim: next_cycle, new_clients_per_cycle: 2}
`

// TestClientsByToken: only the signer of the tokens can name a client.
func TestClientsByToken(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	login, stranger := newIssuer(t, "a"), newIssuer(t, "a")
	keys := filepath.Join(t.TempDir(), "jwks.json")
	replace(t, keys, keySet(t, login))
	i := start(t, fmt.Sprintf(provenConfiguration, "identity: {jwt: {keys: "+keys+"}}", "", "jwt:sub"), behind.URL)
	farFromItsEnd(t, i)
	for _, c := range []struct {
		by   *issuer
		sub  string
		want int
	}{{login, "north", 200}, {login, "south", 200}, {login, "north", 200}, {stranger, "north", 429}, {nil, "", 429}} {
		args := []string{"http://" + i.Proxy}
		if c.by != nil {
			args = append(args, with("Authorization: Bearer "+c.by.subject(t, c.sub))...)
		}
		if got := ask(t, args...); got.status != c.want {
			t.Errorf("%s is answered %d, want %d: %s", c.sub, got.status, c.want, got.body)
		}
	}
	if s := ctlShares(t, i); len(s.Clients) != 2 || s.row("north").Admitted != 2 || s.row("south").Admitted != 1 {
		t.Errorf("shares %+v", s)
	}
	if n := metric(t, i, "headgate_share_anonymous_total"); n != 2 {
		t.Errorf("%v are anonymous, want who has no token and who has a forged one", n)
	}
}

// subject signs a token for a subject.
func (s *issuer) subject(t *testing.T, sub string) string {
	t.Helper()
	token := gojwt.NewWithClaims(gojwt.SigningMethodES256, gojwt.MapClaims{"sub": sub, "exp": time.Now().Add(time.Hour).Unix()})
	token.Header["kid"] = s.id
	text, err := token.SignedString(s.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestClientsByCertificate: each subject has a share, and a request without a certificate is
// anonymous.
func TestClientsByCertificate(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	ours := newAuthority(t)
	server, north, south := ours.issue(t, "server", 2), ours.issue(t, "north", 3), ours.issue(t, "south", 4)
	tls := fmt.Sprintf("tls: {cert: %s, key: %s, client_ca: %s, client_auth: request}", server.cert, server.key, ours.path)
	i := start(t, fmt.Sprintf(provenConfiguration, "", tls, "mtls_subject"), behind.URL)
	farFromItsEnd(t, i)
	as := func(who ...pair) []string {
		args := []string{"--cacert", ours.path}
		for _, p := range who {
			args = append(args, "--cert", p.cert, "--key", p.key)
		}
		return args
	}
	walk(t, "https://"+i.Proxy, []step{
		{args: as(north), want: 200},
		{args: as(south), want: 200},
		{args: as(north), want: 200},
		{args: as(), want: 429, tells: []string{"Retry-After:"}},
	})
	s := ctlShares(t, i)
	if len(s.Clients) != 2 || !strings.Contains(s.Clients[0].Client, "CN=north") || s.Clients[0].Admitted != 2 ||
		!strings.Contains(s.Clients[1].Client, "CN=south") || s.Clients[1].Admitted != 1 {
		t.Errorf("shares %+v", s)
	}
}

// TestFairShareInUnits: a request takes its stated cost, if the share has enough units.
func TestFairShareInUnits(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	settings := strings.Replace(inOneCycle, "capacity: 4", "capacity: 40, cost: header:X-Cost", 1)
	i := start(t, fmt.Sprintf(fairShareConfiguration, settings), behind.URL)
	farFromItsEnd(t, i)
	costs := func(cost string) []string { return with("X-Client-Id: A", "X-Cost: "+cost) }
	walk(t, "http://"+i.Proxy, []step{
		{args: costs("15"), want: 200, tells: []string{`RateLimit-Policy: "fair_share";q=20;w=3600`}},
		{args: costs("10"), want: 429},
		{args: costs("41"), want: 400}, // A cost above the capacity is invalid.
		{args: costs("-1"), want: 400},
		{args: costs("much"), want: 400},
		{args: costs("4"), want: 200},
		{args: with("X-Client-Id: A"), want: 200},
		{args: with("X-Client-Id: A"), want: 429},
		{args: with("X-Client-Id: B", "X-Cost: 20"), want: 200},
	})
	s := ctlShares(t, i)
	if a, b := s.row("A"), s.row("B"); a.Admitted != 20 || a.Refused != 11 || a.Seen != 31 || b.Admitted != 20 {
		t.Errorf("A has %+v, and B %+v", a, b)
	}
}

// TestRetriesCountOnce: several attempts at one request count once in the demand.
func TestRetriesCountOnce(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(fairShareConfiguration, inOneCycle+", count_once: header:Idempotency-Key"), behind.URL)
	farFromItsEnd(t, i)
	request := func(id string, times, want int) step {
		return step{args: with("X-Client-Id: A", "Idempotency-Key: "+id), times: times, want: want}
	}
	walk(t, "http://"+i.Proxy, []step{request("one", 1, 200), request("two", 1, 200), request("three", 5, 429), request("four", 1, 429)})
	s := ctlShares(t, i)
	if a := s.row("A"); a.Seen != 4 || a.Admitted != 2 || a.Refused != 6 {
		t.Errorf("A has %+v, want 4 seen, 2 admitted and 6 refused", a)
	}
}

const ruledConfiguration = `version: 1
max_memory: 16MiB
log: {decisions: none}
rules:
  - {name: product, match: {path: /v1/*}, key: [all], limits: ["1/1d"], count_rejected: true, algorithm: sliding_log}
  - {name: login, match: {path: /login}, key: [ip], limits: ["3/1d"], ban: {after: "3/1d", for: 1d}}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
fair_share: {client: "header:X-Client-Id", %s}
`

// TestFairShareBesideRules: a request must pass fair share and the rules. A refusal by a rule
// takes nothing of the share, and the rules do not count a refusal by fair share.
func TestFairShareBesideRules(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, fmt.Sprintf(ruledConfiguration, inOneCycle), behind.URL)
	farFromItsEnd(t, i)
	as := func(client, path string, times, want int, reason string) step {
		s := step{path: path, args: with("X-Client-Id: " + client), times: times, want: want}
		if reason != "" {
			s.tells = []string{`RateLimit-Policy: ` + reason}
		}
		return s
	}
	walk(t, "http://"+i.Proxy, []step{
		as("A", "/v1/x", 1, 200, ""),
		as("A", "/v1/x", 5, 429, `"product";q=1;w=86400`),
	})
	s := ctlShares(t, i)
	if a := s.row("A"); a.Admitted != 1 || a.Seen != 1 || a.Refused != 0 {
		t.Errorf("after a rule refused five times A has %+v, want one request admitted and nothing else", a)
	}
	walk(t, "http://"+i.Proxy, []step{
		as("A", "/other", 1, 200, ""),
		as("A", "/login", 5, 429, `"fair_share";q=2;w=3600`),
		as("B", "/login", 2, 200, ""), // a refusal by fair share does not count for a ban
	})
	if n := decisions(t, i, "login", "enforce", "deny", "over_limit"); n != 0 {
		t.Errorf("rule login has refused %v times, want never", n)
	}
	s = ctlShares(t, i)
	if a, b := s.row("A"), s.row("B"); a.Admitted != 2 || a.Refused != 5 || b.Admitted != 2 {
		t.Errorf("A has %+v, B %+v", a, b)
	}
}
