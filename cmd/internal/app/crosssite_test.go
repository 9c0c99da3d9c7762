package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin/listener"
	"github.com/headgate/headgate/internal/config"
)

// TestOtherSites: no page of another site, another port or an unknown origin reaches a call of the admin listener, as browsers mark its
// requests. Programs, the own pages and typed addresses do. A browser that marks nothing is refused where a call does or costs something.
func TestOtherSites(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	handler, _ := adminOf(t, i, &i.options.Config.Admin).Handlers(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const mozilla = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
	plain := map[string]bool{
		"/api/v1/status": true, "/api/v1/shares": true, "/api/v1/leases": true, "/api/v1/top": true, "/api/v1/bans": true, "/api/v1/mode": true,
		"/api/v1/trials": true, "/api/v1/live": true, "/api/v1/history": true, "/api/v1/refusals": true,
		"/debug/pprof/": true, "/console/": true, "/": true, "/api/v1/me": true,
	}
	pages := []string{"GET /metrics", "GET /debug/pprof/heap?gc=1", "GET /debug/pprof/goroutine"}
	for _, c := range i.components {
		for _, r := range c.Calls() {
			pages = append(pages, strings.NewReplacer("{id}", "a", "{$}", "").Replace(r.Pattern))
		}
	}
	for _, page := range pages {
		verb, path, found := strings.Cut(page, " ")
		if !found {
			verb, path = http.MethodGet, page
		}
		for _, c := range []struct {
			name    string
			header  []string
			refused bool
		}{
			{"a program", nil, false},
			{"curl", []string{"User-Agent", "curl/8"}, false},
			{"PowerShell", []string{"User-Agent", "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.26100; en-US) PowerShell/7.4.6"}, false},
			{"Windows PowerShell", []string{"User-Agent", "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.26100.1"}, false},
			{"a page that says PowerShell", []string{"User-Agent", mozilla + " PowerShell/7", "Origin", "http://evil.example"}, true},
			{"an image of another site", []string{"User-Agent", mozilla, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, true},
			{"a page on another port", []string{"User-Agent", mozilla, "Sec-Fetch-Site", "same-site"}, true},
			{"a form of another site, without TLS", []string{"User-Agent", mozilla, "Origin", "http://evil.example"}, true},
			{"a sandboxed page", []string{"User-Agent", mozilla, "Origin", "null"}, true},
			{"an image of another site, without TLS", []string{"User-Agent", mozilla, "Referer", "http://evil.example/x"}, true},
			{"the own page", []string{"User-Agent", mozilla, "Sec-Fetch-Site", "same-origin", "Origin", "http://127.0.0.1:9902"}, false},
			{"the own page, without TLS", []string{"User-Agent", mozilla, "Referer", "http://127.0.0.1:9902/debug/pprof/"}, false},
			{"a typed address", []string{"User-Agent", mozilla, "Sec-Fetch-Site", "none"}, false},
			{"a browser that marks nothing", []string{"User-Agent", mozilla}, path != "/metrics" && (verb != http.MethodGet || !plain[path])},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // A profile ends at once.
			r := httptest.NewRequestWithContext(ctx, verb, "http://127.0.0.1:9902"+path, http.NoBody)
			for n := 0; n+1 < len(c.header); n += 2 {
				r.Header.Set(c.header[n], c.header[n+1])
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if refused := w.Code == http.StatusForbidden; refused != c.refused {
				t.Errorf("%s, %s: status %d %s", page, c.name, w.Code, w.Body)
			}
			if marked := len(c.header) > 2; c.refused && !marked && !strings.Contains(w.Body.String(), "headgate ctl") {
				t.Errorf("%s, %s: %s", page, c.name, w.Body)
			}
		}
	}
}

// adminOf makes other admin listeners of an instance.
func adminOf(t *testing.T, i *Instance, c *config.Admin) *listener.Component {
	t.Helper()
	settings := *i.options.Config
	settings.Admin = *c
	made, err := listener.New(listener.Options{Host: i.host, Config: &settings, Instance: admitted{i}, Access: i.access})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
