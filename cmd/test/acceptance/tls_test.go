package acceptance

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// farmRule counts by the client's certificate, which a proxy has only with client_ca.
const farmRule = `  - name: farm
    match: {path: /farm}
    key: [mtls_subject]
    limits: ["1/1h"]
`

// tlsConfiguration takes the settings of proxy.tls, and then those of the upstream.
const tlsConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: client
    match: {path: /v1/*}
    key: [header:X-Client-Id]
    limits: ["2/1h"]
proxy:
  listen: "127.0.0.1:0"
  tls: {%s}
  upstream: "%%s"
`

// seen is an upstream that answers with the properties of its request.
func seen() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s proto=%s for=%s host=%s", r.Method, r.RequestURI,
			r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Forwarded-For"), r.Host)
	})
}

// attempt is curl for requests that may fail.
func attempt(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool(t, "curl", "curl"), append([]string{"-sSi", "--max-time", "10"}, args...)...).CombinedOutput()
	return string(out), err
}

func startTLS(t *testing.T, settings, upstream string) *instance {
	t.Helper()
	configuration := tlsConfiguration
	if strings.Contains(settings, "client_ca:") {
		configuration = strings.Replace(configuration, "proxy:\n", farmRule+"proxy:\n", 1)
	}
	return start(t, fmt.Sprintf(configuration, settings), upstream)
}

// TestTLS: HTTP/1.1 and HTTP/2 by TLS share one limit.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	behind := httptest.NewServer(seen())
	defer behind.Close()
	i := startTLS(t, fmt.Sprintf("cert: %s, key: %s", server.cert, server.key), behind.URL)
	url := "https://" + i.Proxy + "/v1/product"
	head, body := curl(t, "--cacert", ca.path, "--http1.1", "-H", "X-Client-Id: a", url)
	if head[0] != "HTTP/1.1 200 OK" || body != "GET /v1/product proto=https for=127.0.0.1 host="+i.Proxy {
		t.Errorf("HTTP/1.1 by TLS: %q %q", head, body)
	}
	if head, _ := curl(t, "--cacert", ca.path, "--http2", "-H", "X-Client-Id: a", url); head[0] != "HTTP/2 200 " {
		t.Errorf("HTTP/2 by TLS: %q", head)
	}
	head, body = curl(t, "--cacert", ca.path, "--http2", "-H", "X-Client-Id: a", url)
	wants(t, head, "HTTP/2 429 ", "content-type: application/problem+json", "retry-after: 1800",
		`ratelimit-policy: "client";q=2;w=3600`, `ratelimit: "client";r=0;t=1800`)
	problem(t, body, map[string]any{"status": 429.0, "reason": "over_limit"})
	head, _ = curl(t, "--cacert", ca.path, "--http1.1", "-H", "X-Client-Id: a", url)
	wants(t, head, "HTTP/1.1 429 Too Many Requests", "Retry-After: 1800")

	for name, args := range map[string][]string{
		"a client that trusts another authority": {"--http1.1", url},
		"TLS 1.1":                                {"--cacert", ca.path, "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0", url},
		"another name":                           {"--cacert", ca.path, "--connect-to", "other.example:443:" + i.Proxy, "https://other.example/"},
	} {
		if out, err := attempt(t, args...); err == nil {
			t.Errorf("%s is served: %s", name, out)
		}
	}
	// A plain HTTP request to the TLS port gets an explanation, and does not reach the service.
	if head, _ := curl(t, "http://"+i.Proxy+"/v1/product"); !strings.HasPrefix(head[0], "HTTP/1.0 400") {
		t.Errorf("HTTP without TLS: %q", head)
	}
	if text := i.text(); strings.Contains(text, "handshake") {
		t.Errorf("clients fill the log:\n%s", text)
	}
}

// TestALPN: a client gets a protocol that it offers by ALPN.
func TestALPN(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := startTLS(t, fmt.Sprintf("cert: %s, key: %s", server.cert, server.key), behind.URL)
	for offer, want := range map[string]string{"h2 http/1.1": "h2", "http/1.1 h2": "h2", "http/1.1": "http/1.1", "": "", "spdy/3": "refused"} {
		config := &tls.Config{RootCAs: ca.pool(), NextProtos: strings.Fields(offer)}
		got := "refused"
		if conn, err := tls.Dial("tcp", i.Proxy, config); err == nil {
			got = conn.ConnectionState().NegotiatedProtocol
			conn.Close()
		}
		if got != want {
			t.Errorf("offered %q: %q, want %q", offer, got, want)
		}
	}
}

// TestCertificateReplaced: a replaced certificate file is used for new connections within
// seconds, without a restart or a failed request.
func TestCertificateReplaced(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	first := ca.issue(t, "first.example", 11)
	second := ca.issue(t, "second.example", 12)
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := startTLS(t, fmt.Sprintf("cert: %s, key: %s", first.cert, first.key), behind.URL)

	var asked, old atomic.Int64
	done, replaced := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		client := &http.Client{Timeout: patience, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: ca.pool()},
		}}
		for {
			resp, err := client.Get("https://" + i.Proxy + "/")
			if err != nil {
				t.Errorf("request %d: %v", asked.Load()+1, err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if asked.Add(1); resp.StatusCode != http.StatusOK {
				t.Errorf("request %d: status %d", asked.Load(), resp.StatusCode)
			}
			if resp.TLS.PeerCertificates[0].SerialNumber.Int64() == 12 {
				return
			}
			if old.Add(1) == 20 {
				close(replaced)
			}
		}
	}()
	select {
	case <-replaced:
	case <-done:
	case <-time.After(patience):
		t.Error("the first certificate is not served")
	}
	for from, to := range map[string]string{second.cert: first.cert, second.key: first.key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("after %d requests the old certificate is still served\n%s", asked.Load(), i.text())
	}
	t.Logf("%d requests, %d of them with the old certificate, none failed", asked.Load(), old.Load())
}

// TestClientCertificates: client certificates can be required or optional.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ca, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	server := ca.issue(t, "proxy.example", 2)
	good, second := clients.issue(t, "north.example", 3), clients.issue(t, "south.example", 4)
	stranger := others.issue(t, "stranger.example", 5)
	behind := httptest.NewServer(page())
	t.Cleanup(behind.Close)
	for _, c := range []struct {
		auth      string
		anonymous bool
	}{{"require", false}, {"request", true}} {
		t.Run(c.auth, func(t *testing.T) {
			t.Parallel()
			settings := fmt.Sprintf("cert: %s, key: %s, client_ca: %s, client_auth: %s", server.cert, server.key, clients.path, c.auth)
			i := startTLS(t, settings, behind.URL)
			ask := func(who *pair, more ...string) (string, bool) {
				args := append([]string{"--cacert", ca.path, "https://" + i.Proxy + "/farm"}, more...)
				if who != nil {
					args = append(args, "--cert", who.cert, "--key", who.key)
				}
				out, err := attempt(t, args...)
				first, _, _ := strings.Cut(out, "\r\n")
				return first, err == nil
			}
			// Each subject has its own limit.
			for n, want := range []struct {
				who    *pair
				status string
			}{{&good, "HTTP/2 200 "}, {&good, "HTTP/2 429 "}, {&second, "HTTP/2 200 "}, {&second, "HTTP/2 429 "}} {
				if got, ok := ask(want.who); !ok || got != want.status {
					t.Errorf("request %d: %q, want %q", n+1, got, want.status)
				}
			}
			if got, ok := ask(nil); ok != c.anonymous || ok && got != "HTTP/2 200 " {
				t.Errorf("without a certificate: served is %v %q, want %v", ok, got, c.anonymous)
			}
			if got, ok := ask(&stranger); ok {
				t.Errorf("with a certificate of another authority: %q", got)
			}
			if got, ok := ask(&stranger, "--tls-max", "1.2"); ok {
				t.Errorf("with a certificate of another authority by TLS 1.2: %q", got)
			}
		})
	}
}

// TestUpstreamTLS: the proxy verifies an upstream by TLS with the configured authority, and
// presents a client certificate.
func TestUpstreamTLS(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	service, us := ca.issue(t, "service.internal", 2), ca.issue(t, "headgate.internal", 3)
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " from ", r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	behind.EnableHTTP2 = true
	behind.TLS = &tls.Config{
		Certificates: []tls.Certificate{service.load(t)}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	behind.Config.ErrorLog = quiet()
	behind.StartTLS()
	defer behind.Close()
	configuration := strings.Replace(tlsConfiguration, "tls: {%s}", "upstream_tls: {%s}", 1)
	for settings, want := range map[string]string{
		fmt.Sprintf("ca: %s, cert: %s, key: %s, server_name: service.internal", ca.path, us.cert, us.key): "HTTP/2.0 from headgate.internal",
		fmt.Sprintf("ca: %s, cert: %s, key: %s", ca.path, us.cert, us.key):                                "HTTP/2.0 from headgate.internal",
		fmt.Sprintf("ca: %s, cert: %s, key: %s", other.path, us.cert, us.key):                             "502",
		fmt.Sprintf("ca: %s, cert: %s, key: %s, server_name: other.internal", ca.path, us.cert, us.key):   "502",
		fmt.Sprintf("ca: %s", ca.path): "502",
	} {
		i := start(t, fmt.Sprintf(configuration, settings), behind.URL)
		resp, body := get(t, "http://"+i.Proxy+"/x")
		if want == "502" {
			if resp.StatusCode != http.StatusBadGateway || strings.Contains(body, "internal") {
				t.Errorf("%s: %d %s, want 502 that says nothing of the inside", settings, resp.StatusCode, body)
			}
			eventually(t, "the operator to be told", func() bool { return strings.Contains(i.text(), "could not forward a request") })
		} else if body != want {
			t.Errorf("%s: %d %q, want %q", settings, resp.StatusCode, body, want)
		}
	}
}
