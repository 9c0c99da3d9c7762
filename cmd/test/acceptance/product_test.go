package acceptance

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const productConfiguration = `version: 1
max_memory: 16MiB
log: {decisions: all}
rules:
  - name: product
    match: {path: /v1/product}
    key: [path]
    algorithm: sliding_log
    limits: ["500/2s", "2000/10s"]
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// arrivals is an upstream that records the times of its requests, by one monotonic clock.
type arrivals struct {
	start time.Time
	mu    sync.Mutex
	at    []int64
}

func (a *arrivals) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	at := a.start.Add(time.Since(a.start)).UnixNano()
	a.mu.Lock()
	a.at = append(a.at, at)
	a.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}

// TestProductExact floods /v1/product for 9 s. Its limits are 500 requests in any 2 s and 2,000
// in any 10 s.
//
// By the times of the decisions, no window of either length has more, and both limits are used
// up exactly. At the upstream, the total is exact. No interval of W - D has more than the limit,
// where D is the largest forwarding delay.
func TestProductExact(t *testing.T) {
	wrk := tool(t, "wrk", "wrk")
	upstream := &arrivals{start: time.Now()}
	behind := httptest.NewServer(upstream)
	defer behind.Close()
	i := start(t, productConfiguration, behind.URL)
	answered := flood(t, wrk, "http://"+i.Proxy+"/v1/product")
	if status := i.stop(); status != 0 {
		t.Fatalf("headgate proxy ends with %d\n%s", status, i.text())
	}

	var admitted []int64
	decisions := 0
	for _, line := range i.lines() {
		if line.Suppressed > 0 {
			t.Fatalf("%d decisions are missing from the log", line.Suppressed)
		}
		if line.Msg == "decision" {
			decisions++
			if line.Verdict == "allow" {
				admitted = append(admitted, line.At)
			}
		}
	}
	slices.Sort(admitted)
	slices.Sort(upstream.at)
	t.Logf("%d decisions, %d admitted, %d arrived, %d answered with 2xx", decisions, len(admitted), len(upstream.at), answered)
	if len(admitted) != 2000 || len(upstream.at) != 2000 || answered != 2000 {
		t.Fatalf("%d admitted, %d arrived, %d answered with 2xx: want 2000 of each", len(admitted), len(upstream.at), answered)
	}
	first := admitted[0]
	if n, _ := slices.BinarySearch(admitted, first+int64(2*time.Second)); n != 500 {
		t.Errorf("%d were admitted in the first 2 s, want 500", n)
	}
	holds(t, "by At", admitted, 500, 2*time.Second)
	holds(t, "by At", admitted, 2000, 10*time.Second)

	delay := greatestDelay(admitted, upstream.at)
	t.Logf("the greatest forwarding delay is %v", delay)
	if delay > time.Second {
		t.Errorf("the greatest forwarding delay is %v: the machine is too busy for this test to say anything", delay)
	}
	holds(t, "at the upstream", upstream.at, 500, 2*time.Second-delay)
	holds(t, "at the upstream", upstream.at, 2000, 10*time.Second-delay)
}

// holds checks that no window (t-W, t] has more than limit of the sorted times. Of any limit+1
// successive times, the last is at least W after the first.
func holds(t *testing.T, where string, times []int64, limit int, window time.Duration) {
	t.Helper()
	for i := limit; i < len(times); i++ {
		if span := time.Duration(times[i] - times[i-limit]); span < window {
			t.Errorf("%s: %d within %v, the limit is %d in %v", where, limit+1, span, limit, window)
			return
		}
	}
}

// greatestDelay gives the largest delay between decisions and arrivals. It pairs the n-th
// arrival with the n-th decision: no other pairing has a smaller largest delay, so the bound is
// the strictest. The clocks of two processes differ, and the result includes the difference.
func greatestDelay(decided, arrived []int64) time.Duration {
	least, most := time.Duration(0), time.Duration(0)
	for i := range decided {
		delay := time.Duration(arrived[i] - decided[i])
		least, most = min(least, delay), max(most, delay)
	}
	return most - least
}

// flood sends requests of 16 clients with pauses of at most 2 ms, and gives the number of
// answers without an error.
func flood(t *testing.T, wrk, url string) int {
	t.Helper()
	pause := filepath.Join(t.TempDir(), "pause.lua")
	if err := os.WriteFile(pause, []byte("function delay() return 2 end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), wrk, "-t1", "-c16", "-d9s", "-s", pause, url).CombinedOutput()
	if err != nil {
		t.Fatalf("wrk: %v\n%s", err, out)
	}
	all := number(t, out, `(\d+) requests in`)
	return all - number(t, out, `Non-2xx or 3xx responses: (\d+)`)
}

func number(t *testing.T, out []byte, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindSubmatch(out)
	if found == nil {
		t.Fatalf("wrk does not say %s:\n%s", pattern, out)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHoldsCatches: holds finds violations.
func TestHoldsCatches(t *testing.T) {
	for _, c := range []struct {
		times []int64
		want  bool
	}{
		{[]int64{0, 1, 10, 11}, true}, // an entry of age W has left the window
		{[]int64{0, 1, 9, 11}, false},
		{[]int64{0, 0, 0}, false},
		{nil, true},
	} {
		probe := new(testing.T)
		holds(probe, "probe", c.times, 2, 10)
		if probe.Failed() == c.want {
			t.Errorf("%v: held is %v, want %v", c.times, !probe.Failed(), c.want)
		}
	}
}
