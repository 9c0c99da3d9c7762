package deploy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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

// patience is beyond what anything takes that these tests wait for.
const patience = 30 * time.Second

// metric is what a running proxy shows of a name.
type metric struct {
	kind   string // counter, gauge or histogram
	labels map[string]bool
}

// addresses are where a proxy listens, as its first line of the log tells.
type addresses struct {
	Msg    string `json:"msg"`
	Proxy  string `json:"proxy"`
	Health string `json:"health"`
}

// Two configurations show all metrics that there are: one with counters in memory, one with a
// store that is not there.
const (
	sharedInMemory = `
version: 1
rules: [{name: all, key: [all], limits: ["1000/s"]}]
proxy:
  listen: "127.0.0.1:0"
  upstream: %[1]s
fair_share: {client: header:X-Client-Id, capacity: 4, cycle: 1h}
admin: {listen: "off", health: "127.0.0.1:0"}
`
	storeIsAway = `
version: 1
store: redis://%[2]s
rules: [{name: all, key: [all], limits: ["1000/s"]}]
proxy: {listen: "127.0.0.1:0", upstream: %[1]s}
admin: {listen: "off", health: "127.0.0.1:0"}
`
)

// shown gives the metrics of running proxies that have had some traffic, and those of pacers.
func shown(t *testing.T) map[string]metric {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(service.Close)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{}
	for _, configuration := range []string{sharedInMemory, storeIsAway} {
		at := serve(t, fmt.Sprintf(configuration, service.URL, away))
		for range 5 { // one above the capacity, and one without a client
			get(t, "http://"+at.Proxy+"/", "home-loan")
		}
		get(t, "http://"+at.Proxy+"/", "")
		collect(t, get(t, "http://"+at.Health+"/metrics", ""), all)
	}
	pacers := filepath.Join("..", "..", "report", "prom", "testdata", "pacers.txt") // Its own test keeps it true.
	collect(t, string(read(t, pacers)), all)
	return all
}

// serve starts headgate proxy, and stops it with the test.
func serve(t *testing.T, configuration string) addresses {
	t.Helper()
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary(t), "proxy", "--config", path)
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
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
			t.Errorf("headgate proxy: %v", err)
		}
	})
	select {
	case at := <-serving:
		return at
	case <-ended:
		t.Fatal("headgate proxy ends before it serves")
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
	answer, err := (&http.Client{Timeout: patience}).Do(r)
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

// collect adds what a page of metrics shows of Headgate.
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
			if whole, found := strings.CutSuffix(name, part); found && kinds[whole] == "histogram" {
				m.kind = "histogram"
			}
		}
		if known, found := all[name]; found { // Its labels are the same, whatever the instance.
			m = known
		}
		all[name] = m
	}
}
