package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/app"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestEnvoyMigration runs the steps of docs/envoy.md: it checks the files, serves them with the variables of the process, converts both to a
// configuration, checks that, and serves it. Both servers answer the same, and the converted one also sends statsd.
func TestEnvoyMigration(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	limits := "domain: shop\ndescriptors:\n- {key: path, value: '/users/{id}', rate_limit: {unit: hour, requests_per_unit: 2}}\n"
	if err := os.WriteFile(filepath.Join(root, "config", "shop.yaml"), []byte(limits), 0o600); err != nil {
		t.Fatal(err)
	}
	receiver, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Close() })
	_, port, _ := net.SplitHostPort(receiver.LocalAddr().String())
	for name, value := range map[string]string{
		"RUNTIME_ROOT": root, "RUNTIME_SUBDIRECTORY": "", "RUNTIME_WATCH_ROOT": "false", "HOST": "127.0.0.1", "PORT": "0",
		"GRPC_HOST": "127.0.0.1", "GRPC_PORT": "0", "DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": "0", "USE_STATSD": "false", "USE_DOG_STATSD": "true",
		"STATSD_HOST": "127.0.0.1", "STATSD_PORT": port, "EXTRA_TAGS": "env:test", "BACKEND_TYPE": "redis",
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": redis.Start(t).Addr, "CACHE_KEY_PREFIX": "first",
		"HEADGATE_ADMIN_LISTEN": "off", "HEADGATE_ADMIN_HEALTH": "off", "HEADGATE_STORE_TIMEOUT": "10s",
	} {
		t.Setenv(name, value)
	}
	if status, stdout, stderr := call(t, "check", filepath.Join(root, "config")); status != exitOK || !strings.Contains(stdout, "is fine: 1 domain") {
		t.Fatalf("check of the files: status %d: %s", status, stderr)
	}
	own, err := envoyServing()
	if err != nil {
		t.Fatal(err)
	}
	before := decided(t, own)
	status, converted, stderr := call(t, "convert", "--envoy-env")
	if status != exitOK || !strings.Contains(stderr, "DEBUG_PORT") {
		t.Fatalf("convert: status %d: %s", status, stderr)
	}
	converted = strings.Replace(converted, "namespace: first", "namespace: second", 1) // The counts of the first server stay.
	path := write(t, converted)
	if status, stdout, stderr := call(t, "check", path); status != exitOK || !strings.Contains(stdout, "\nenough for headgate server; headgate proxy needs proxy.upstream\n") {
		t.Fatalf("check: status %d: %s%s\n%s", status, stdout, stderr, converted)
	}
	for name := range map[string]bool{"RUNTIME_ROOT": true, "REDIS_URL": true, "STATSD_PORT": true} {
		t.Setenv(name, "none") // The file has all.
	}
	s := serving{configFlag: configFlag{Config: path}, server: true}
	s.load = s.configFlag.load
	if after := decided(t, s); after != before {
		t.Errorf("the converted file decides\n%s\nthe variables decide\n%s", after, before)
	}
	if err := receiver.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	seen, packet := 0, make([]byte, 64<<10)
	for seen < 2 { // Each server sends its counters when it stops.
		n, _, err := receiver.ReadFrom(packet)
		if err != nil {
			t.Fatalf("%d of 2 servers have sent statsd: %v", seen, err)
		}
		if bytes.Contains(packet[:n], []byte("shop.path_/users/{id}.over_limit:2|c|#env:test")) {
			seen++
		}
	}
}

