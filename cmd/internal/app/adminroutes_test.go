package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// adminRoutes lists the routes of all components, each with a path that it serves.
func adminRoutes(i *Instance) (all []struct{ verb, path string }) {
	add := func(pattern string) {
		verb, path, found := strings.Cut(pattern, " ")
		if !found { // The handler itself refuses other methods.
			verb, path = http.MethodGet, pattern
		}
		if before, rest, found := strings.Cut(path, "{"); found {
			_, after, _ := strings.Cut(rest, "}")
			path = before + map[bool]string{true: "", false: "a"}[strings.HasPrefix(rest, "$") || strings.Contains(rest, "...")] + after
		}
		all = append(all, struct{ verb, path string }{verb, path})
	}
	add("GET /metrics")
	for _, c := range i.components {
		for _, r := range c.Calls() {
			add(r.Pattern)
		}
	}
	return all
}

// sent sends a request to a handler. header has names and values in turn; Host is the host of the request.
func sent(t *testing.T, h http.Handler, verb, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // A profile ends at once.
	r := httptest.NewRequestWithContext(ctx, verb, "http://127.0.0.1:9902"+path, http.NoBody)
	for n := 0; n+1 < len(header); n += 2 {
		if header[n] == "Host" {
			r.Host = header[n+1]
		} else {
			r.Header.Set(header[n], header[n+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// foreignSites are the fields of requests by other names, and of pages of other sites.
func foreignSites() [][]string {
	return [][]string{
		{"Host", "evil.example"},
		{"Host", "evil.example:9902"},
		{"Host", "127.0.0.1.evil.example"},
		{"Origin", "http://evil.example"},
		{"Origin", "http://127.0.0.1:9903"},
		{"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Referer", "http://evil.example/"},
	}
}

// TestEveryRouteIsProtected walks the routes of all components, by every method: a foreign host name and a page of another site are
// refused, no method but those of the list does anything, and no answer may be kept or taken for another type.
func TestEveryRouteIsProtected(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	handler, _ := adminOf(t, i, &i.options.Config.Admin).Handlers(metrics)
	routes := adminRoutes(i)
	if len(routes) < 25 {
		t.Fatalf("there are %d routes", len(routes))
	}
	served := map[string]bool{}
	for _, r := range routes {
		served[r.verb+" "+r.path] = true
	}
	for _, r := range routes {
		for _, verb := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "BREW"} {
			for _, foreign := range foreignSites() {
				w := sent(t, handler, verb, r.path, foreign...)
				if w.Code != http.StatusForbidden {
					t.Errorf("%s %s with %s is answered with %d", verb, r.path, foreign, w.Code)
				}
				checkHeaders(t, verb+" "+r.path, w)
			}
			known := served[verb+" "+r.path] || verb == http.MethodHead && served["GET "+r.path]
			if known && (verb == http.MethodPost || verb == http.MethodDelete) {
				continue // TestOtherSites sends them.
			}
			w := sent(t, handler, verb, r.path)
			if unknown := w.Code == http.StatusMethodNotAllowed; unknown == known {
				t.Errorf("%s %s is answered with %d", verb, r.path, w.Code)
			}
			checkHeaders(t, verb+" "+r.path, w)
		}
	}
}

func checkHeaders(t *testing.T, about string, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header()["X-Content-Type-Options"]; len(got) != 1 || got[0] != "nosniff" {
		t.Errorf("%s: X-Content-Type-Options is %q", about, got)
	}
	// Files of the console have no data.
	file := w.Header().Get("Cache-Control") == "no-cache" && strings.Contains(about, " /console/")
	if got := w.Header()["Cache-Control"]; len(got) != 1 || got[0] != "no-store" && !file {
		t.Errorf("%s: Cache-Control is %q", about, got)
	}
}

// TestLinksToTheConsole: a link in a chat opens the console, and nothing else.
func TestLinksToTheConsole(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	handler, _ := adminOf(t, i, &i.options.Config.Admin).Handlers(http.NotFoundHandler())
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	frame := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}
	for _, row := range []struct {
		verb, path string
		header     []string
		refused    bool
	}{
		{"GET", "/console/", link, false},
		{"GET", "/", link, false},
		{"GET", "/console/", frame, true},
		{"GET", "/console/", append([]string{"Host", "evil.example"}, link...), true},
		{"POST", "/console/", link, true},
		{"GET", "/api/v1/status", link, true},
		{"GET", "/consoles", link, true},
	} {
		if w := sent(t, handler, row.verb, row.path, row.header...); (w.Code == http.StatusForbidden) != row.refused {
			t.Errorf("%s %s with %s is answered with %d", row.verb, row.path, row.header, w.Code)
		}
	}
}

// TestNamesWithAToken: with a token, the names of admin.hosts may be used for everything, because a page that rebinds a name has no
// token. Without a token they are for metrics alone.
func TestNamesWithAToken(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	settings := i.options.Config.Admin
	settings.Hosts = []string{"headgate.example.com"}
	for _, auth := range []config.Auth{0, config.AuthToken} {
		settings.Auth = auth
		handler, _ := adminOf(t, i, &settings).Handlers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, r := range adminRoutes(i) {
			named := sent(t, handler, r.verb, r.path, "Host", "headgate.example.com:9902").Code
			if refused := named == http.StatusForbidden; refused != (auth == 0 && r.path != "/metrics") {
				t.Errorf("auth %s: %s %s by a name of admin.hosts is answered with %d", auth, r.verb, r.path, named)
			}
			if foreign := sent(t, handler, r.verb, r.path, "Host", "evil.example").Code; foreign != http.StatusForbidden {
				t.Errorf("auth %s: %s %s by another name is answered with %d", auth, r.verb, r.path, foreign)
			}
		}
	}
}

// TestAdminTLS: admin.listen speaks TLS, serves the certificate of changed files, and says so to a client without TLS. admin.health
// speaks plain HTTP.
func TestAdminTLS(t *testing.T) {
	first, second := redis.NewCertificates(t), redis.NewCertificates(t)
	o := options(t)
	o.Config.Admin.TLS = config.TLS{Cert: first.CertFile, Key: first.KeyFile}
	i := startServer(t, o)
	ask := func(ca string) (int, error) {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(ca)
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			t.Fatalf("%s: %v", ca, err)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+i.Addresses().Admin+"/api/v1/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(req)
		if err != nil {
			return 0, fmt.Errorf("get: %w", err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, nil
	}
	if code, err := ask(first.CAFile); err != nil || code != http.StatusOK {
		t.Errorf("over TLS, the status is %d, %v", code, err)
	}
	if _, err := ask(second.CAFile); err == nil {
		t.Error("a client of another authority is served")
	}
	if code, text := get(t, i.Addresses().Admin+"/api/v1/status"); code != http.StatusBadRequest || !strings.Contains(text, "HTTPS server") {
		t.Errorf("without TLS, the answer is %d %s", code, text)
	}
	if code, _ := get(t, i.Addresses().Health+"/healthz"); code != http.StatusOK {
		t.Errorf("admin.health answers %d", code)
	}
	for from, to := range map[string]string{second.CertFile: first.CertFile, second.KeyFile: first.KeyFile} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, bytes.Clone(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the changed certificate", func() bool {
		code, err := ask(second.CAFile)
		return err == nil && code == http.StatusOK
	})
}

// TestAdminTLSNeedsFiles: files that cannot be used end the start, and check finds them.
func TestAdminTLSNeedsFiles(t *testing.T) {
	o := options(t)
	o.Config.Admin.TLS = config.TLS{Cert: "none.crt", Key: "none.key"}
	if i, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "admin.tls") || !strings.Contains(err.Error(), "none.crt") {
		t.Errorf("the start gives %v, %v", i, err)
	}
	if err := Probe(o.Config); err == nil || !strings.Contains(err.Error(), "none.crt") {
		t.Errorf("check gives %v", err)
	}
}
