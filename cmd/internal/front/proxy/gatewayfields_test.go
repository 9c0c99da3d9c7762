package proxy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// gatewayFieldNames are fields that services believe, as clients send them. docs/rules.md has the list.
var gatewayFieldNames = []string{
	"X-Original-URL", "X-Original-URI", "X-Original-Method", "X-Original-Host", "X-Original-Forwarded-For", "X-Rewrite-URL",
	"X-Envoy-Original-Path", "X-Script-Name", "SCRIPT_NAME", "PATH_INFO", "X-Host", "X-Real-IP", "X-Client-IP", "Client-IP",
	"X-Cluster-Client-IP", "True-Client-IP", "CF-Connecting-IP", "Fastly-Client-IP", "X-Envoy-External-Address", "X-Remote-Addr", "X-Remote-IP",
	"X-Forwarded", "Forwarded-For", "X-Forwarded-Prefix", "X-Forwarded-Port", "X-Forwarded-Client-Cert", "X-Forwarded-Tls-Client-Cert",
	"X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-Scheme", "X-Forwarded-Protocol", "X-Forwarded-By", "X-Forwarded-User",
	"X-Forwarded-Uri", "X-Forwarded-Method", "X-Scheme", "X-Url-Scheme", "Front-End-Https", "X-Proxied-Https", "Client-Cert", "Client-Cert-Chain",
	"Ssl-Client-Verify", "X-SSL-Client-Cert", "X-ARR-ClientCert", "X-Amzn-Mtls-Clientcert", "X-Sendfile-Type", "X-Accel-Mapping",
	"Proxy",
}

// TestGatewayFields checks that the service gets no field of an untrusted client in which gateways describe their client, in
// no spelling, over both planes, in plain requests and in upgrades. From a trusted peer it gets the fields unchanged.
func TestGatewayFields(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		for _, trusted := range []bool{false, true} {
			for _, upgrade := range []bool{false, true} {
				t.Run(fmt.Sprintf("fast %v, trusted %v, upgrade %v", fast, trusted, upgrade), func(t *testing.T) {
					t.Parallel()
					gatewayFields(t, fast, trusted, upgrade)
				})
			}
		}
	}
}

func gatewayFields(t *testing.T, fast, trusted, upgrade bool) {
	t.Helper()
	var lines strings.Builder
	for _, name := range gatewayFieldNames {
		lines.WriteString(name + ": forged\r\n" + strings.ReplaceAll(strings.ToLower(name), "-", "_") + ": forged\r\n" +
			strings.ReplaceAll(name, "-", ".") + ": forged\r\n")
	}
	connection := "close, X-Forwarded-Port, X-Real-IP"
	if upgrade {
		connection = "Upgrade, X-Forwarded-Port, X-Real-IP\r\nUpgrade: websocket"
	}
	seen := talkThrough(t, fast, trusted, "GET / HTTP/1.1\r\nHost: a\r\nConnection: "+connection+"\r\n"+lines.String()+
		"X-Original-Filename: kept\r\nX-Http-Method-Override: DELETE\r\nX-Realip: kept\r\n\r\n")
	for _, name := range []string{"X-Original-Filename", "X-Http-Method-Override", "X-Realip"} {
		if seen[name] == nil {
			t.Errorf("the service does not get %s", name)
		}
		delete(seen, name)
	}
	var forged []string
	for name, values := range seen {
		if slices.Contains(values, "forged") {
			forged = append(forged, name)
		}
	}
	slices.Sort(forged)
	var want []string
	for _, name := range gatewayFieldNames {
		if name = http.CanonicalHeaderKey(name); trusted && !strings.Contains(name, "_") {
			want = append(want, name)
		}
	}
	if slices.Sort(want); !slices.Equal(forged, want) {
		t.Errorf("the service gets %v, want %v", forged, want)
	}
}

// talkThrough sends a request through one plane. It returns the header that the service gets.
func talkThrough(t *testing.T, fast, trusted bool, request string) http.Header {
	t.Helper()
	got := make(chan http.Header, 1)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = conn.Close()
	}))
	t.Cleanup(behind.Close)
	f := serveBefore(t, allowed(), behind.URL, func(c *Config) {
		onThePlane(fast)(c)
		if trusted {
			g, err := guard.New(guard.Config{Store: allowed(), Identity: &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
			if err != nil {
				t.Fatal(err)
			}
			c.Guard = g
		}
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, request)
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	} else if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the status is %d", resp.StatusCode)
	}
	select {
	case h := <-got:
		return h
	default:
		t.Fatal("the request does not reach the service")
		return nil
	}
}

// TestGatewayFieldsAreDocumented compares the names in gatewayfields.go with the table in docs/rules.md.
func TestGatewayFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("gatewayfields.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "### Fields that gateways set")
	section, _, _ = strings.Cut(section, "Other spellings of these names")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`"+`.*?) \|`).FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			full := name[1]
			if strings.HasPrefix(full, "-") {
				full = "X-Original" + full
			}
			documented[strings.TrimSuffix(full, "*")] = true
		}
	}
	written := map[string]bool{"Forwarded": true} // Removed from every peer, elsewhere.
	for _, name := range regexp.MustCompile(`"([A-Z][\w-]+)"`).FindAllStringSubmatch(string(code), -1) {
		written[name[1]] = true
	}
	if !maps.Equal(documented, written) || len(written) < 60 {
		t.Errorf("docs/rules.md lists %v,\nand gatewayfields.go has %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(written)))
	}
}

// TestCookieLines checks that the service gets one Cookie line, because services read several in different ways.
func TestCookieLines(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		seen := talkThrough(t, fast, false, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nCookie: a=1\r\nX: y\r\ncookie: b=2; c=3\r\n\r\n")
		if got := seen["Cookie"]; !slices.Equal(got, []string{"a=1; b=2; c=3"}) {
			t.Errorf("fast %v: the service gets %q", fast, got)
		}
	}
}

// TestGatewayTrailers checks that no client sends the fields in trailers.
func TestGatewayTrailers(t *testing.T) {
	p := beforeHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	declared := http.Header{"X-Sum": nil}
	for _, name := range gatewayFieldNames {
		declared[http.CanonicalHeaderKey(name)] = nil
	}
	if names := p.trailerNames(declared, "X-Request-Id"); !slices.Equal(names, []string{"X-Sum"}) {
		t.Errorf("the trailers %v are forwarded", names)
	}
}
