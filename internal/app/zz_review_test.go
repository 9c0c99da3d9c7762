package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/headgate/headgate/config"
)

func zparse(t *testing.T, text string, args ...any) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, text, args...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestZFailedReloadKeepsCounts(t *testing.T) {
	o := options(t)
	up := o.Config.Proxy.Upstream.String()
	o.Config = zparse(t, `version: 1
max_memory: 1MiB
rules:
  - {name: client, match: {path: /v1/*}, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["2/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, up)
	next := zparse(t, `version: 1
max_memory: 512MiB
rules:
  - {name: large, key: [header:X-Client-Id], algorithm: sliding_log, limits: ["100000/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, up)
	o.Load = func() (*config.Config, error) { return next, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	at := i.Addresses()
	get(t, at.Proxy+"/v1/x")
	if err := i.Reload(); err == nil {
		t.Fatal("taken")
	} else {
		t.Log(err)
	}
	get(t, at.Proxy+"/v1/x")
	var s Status
	_, text := get(t, at.Admin+"/api/v1/status")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if s.Rules[0].Allowed != 2 {
		t.Errorf("%+v", s.Rules)
	}
	if loaded, failed := i.report.Reloads.Counts(); loaded != 0 || failed != 1 {
		t.Errorf("%d %d", loaded, failed)
	}
}

func TestZReloadWhileStopping(t *testing.T) {
	o := options(t)
	c := o.Config
	o.Load = func() (*config.Config, error) { n := *c; return &n, nil }
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for range 200 {
			_ = i.Reload()
		}
	})
	_ = i.Stop()
	all.Wait()
}

func TestZRebinding(t *testing.T) {
	i, err := Start(t.Context(), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	for _, page := range []string{"/api/v1/bans", "/api/v1/status", "/debug/pprof/cmdline", "/metrics", "/healthz"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+i.Addresses().Admin+page, nil)
		req.Host = "evil.example.com"
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		t.Log(page, resp.StatusCode)
	}
}

func TestZUserIPHeaderReachesService(t *testing.T) {
	o := options(t)
	var seen http.Header
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	defer behind.Close()
	o.Config = zparse(t, `version: 1
max_memory: 1MiB
identity: {trusted_proxies: [10.0.0.0/8], user_ip_headers: [X-Real-User-Ip]}
rules:
  - {name: client, key: [user_ip], limits: ["2/1h"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`, behind.URL)
	i, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+i.Addresses().Proxy, nil)
	req.Header.Set("X-Real-User-Ip", "1.2.3.4")
	req.Header.Set("X-Forwarded-For", "1.2.3.4")
	req.Header["X_Forwarded_For"] = []string{"1.2.3.4"}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	t.Log(seen)
}
