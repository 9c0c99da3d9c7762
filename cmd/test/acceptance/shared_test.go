package acceptance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// sharedConfiguration has one rule on a shared store. The access log has the time of each
// decision by the store's clock. A shared limit is judged by these times.
const sharedConfiguration = `version: 1
store: %s
store_timeout: 2s
prefetch: %s
max_memory: 16MiB
log: {decisions: none, access: json, access_file: "%s"}
rules:
  - name: shared
    match: {path: /*}
    key: [all]
    algorithm: %s
    limits: ["%s"]
    cost: %d
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// fleet is a set of processes that share one limit.
type fleet struct {
	instances []*instance
	logs      []string
}

// sharing is a limit that a fleet shares.
type sharing struct {
	algorithm, limit, prefetch string
	count, cost                int64
	per                        time.Duration
}

func startFleet(t *testing.T, store string, processes int, s sharing) *fleet {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(upstream.Close)
	f := &fleet{}
	for i := range processes {
		path := filepath.Join(t.TempDir(), fmt.Sprint("access", i, ".log"))
		f.logs = append(f.logs, path)
		f.instances = append(f.instances, start(t, fmt.Sprintf(sharedConfiguration, store, s.prefetch, path, s.algorithm, s.limit, s.cost), upstream.URL))
	}
	return f
}

// hammer sends requests to the first n instances as fast as they answer, over some connections
// each.
func (f *fleet) hammer(t *testing.T, n int, during time.Duration) {
	t.Helper()
	end := time.Now().Add(during)
	var all sync.WaitGroup
	connections := 16 / n
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}, Timeout: patience}
	defer client.CloseIdleConnections() // An instance waits for open connections when it stops.
	for _, i := range f.instances[:n] {
		for range connections {
			all.Go(func() {
				for time.Now().Before(end) {
					resp, err := client.Get("http://" + i.Proxy + "/")
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
	}
	all.Wait()
}

// admitted gives the sorted times of the allowed decisions, in microseconds by the store's
// clock, after every process has ended.
func (f *fleet) admitted(t *testing.T) []int64 {
	t.Helper()
	var at []int64
	for i, path := range f.logs {
		f.instances[i].stop()
		log, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			var line struct {
				Verdict   string      `json:"verdict"`
				Reason    string      `json:"reason"`
				DecidedAt json.Number `json:"decided_at"`
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatalf("%s: %v", lines.Bytes(), err)
			}
			if line.Reason == "store_unavailable" {
				t.Fatalf("the store did not answer: %s", lines.Bytes())
			}
			if line.Verdict != "allow" {
				continue
			}
			at = append(at, micros(t, line.DecidedAt.String()))
		}
		log.Close()
	}
	slices.Sort(at)
	return at
}

// micros reads seconds with six decimals.
func micros(t *testing.T, text string) int64 {
	t.Helper()
	var whole, part int64
	if _, err := fmt.Sscanf(text, "%d.%06d", &whole, &part); err != nil {
		t.Fatalf("%q is no time: %v", text, err)
	}
	return whole*1e6 + part
}

// most gives the largest number of units in any window; in aligned windows for fixed_window.
func (s sharing) most(at []int64) int64 {
	per, most := s.per.Microseconds(), int64(0)
	from := 0
	for to := range at {
		for s.apart(at[from], at[to], per) {
			from++
		}
		most = max(most, int64(to-from+1)*s.cost)
	}
	return most
}

func (s sharing) apart(a, b, per int64) bool {
	if s.algorithm == "fixed_window" {
		return a/per != b/per
	}
	return b-a >= per
}

// used gives the used part of the limit in the complete windows between the first and the last
// decision. The first fixed window is incomplete.
func (s sharing) used(t *testing.T, at []int64) float64 {
	t.Helper()
	per := s.per.Microseconds()
	from, to := at[0], at[len(at)-1]
	if s.algorithm == "fixed_window" {
		from = (from/per + 1) * per
	}
	windows := (to - from) / per
	if windows < 2 {
		t.Fatalf("only %d whole windows between %d and %d", windows, from, to)
	}
	first, _ := slices.BinarySearch(at, from)
	last, _ := slices.BinarySearch(at, from+windows*per)
	return float64(int64(last-first)*s.cost) / float64(windows*s.count)
}

// TestOneLimitOverManyProcesses: eight processes use one limit on one Redis as fast as they can.
// By its clock, no window has more than the limit, and nearly the whole limit is used. The test
// has even demand, demand at one process, and both with and without prefetch.
func TestOneLimitOverManyProcesses(t *testing.T) { oneLimitOverManyProcesses(t) }

func oneLimitOverManyProcesses(t *testing.T) {
	t.Helper()
	server := testserver.Start(t)
	for _, c := range []sharing{
		{algorithm: "sliding_log", limit: "10/1s", count: 10, cost: 1, per: time.Second},
		{algorithm: "sliding_log", limit: "1000/1s", count: 1000, cost: 1, per: time.Second},
		// The machine cannot serve 100,000 HTTP requests a second, so each request has a cost of a
		// hundred.
		{algorithm: "fixed_window", limit: "100000/1s", count: 100_000, cost: 100, per: time.Second},
	} {
		for _, prefetch := range []string{"off", "auto"} {
			for _, busy := range []int{8, 1} {
				c.prefetch = prefetch
				t.Run(fmt.Sprintf("%s prefetch %s %d busy", c.limit, prefetch, busy), func(t *testing.T) {
					server.CLI("FLUSHALL")
					c.share(t, server.Addr, busy)
				})
			}
		}
	}
}

func (s sharing) share(t *testing.T, addr string, busy int) {
	t.Helper()
	f := startFleet(t, "redis://"+addr, 8, s)
	f.hammer(t, busy, 4*s.per+s.per/2)
	at := f.admitted(t)
	if len(at) == 0 {
		t.Fatal("nothing was admitted")
	}
	if most := s.most(at); most > s.count {
		t.Errorf("%d units in one window of %s", most, s.limit)
	}
	least := leastUsedEvenly
	if busy == 1 {
		least = leastUsedByOne
	}
	used := s.used(t, at)
	t.Logf("%d requests passed, %.4f of the limit was used", len(at), used)
	if used < least {
		t.Errorf("%.4f of %s was used, want %.2f", used, s.limit, least)
	}
}
