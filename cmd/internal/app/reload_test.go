package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
)

// parsed returns a changed configuration for the upstream of o.
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

// TestRefusedReloadCountsOn checks a configuration that needs more memory than the store has.
// The previous rules stay in effect with their counts.
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
		t.Error("a limit that needs more memory than the store has is accepted")
	}
	get(t, at.Proxy)
	var s admin.Status
	if _, text := get(t, at.Admin+"/api/v1/status"); json.Unmarshal([]byte(text), &s) != nil {
		t.Fatalf("the status is no JSON: %s", text)
	}
	if len(s.Rules) != 1 || s.Rules[0].Name != "client" || s.Rules[0].Allowed != 2 {
		t.Errorf("the rules are %+v, want client with 2 allowed", s.Rules)
	}
	if loaded, failed := i.rules.Report().Reloads.Counts(); loaded != 0 || failed != 1 {
		t.Errorf("%d reloads succeeded and %d failed, want 0 and 1: the start does not count", loaded, failed)
	}
}

// TestReloadWhileStopping checks that Reload fails after Stop has begun.
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
		t.Error("a reload after Stop succeeds")
	}
}

// TestAdminByAddress checks the protection against DNS rebinding. By an unknown host name, a
// web page can neither read state nor change it. admin.hosts allows names for metrics only.
// Every name may read the health.
func TestAdminByAddress(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	settings := i.options.Config.Admin
	settings.Hosts = []string{"metrics.example.com"}
	admin, health := adminOf(t, i, &settings).Handlers(http.NotFoundHandler())
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
					continue // The health listener has no such page.
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

// TestFirstLeaseNeedsARestart: a process that has started without leases has none for a rule of a reload, and says so.
func TestFirstLeaseNeedsARestart(t *testing.T) {
	o := options(t)
	o.Config = parsed(t, o, "1MiB", "client, key: [ip], limits: [5/s]")
	next := parsed(t, o, "1MiB", "client, key: [ip], lease: db}\nlease: {servers: ['127.0.0.1:1']")
	o.Load = func() (*config.Config, error) { return next, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	if err := i.Reload(); err == nil || !strings.Contains(err.Error(), "the first rule with a lease") {
		t.Error(err)
	}
}
