package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// options describe an instance on free ports. Its upstream answers every request with 200.
func options(t *testing.T) Options {
	t.Helper()
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "fine") }))
	t.Cleanup(behind.Close)
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, `version: 1
max_memory: 1MiB
shutdown_timeout: 2s
rules:
  - {name: client, match: {path: /v1/*}, key: [header:X-Client-Id], limits: ["2/1h"]}
  - {name: gone, key: [ip], limits: ["1/1h"], mode: off}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, behind.URL))
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: c, Log: slog.New(slog.DiscardHandler), Version: "v1", Commit: "abc"}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestLife(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	at := i.Addresses()
	for n, want := range []int{200, 200, 429} {
		if status, _ := get(t, at.Proxy+"/v1/x"); status != want {
			t.Errorf("request %d: status %d, want %d", n, status, want)
		}
	}
	var s admin.Status
	if _, text := get(t, at.Admin+"/api/v1/status"); json.Unmarshal([]byte(text), &s) != nil {
		t.Fatalf("the status is not JSON: %s", text)
	}
	if len(s.Rules) != 1 || s.Rules[0].Allowed != 2 || s.Rules[0].Refused != 1 || s.Requests.ByCode["4xx"] != 1 || s.Store.PlacesUsed != 1 {
		t.Errorf("status %+v", s)
	}
	if _, text := get(t, at.Health+"/metrics"); !strings.Contains(text, `headgate_build_info{commit="abc"`) {
		t.Errorf("the metrics have no build information: %s", text)
	}
	for range 2 { // A second Stop does the same as the first.
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", at.Proxy); err == nil {
		conn.Close()
		t.Error("the proxy still listens after Stop")
	}
	select {
	case err := <-i.Failed():
		t.Errorf("a server failed: %v", err)
	default:
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Setenv("GOGC", "100") // With GOGC set, Run does not change the garbage collector of the test process.
	t.Setenv("GOMEMLIMIT", "1GiB")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := Run(ctx, options(t)); err != nil {
		t.Error(err)
	}
}

// TestStartFails checks that the error names the setting at fault, and that no socket stays open.
func TestStartFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, change := range map[string]func(*config.Config){
		"admin.health":  func(c *config.Config) { c.Admin.Health = taken.Addr().String() },
		"proxy.listen":  func(c *config.Config) { c.Proxy.Listen = taken.Addr().String() },
		"header_style":  func(c *config.Config) { c.Proxy.HeaderStyle = "odd" },
		"log.decisions": func(c *config.Config) { c.Log.Decisions = "odd" },
		"MaxMemory":     func(c *config.Config) { c.MaxMemory = 1 },
	} {
		o := options(t)
		change(o.Config)
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start returns %v, want an error that names %s", err, want)
		}
	}
}
