package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	h2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/backend"
	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/rule"
)

// seen is what the rules saw of the last request.
type seen struct{ last atomic.Pointer[[2]string] }

// Observe implements guard.Observer.
func (s *seen) Observe(req *headgate.Request, _ *guard.Answer) {
	key, _ := req.Header.Lookup("X-Api-Key")
	s.last.Store(&[2]string{req.Host, key})
}

// The rules and the service see one host and one value of a header, over each protocol
// and by each server, or the proxy answers 400.
func TestRulesAndServicesSeeTheSame(t *testing.T) {
	serviced := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join([]string{r.Host, r.Header.Get("X-Api-Key"), r.Method}, backend.Separator))
	}))
	t.Cleanup(serviced.Close)
	for name, at := range map[string]*url.URL{
		"net/http": parsed(t, serviced.URL),
		"nginx":    {Scheme: "unix", Path: backend.Nginx(t)},
		"Node":     {Scheme: "unix", Path: backend.Node(t)},
	} {
		t.Run(name, func(t *testing.T) { compare(t, at) })
	}
}

// The values that the generator joins, beside those of the tables.
var (
	differentialHosts = []string{
		"a.example", "A.Example.:0080", "a.example:80:", "a.example:80:x", "a.example:", "", `a"b`, "[x%zz]", "[::1]:80", "[FE80::1%25e]", "a.example\t",
		"bücher.example", "a..b", ".", ":80", "a,b", "a%41.example", "xn--bcher-kva.example", "127.0.0.1", "a_b.example", "u@a", "a/b", " a",
	}
	differentialKeys   = []string{"K", " K", "K ", "\tK", "K\t", " \tK\t ", "", " ", "K, L", "K L", "\"K\"", "K\x01", "é"}
	differentialPieces = []string{"a", "B", ".", ":", "80", "[", "]", "%", " ", "\t", "é", "-", "_", "\"", "@", ","}
)

func compare(t *testing.T, service *url.URL) {
	t.Helper()
	upstream, err := NewUpstream(UpstreamConfig{URL: service})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.CloseIdleConnections)
	saw := new(seen)
	p := observed(t, upstream, saw)
	served, trusting := certificate(t)
	_, plain := start(t, p, nil, ServerConfig{})
	_, secure := start(t, p, nil, ServerConfig{TLS: served})
	random := rand.New(rand.NewPCG(1, 2))
	text := func() (s string) {
		for range 1 + random.IntN(4) {
			s += differentialPieces[random.IntN(len(differentialPieces))]
		}
		return s
	}
	hosts, keys := differentialHosts, differentialKeys
	for range 40 {
		hosts, keys = append(hosts, text()), append(keys, text())
	}
	forwarded := 0
	judge := func(protocol, host, key, status, body string) {
		last := saw.last.Swap(nil)
		if status != "200" {
			return // Refused by the proxy, by Go's server, or by the service: it has done nothing.
		}
		forwarded++
		parts := strings.Split(body, backend.Separator)
		if last == nil || len(parts) != 3 {
			t.Fatalf("%s, host %q, key %q: the service sees %q, the rules saw %v", protocol, host, key, body, last)
		}
		name, _, ok := rule.ParseHost(parts[0])
		if !ok || name != last[0] || latin(parts[1]) != latin(last[1]) || strings.ToLower(parts[0]) != parts[0] {
			t.Errorf("%s, host %q, key %q: the service sees %q and %q, the rules saw %q", protocol, host, key, parts[0], parts[1], *last)
		}
	}
	for n := range max(len(hosts), len(keys)) {
		for _, c := range [...][2]string{{hosts[n%len(hosts)], "K"}, {"a.example", keys[n%len(keys)]}} {
			for _, fold := range []string{"", "\r\n ", "\r\n\t"} {
				sent := fmt.Sprintf("GET /x HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s%s\r\nConnection: close\r\n\r\n", c[0], c[1], fold)
				status, body := raw(t, plain, sent)
				if fold != "" && status == "200" {
					t.Errorf("host %q, key %q, continued: answered with 200", c[0], c[1])
				}
				judge("HTTP/1.1", c[0], c[1], status, body)
			}
			status, body := frames(t, plain, nil, c[0], c[1])
			judge("h2c", c[0], c[1], status, body)
			status, body = frames(t, secure, trusting, c[0], c[1])
			judge("h2", c[0], c[1], status, body)
		}
	}
	status, body := raw(t, plain, "GET /x HTTP/1.0\r\n\r\n")
	judge("HTTP/1.0", "", "", status, body)
	status, body = raw(t, plain, "GET http://B.example:080/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	judge("an absolute target", "", "", status, body)
	if forwarded < 20 {
		t.Errorf("%d requests were forwarded: the comparison says nothing", forwarded)
	}
}

// latin makes one text of what Node reads as Latin-1 and others as bytes.
func latin(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		return "beyond ASCII"
	}
	return s
}

func observed(t *testing.T, upstream *Upstream, saw *seen) *Proxy {
	t.Helper()
	var rules []guard.Rule
	for _, part := range []string{"header:X-Api-Key", "host"} {
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
	p, err := New(Config{
		Guard: g, Upstream: upstream.URL, Transport: upstream, Traffic: new(report.Traffic), BodyIdle: time.Minute,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// raw sends a request of HTTP/1 as it is.
func raw(t *testing.T, at, sent string) (status, body string) {
	t.Helper()
	head, body, _ := strings.Cut(talk(t, at, sent), "\r\n\r\n")
	if len(head) < len("HTTP/1.1 200") {
		return "none", ""
	}
	return head[len("HTTP/1.1 "):][:3], body
}

// frames sends a request in frames of HTTP/2, which say what no client would.
func frames(t *testing.T, at string, secured *tls.Config, host, key string) (status, body string) {
	t.Helper()
	var conn net.Conn
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if secured != nil {
		secured = secured.Clone()
		secured.NextProtos, secured.ServerName = []string{"h2"}, "example.com"
		conn = tls.Client(conn, secured)
	}
	var block strings.Builder
	fields, scheme := hpack.NewEncoder(&block), map[bool]string{true: "https", false: "http"}[secured != nil]
	for _, f := range [...][2]string{{":method", "GET"}, {":scheme", scheme}, {":path", "/x"}, {":authority", host}, {"x-api-key", key}} {
		_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	_, _ = io.WriteString(conn, h2.ClientPreface)
	framer := h2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(h2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true})
	status = "none"
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return status, body
		}
		switch f := frame.(type) {
		case *h2.MetaHeadersFrame:
			status = f.PseudoValue("status")
		case *h2.DataFrame:
			body += string(f.Data())
		case *h2.RSTStreamFrame:
			return "reset", ""
		}
		if f := frame.Header(); f.StreamID == 1 && f.Flags.Has(h2.FlagDataEndStream) {
			return status, body
		}
	}
}
