package deploy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// timeout is longer than any operation that these tests wait for.
const timeout = 30 * time.Second

// metric is the type and the labels of a metric.
type metric struct {
	kind   string // counter, gauge or histogram
	labels map[string]bool
}

// addresses holds the listen addresses of a proxy, from the line "serving" of its log.
type addresses struct {
	Msg    string `json:"msg"`
	Proxy  string `json:"proxy"`
	Health string `json:"health"`
}

// Four configurations cover all metrics: one with a memory store, one with an
// unreachable shared store, a server of a group of capacity leases with an unreachable etcd, and one below.
const (
	memoryStore = `
version: 1
rules:
  - {name: all, key: [all], limits: ["1000/s"], in_flight: 100, settle: header:X-Cost}
  - {name: quota, key: [header:X-Client-Id], quota: calls}
default_plan: free
plans: {free: {quotas: {calls: [{limit: 1000/30d}]}}}
metering: {journal: %[3]s/journal, lines: {folder: %[3]s/lines}}
source: {http: {url: "%[1]s/objects"}, cache: %[3]s/objects}
proxy:
  listen: "127.0.0.1:0"
  upstream: %[1]s
fair_share: {client: header:X-Client-Id, capacity: 4, cycle: 1h}
throttle: {concurrency: 16}
admin: {listen: "off", health: "127.0.0.1:0"}
`
	unreachableStore = `
version: 1
store: redis://%[2]s
rules: [{name: all, key: [all], limits: ["1000/s"]}]
proxy: {listen: "127.0.0.1:0", upstream: %[1]s}
admin: {listen: "off", health: "127.0.0.1:0"}
`
	leaseServer = `
version: 1
server: {grpc: "127.0.0.1:0", http: off}
lease: {election: {etcd: ["%[2]s"], group: g}, limits: {prefix: /limits/}, resources: [{match: a, capacity: 5/s}]}
admin: {listen: "off", health: "127.0.0.1:0"}
`
	leaseLeaf = `
version: 1
server: {grpc: "127.0.0.1:0", http: off}
lease: {servers: ["%[2]s"]}
admin: {listen: "off", health: "127.0.0.1:0"}
`
)

// shown returns the metrics of two running proxies after some requests, those of two servers, and those of pacers.
func shown(t *testing.T) map[string]metric {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/objects" { // A source with one customer.
			_, _ = io.WriteString(w, `{"customers": {"a": {"plan": "free"}}}`)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(service.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unreachable := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{}
	for _, configuration := range []string{memoryStore, unreachableStore} {
		at := serve(t, fmt.Sprintf(configuration, service.URL, unreachable, t.TempDir()))
		for range 5 { // One request is over the capacity, and one has no client.
			get(t, "http://"+at.Proxy+"/", "home-loan")
		}
		get(t, "http://"+at.Proxy+"/", "")
		collect(t, get(t, "http://"+at.Health+"/metrics", ""), all)
	}
	for _, configuration := range []string{leaseServer, leaseLeaf} {
		at := serve(t, fmt.Sprintf(configuration, service.URL, unreachable))
		collect(t, get(t, "http://"+at.Health+"/metrics", ""), all)
	}
	pacers := filepath.Join("..", "..", "..", "guard", "report", "prom", "testdata", "pacers.txt") // A test of package prom compares this file with the real metrics.
	collect(t, string(read(t, pacers)), all)
	return all
}

// serve starts headgate proxy, or headgate server for a configuration of one, until the test ends.
func serve(t *testing.T, configuration string) addresses {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	word := "proxy"
	if strings.Contains(configuration, "\nserver:") {
		word = "server"
	}
	command := exec.Command(binary(t), word, "--config", path)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(timeout, func() { _ = command.Process.Kill() })
	serving := make(chan addresses, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var at addresses
			if json.Unmarshal(lines.Bytes(), &at) == nil && at.Msg == "serving" {
				serving <- at
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-ended
		kill.Stop()
		if err := command.Wait(); err != nil {
			t.Errorf("headgate proxy did not exit cleanly: %v", err)
		}
	})
	select {
	case at := <-serving:
		return at
	case <-ended:
		t.Fatal("headgate proxy ended before it logged serving")
	}
	return addresses{}
}

func get(t *testing.T, url, client string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if client != "" {
		r.Header.Set("X-Client-Id", client)
	}
	answer, err := (&http.Client{Timeout: timeout}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// collect parses a metrics page and adds Headgate's metrics to all.
func collect(t *testing.T, page string, all map[string]metric) {
	t.Helper()
	language := parser.NewParser(parser.Options{})
	kinds := map[string]string{}
	for line := range strings.Lines(page) {
		if typed, found := strings.CutPrefix(line, "# TYPE "); found {
			name, kind, _ := strings.Cut(strings.TrimSpace(typed), " ")
			kinds[name] = kind
		}
		if !strings.HasPrefix(line, "headgate_") {
			continue
		}
		series, err := language.ParseMetric(line[:strings.LastIndexByte(line, ' ')])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		m := metric{labels: map[string]bool{}}
		series.Range(func(l labels.Label) { m.labels[l.Name] = true })
		name := series.Get(model.MetricNameLabel)
		m.kind = kinds[name]
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if base, found := strings.CutSuffix(name, part); found && kinds[base] == "histogram" {
				m.kind = "histogram"
			}
		}
		if known, found := all[name]; found { // The parser drops empty labels, so that one series may lack a label of the others.
			maps.Copy(known.labels, m.labels)
			m = known
		}
		all[name] = m
	}
}
