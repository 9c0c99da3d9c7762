package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/admin"
)

// parsed gives the options with another configuration, before the same upstream.
func parsed(t *testing.T, o Options, maxMemory, rule string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, `version: 1
max_memory: %s
rules:
  - {name: %s}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, maxMemory, rule, o.Config.Proxy.Upstream))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRefusedReloadCountsOn: a configuration that finds no room in the store changes
// nothing: the rules before it stay, are shown, and count on.
func TestRefusedReloadCountsOn(t *testing.T) {
	o := options(t)
	o.Config = parsed(t, o, "1MiB", `client, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["2/1h"]`)
	next := parsed(t, o, "512MiB", `large, key: [ip], algorithm: sliding_log, limits: ["100000/1h"]`)
	o.Load = func() (*config.Config, error) { return next, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	at := i.Addresses()
	get(t, at.Proxy)
	if err := i.Reload(); err == nil {
		t.Error("a limit is taken for which there is no room")
	}
	get(t, at.Proxy)
	var s admin.Status
	if _, text := get(t, at.Admin+"/api/v1/status"); json.Unmarshal([]byte(text), &s) != nil {
		t.Fatalf("the status is no JSON: %s", text)
	}
	if len(s.Rules) != 1 || s.Rules[0].Name != "client" || s.Rules[0].Allowed != 2 {
		t.Errorf("the rules are %+v, want client with 2 allowed", s.Rules)
	}
	if loaded, failed := i.rules.report.Reloads.Counts(); loaded != 0 || failed != 1 {
		t.Errorf("%d reloads succeeded and %d failed, want 0 and 1: a start is none", loaded, failed)
	}
}

// TestReloadWhileStopping: from a stop on nothing changes any more.
func TestReloadWhileStopping(t *testing.T) {
	o := options(t)
	o.Load = func() (*config.Config, error) {
		next := *o.Config
		return &next, nil
	}
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var reloads sync.WaitGroup
	for range 2 {
		reloads.Go(func() {
			for range 100 {
				if i.Reload() != nil {
					return
				}
			}
		})
	}
	if err := i.Stop(); err != nil {
		t.Error(err)
	}
	reloads.Wait()
	if i.Reload() == nil {
		t.Error("a reload after a stop is taken")
	}
}

// TestAdminByAddress: a page that makes its name point here reads no state and
// gives no order. admin.hosts names who may ask for metrics; health is for every name.
func TestAdminByAddress(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	part := newAdmin(i)
	part.hosts.Store(&[]string{"metrics.example.com"})
	admin, health := part.adminHandler(http.NotFoundHandler()), part.healthHandler(http.NotFoundHandler())
	for page, want := range map[string]int{
		"/api/v1/status": 403, "/api/v1/bans": 403, "/api/v1/shares": 403, "/api/v1/none": 403, "/debug/pprof/cmdline": 403, "/metrics": 403, "/healthz": 200, "/readyz": 200,
	} {
		for host, want := range map[string]int{
			"evil.example.com": want, "evil.example.com:9902": want, "": want, "127.0.0.1.evil.example.com": want,
			"sub.metrics.example.com": want, "Metrics.Example.com.:9902": map[bool]int{true: 0, false: want}[page == "/metrics"],
			"127.0.0.1:9902": 0, "[::1]:9902": 0, "LOCALHOST": 0, "192.0.2.1": 0,
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, page, http.NoBody)
			r.Host = host
			for name, h := range map[string]http.Handler{"admin": admin, "health": health} {
				if name == "health" && strings.Count(page, "/") > 1 {
					continue // It has no such page.
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if want != 0 && w.Code != want || want == 0 && w.Code == http.StatusForbidden {
					t.Errorf("%s: %s as %q is answered with %d, want %d (0 is not 403)", name, page, host, w.Code, want)
				}
			}
		}
	}
}
