package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	manyRules = 10_000
	// perDay is the limit of the rule that all requests of the test match.
	perDay = 50_000_000
)

// manyRulesConfiguration has 10,000 rules of all kinds. A request to /v1/tenants/N matches one
// of them, and two further rules match all requests. Each version changes most of the limits.
func manyRulesConfiguration(upstream string, version int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "version: 1\nlog: {decisions: none}\nrules:\n"+
		"  - {name: everybody, key: [all], limits: [\"1000000000/s\"]}\n"+
		"  - {name: caller, key: [header:X-Client-Id], algorithm: sliding_window, limits: [\"%d/1d\"]}\n", perDay)
	for n := range manyRules - 2 {
		limit := 100_000_000 + (n+version)%100
		fmt.Fprintf(&b, "  - {name: tenant-%d, match: {path: /v1/tenants/%d", n, n)
		switch n % 4 {
		case 1:
			fmt.Fprintf(&b, "/*, methods: [GET, POST]}, key: [ip, path], algorithm: sliding_window, limits: [\"%d/1m\"]}\n", limit)
		case 2:
			fmt.Fprintf(&b, "}, key: [header:X-Client-Id], limits: [\"%d/m\", \"%d/1h\"], soft: 90%%, ban: {after: \"%d/1h\", for: 1h}}\n",
				limit, 10*limit, 100*limit)
		case 3:
			fmt.Fprintf(&b, ", headers: {X-Plan: p%d}}, key: [all], limits: [\"%d/1m\"], mode: shadow}\n", n, limit)
		default:
			fmt.Fprintf(&b, "}, key: [all], algorithm: fixed_window, limits: [\"%d/1m\"]}\n", limit)
		}
	}
	fmt.Fprintf(&b, "proxy: {listen: \"127.0.0.1:0\", upstream: %q}\n%s", upstream, adminAnywhere)
	return b.Bytes()
}

// TestManyRules reloads a file of 10,000 rules twenty times under load. No request fails, and
// all counts continue. The test logs the times of decisions without and with reloads.
func TestManyRules(t *testing.T) {
	const reloads = 20
	var reached atomic.Int64
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer behind.Close()
	path := file(t, string(manyRulesConfiguration(behind.URL, 0)))
	began := time.Now()
	i := launch(t, path)
	t.Logf("with %d rules it serves after %v", manyRules, time.Since(began).Round(time.Millisecond))

	asked := load(t, i, func() { <-time.After(200 * time.Millisecond) }) // The connections are open before the measurement starts.
	before := decisionTimes(t, i)
	asked += load(t, i, func() { <-time.After(2 * time.Second) })
	quiet := decisionTimes(t, i)
	asked += load(t, i, func() {
		for version := range reloads {
			done := len(reloadTimes(t, i))
			replace(t, path, manyRulesConfiguration(behind.URL, version+1))
			if err := i.command.Process.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
				return
			}
			eventually(t, "the reload", func() bool { return len(reloadTimes(t, i)) > done })
		}
	})
	reloading := decisionTimes(t, i)

	durations := reloadTimes(t, i)
	slices.Sort(durations)
	t.Logf("a reload takes %v, at most %v; it is done %d times while %d requests are answered",
		durations[len(durations)/2], durations[len(durations)-1], len(durations), int64(reloading[math.Inf(1)]-quiet[math.Inf(1)]))
	still, busy := quiet.since(before).percentile(99), reloading.since(quiet).percentile(99)
	t.Logf("99 %% of decisions take at most %v quiet and %v while reloading", still, busy)
	if busy > 50*time.Millisecond { // The bound is generous. It catches decisions that wait for a reload.
		t.Errorf("99 %% of decisions take up to %v while reloading, and %v otherwise", busy, still)
	}

	if n := reached.Load(); n != asked {
		t.Errorf("%d requests reached the service, want %d", n, asked)
	}
	if n := decisions(t, i, "caller", "enforce", "allow", "within_limit"); int64(n) != asked {
		t.Errorf("%v requests are counted as allowed, want %d", n, asked)
	}
	left := fmt.Sprintf(`"caller";r=%d;`, perDay-asked-1)
	if got := ask(t, append(with("X-Client-Id: a"), "http://"+i.Proxy+"/")...).header.Get("RateLimit"); !strings.HasPrefix(got, left) {
		t.Errorf("after %d requests and one more the caller is told %q, want %s", asked, got, left)
	}
}

// pause is the time between two requests of a client. Without it, the test would measure how
// four clients and a reload share two cores.
const pause = time.Millisecond

// load runs four clients until during returns, checks that no request fails, and gives the
// number of requests.
func load(t *testing.T, i *instance, during func()) int64 {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	var answered atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for first := range 4 {
		clients.Go(func() {
			for n := first; ; n += 4 {
				select {
				case <-stop:
					return
				case <-time.After(pause):
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/v1/tenants/%d", i.Proxy, n%manyRules), http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Client-Id", "a")
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("request %d: %v", n, err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("request %d is answered with %d", n, resp.StatusCode)
					return
				}
				answered.Add(1)
			}
		})
	}
	func() {
		defer clients.Wait()
		defer close(stop)
		during()
	}()
	return answered.Load()
}

// reloadTimes gives the durations of the finished reloads.
func reloadTimes(t *testing.T, i *instance) []time.Duration {
	t.Helper()
	var all []time.Duration
	for _, line := range i.lines() {
		var fields struct {
			Elapsed string `json:"took"`
		}
		if line.Msg != "the configuration was reloaded" {
			continue
		}
		if err := json.Unmarshal([]byte(line.text), &fields); err != nil {
			t.Error(err)
		}
		elapsed, err := time.ParseDuration(fields.Elapsed)
		if err != nil {
			t.Error(err)
		}
		all = append(all, elapsed.Round(time.Millisecond))
	}
	return all
}

// times has the number of decisions within each bound, in seconds.
type times map[float64]float64

func decisionTimes(t *testing.T, i *instance) times {
	t.Helper()
	return histogram(t, i, `headgate_decision_seconds_bucket{le="`)
}

// histogram gives a histogram of the metrics. name ends before the value of the label le.
func histogram(t *testing.T, i *instance, name string) times {
	t.Helper()
	_, text := get(t, "http://"+i.Health+"/metrics")
	all := times{}
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, name)
		if !found {
			continue
		}
		bound, count, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
		seconds, err := strconv.ParseFloat(bound, 64) // +Inf is one of the bounds
		if err != nil {
			t.Fatal(err)
		}
		if all[seconds], err = strconv.ParseFloat(count, 64); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (all times) since(before times) times {
	between := times{}
	for bound := range all {
		between[bound] = all[bound] - before[bound]
	}
	return between
}

// percentile gives the smallest bound with p percent of the decisions.
func (all times) percentile(p float64) time.Duration {
	least := math.Inf(1)
	for bound, n := range all {
		if n*100 >= p*all[math.Inf(1)] {
			least = min(least, bound)
		}
	}
	if math.IsInf(least, 1) {
		return math.MaxInt64
	}
	return time.Duration(least * float64(time.Second))
}
