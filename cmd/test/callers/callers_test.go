// Package callers runs client libraries in Go against the built proxy. Those in JavaScript are run by cmd/test/acceptance.
package callers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const configuration = `version: 1
max_memory: 16MiB
rules:
  - {name: soon, match: {path: /soon}, key: [header:X-Caller], limits: ["1/1s"]}
  - {name: monthly, match: {path: /monthly}, key: [header:X-Caller], limits: ["1/30d"]}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0"}
`

// serve builds and runs headgate proxy, and returns its address.
func serve(t *testing.T, upstream string) string {
	t.Helper()
	folder := t.TempDir()
	binary, file := filepath.Join(folder, "headgate"), filepath.Join(folder, "headgate.yaml")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/headgate")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "GOWORK=", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the binary does not build: %v\n%s", err, text)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, upstream), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command(binary, "proxy", "--config", file)
	stderr, err := proxy.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	serving, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct {
				Msg   string `json:"msg"`
				Proxy string `json:"proxy"`
			}
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				serving <- line.Proxy
			}
		}
	}()
	t.Cleanup(func() {
		_ = proxy.Process.Signal(os.Interrupt)
		<-ended
		_ = proxy.Wait()
	})
	select {
	case address := <-serving:
		return address
	case <-ended:
		t.Fatal("headgate proxy has ended")
	}
	return ""
}

// calls are the libraries: each gets the address of a path.
func calls(t *testing.T) map[string]func(ctx context.Context, base, path string) error {
	t.Helper()
	return map[string]func(ctx context.Context, base, path string) error{
		"go-retryablehttp 0.7.8": func(ctx context.Context, base, path string) error {
			client := retryablehttp.NewClient()
			client.Logger = nil
			r, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
			if err != nil {
				return err
			}
			resp, err := client.Do(r)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		},
		"client-go 0.37.2": func(ctx context.Context, base, path string) error {
			client, err := rest.RESTClientFor(&rest.Config{Host: base, ContentConfig: rest.ContentConfig{
				GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
			}})
			if err != nil {
				return err
			}
			return client.Get().AbsPath(path).Do(ctx).Error()
		},
	}
}

// TestCallers: a client comes back after Retry-After, once. It waits for a limit of a month: no request comes meanwhile. The page
// docs/callers.md has both libraries.
func TestCallers(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "callers.md"))
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
	}))
	defer service.Close()
	proxy := serve(t, service.URL)
	for name, call := range calls(t) {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(string(page), "| "+name+" |") {
				t.Errorf("docs/callers.md has no row for %s", name)
			}
			var requests atomic.Int64
			front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				requests.Add(1)
				r.SetURL(&url.URL{Scheme: "http", Host: proxy})
				r.Out.Header.Set("X-Caller", strings.ReplaceAll(name, " ", "-"))
			}})
			defer front.Close()
			for range 2 {
				if err := call(t.Context(), front.URL, "/soon"); err != nil {
					t.Fatal(err)
				}
			}
			if n := requests.Swap(0); n > 3 {
				t.Errorf("two calls of a limit of one a second made %d requests, want at most 3", n)
			}
			if err := call(t.Context(), front.URL, "/monthly"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := call(ctx, front.URL, "/monthly"); err == nil {
				t.Error("a call of a spent month has passed")
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("two calls of a limit of one a month made %d requests, want 2", n)
			}
		})
	}
}