// TestLimitsAloneAreNotEnough checks that check tells which commands a file is enough for.
func TestLimitsAloneAreNotEnough(t *testing.T) {
	status, converted, _ := call(t, "convert", envoyFolder(t, envoyShop))
	path := write(t, converted)
	if status != exitOK {
		t.Fatalf("convert: status %d", status)
	}
	_, stdout, _ := call(t, "check", path)
	if want := "enough for a Go program; headgate proxy needs proxy.upstream, and headgate server needs the section server\n"; !strings.Contains(stdout, want) {
		t.Errorf("check prints %s, want %s", stdout, want)
	}
	if status, _, stderr := call(t, "server", "--config", path); status != exitUsage || !strings.Contains(stderr, "has no section server") {
		t.Errorf("server: status %d: %s", status, stderr)
	}
	for settings, want := range map[string]string{
		"server: {grpc: '127.0.0.1:8081', http: off}":                                          "enough for headgate server; headgate proxy needs proxy.upstream\n",
		"proxy: {upstream: 'http://127.0.0.1:9'}":                                              "enough for headgate proxy; headgate server needs the section server\n",
		"proxy: {upstream: 'http://127.0.0.1:9'}\nserver: {grpc: '127.0.0.1:8081', http: off}": "enough for headgate proxy and headgate server\n",
	} {
		if status, stdout, stderr := call(t, "check", write(t, fine+settings+"\n")); status != exitOK || !strings.Contains(stdout, "\n"+want) {
			t.Errorf("%s: status %d: %s%s\nwant %s", settings, status, stdout, stderr, want)
		}
	}
}

// decided starts a server, and gives its answers to four requests.
func decided(t *testing.T, s serving) string {
	t.Helper()
	c, err := s.load()
	if err != nil {
		t.Fatal(err)
	}
	i, err := app.Start(t.Context(), app.Options{
		Config: c, Server: true, Domains: s.domains, Outlets: s.outlets, HealthyWithDomains: s.healthyWithDomains,
		Load: func() (*config.Config, error) { return c, nil }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	}()
	var answers strings.Builder
	for range 4 {
		body := strings.NewReader(`{"domain": "shop", "descriptors": [{"entries": [{"key": "path", "value": "/users/{id}"}]}]}`)
		response, err := http.Post("http://"+i.Addresses().HTTP+"/json", "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		answers.WriteString(response.Status + " " + string(text[:min(len(text), 30)]) + "\n")
	}
	if !strings.Contains(answers.String(), "OVER_LIMIT") || !strings.Contains(answers.String(), "200") {
		t.Errorf("the answers are %s", answers.String())
	}
	return answers.String()
}

// TestConvertOfManagedLimits: the limits of a management server are in no folder, so convert prints the settings alone, and notes the
// variables without a place in a file. With a folder, it prints these limits too.
func TestConvertOfManagedLimits(t *testing.T) {
	for name, value := range map[string]string{
		"CONFIG_TYPE": "GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL": "127.0.0.1:9", "BACKEND_TYPE": "redis", "REDIS_SOCKET_TYPE": "tcp",
		"REDIS_URL": "127.0.0.1:9", "GRPC_PORT": "0", "PORT": "0", "USE_STATSD": "false",
	} {
		t.Setenv(name, value)
	}
	status, stdout, stderr := call(t, "convert", "--envoy-env")
	if status != exitOK || !strings.Contains(stdout, "store: redis://127.0.0.1:9") || strings.Contains(stdout, "domains:") {
		t.Fatalf("without a folder: status %d: %s\n%s", status, stderr, stdout)
	}
	if !strings.Contains(stderr, "CONFIG_GRPC_XDS_SERVER_URL") && !strings.Contains(stderr, "CONFIG_TYPE") {
		t.Errorf("no note says where the limits come from: %s", stderr)
	}
	if status, _, checked := call(t, "check", "--offline", "--config", write(t, stdout)); status != exitOK {
		t.Errorf("check: status %d: %s", status, checked)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "shop.yaml"), []byte("domain: shop\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 5}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr = call(t, "convert", "--envoy-env", folder); status != exitOK || !strings.Contains(stdout, "shop:") {
		t.Errorf("with a folder: status %d: %s\n%s", status, stderr, stdout)
	}
}
