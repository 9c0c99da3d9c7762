package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// loginConfiguration allows five wrong passwords within any day.
const loginConfiguration = `version: 1
store: %s
store_timeout: 10s
max_memory: 16MiB
log: {decisions: none}
rules:
  - name: login
    match: {path: /login}
    key: [header:X-User]
    algorithm: %s
    limits: ["5/d"]
    count: {status: [401, 403]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// TestLoginsOverProcesses: of 1,000 parallel attempts with wrong passwords over four processes, exactly
// five reach the service. 1,000 correct logins one after another all pass.
func TestLoginsOverProcesses(t *testing.T) {
	for _, c := range []struct{ name, store, algorithm string }{
		{"redis", "redis://" + testserver.Start(t).Addr, "sliding_log"},
		{"memcached", "memcached://" + testmemcached.Start(t).Addr, "sliding_window"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var reached atomic.Int64
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reached.Add(1)
				if r.Header.Get("X-Password") != "right" {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			t.Cleanup(service.Close)
			var processes []*instance
			for range 4 {
				processes = append(processes, start(t, fmt.Sprintf(loginConfiguration, c.store, c.algorithm), service.URL))
			}
			var all sync.WaitGroup
			for i := range 1000 {
				all.Go(func() { login(t, processes[i%4], "mallory", "wrong") })
			}
			all.Wait()
			if n := reached.Load(); n != 5 {
				t.Errorf("%d wrong passwords reached the service, want 5", n)
			}
			for i := range 1000 {
				// A unit goes back after its answer, so that a busy machine may refuse a login for a moment.
				var status int
				for until := time.Now().Add(patience); status != http.StatusOK && time.Now().Before(until); {
					status = login(t, processes[i%4], "alice", "right")
				}
				if status != http.StatusOK {
					t.Fatalf("correct login %d: status %d", i+1, status)
				}
			}
		})
	}
}

func login(t *testing.T, i *instance, user, password string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+i.Proxy+"/login", http.NoBody)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("X-User", user)
	r.Header.Set("X-Password", password)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

const settleConfiguration = `version: 1
store: %s
store_timeout: 10s
max_memory: 16MiB
log: {decisions: none}
rules:
  - name: tokens
    key: [all]
    algorithm: sliding_window
    limits: ["1000000/300d"]
    cost: 100
    settle: trailer:X-Tokens
  - name: probe
    match: {path: /probe}
    key: [all]
    limits: ["%d/m"]
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// estimate is the cost of a request before its answer.
const estimate = 100

// TestSettledThroughProxies: the counted units equal the real costs, after answers in full, broken
// answers, clients that leave, missing costs and reloads.
func TestSettledThroughProxies(t *testing.T) {
	store := "redis://" + testserver.Start(t).Addr
	service := httptest.NewServer(http.HandlerFunc(answerCost))
	t.Cleanup(service.Close)
	first := start(t, fmt.Sprintf(settleConfiguration, store, 1000), service.URL)
	second := start(t, fmt.Sprintf(settleConfiguration, store, 1000), service.URL)
	var sum atomic.Int64
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for i := range 40 {
				kind := costKindNames[(n+i)%len(costKindNames)]
				cost := int64(7 * (n + i))
				sum.Add(settledBy(kind, cost))
				askFor(t, [...]*instance{first, second}[i%2], kind, cost)
			}
		})
	}
	for n := range 5 {
		text := fmt.Sprintf(fmt.Sprintf(settleConfiguration, store, 1001+n), service.URL) + adminAnywhere
		replace(t, first.path, []byte(text))
		first.hangup(t)
	}
	all.Wait()
	want := int64(1_000_000) - sum.Load()
	var got int64
	for began := time.Now(); time.Since(began) < patience; {
		resp, err := http.Get("http://" + second.Proxy + "/?kind=header&cost=0")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		_, text, _ := strings.Cut(resp.Header.Get("RateLimit"), ";r=")
		text, _, _ = strings.Cut(text, ";")
		got, _ = strconv.ParseInt(text, 10, 64)
		if got += estimate; got == want {
			return
		}
	}
	t.Errorf("%d units remain, want %d", got, want)
}

// costKindNames are the ways in which the service states the cost, and in which answers end.
var costKindNames = [...]string{"header", "trailer", "none", "bad", "header-broken", "trailer-broken", "header-left", "trailer-left"}

// settledBy gives the units that a request of a kind costs.
func settledBy(kind string, cost int64) int64 {
	switch kind {
	case "header", "trailer", "header-broken", "header-left":
		return cost
	default:
		return estimate
	}
}

// answerCost is the service.
func answerCost(w http.ResponseWriter, r *http.Request) {
	kind, cost := r.URL.Query().Get("kind"), r.URL.Query().Get("cost")
	how, end, _ := strings.Cut(kind, "-")
	switch how {
	case "header":
		w.Header().Set("X-Tokens", cost)
	case "trailer":
		w.Header().Set("Trailer", "X-Tokens")
	case "bad":
		w.Header().Set("X-Tokens", "-"+cost)
	}
	_, _ = io.WriteString(w, "some tokens")
	_ = http.NewResponseController(w).Flush()
	switch end {
	case "broken":
		panic(http.ErrAbortHandler)
	case "left":
		<-r.Context().Done()
		return
	}
	if how == "trailer" {
		w.Header().Set("X-Tokens", cost)
	}
}

// askFor makes a request. For the kinds that say so, it leaves after the beginning of the answer.
func askFor(t *testing.T, i *instance, kind string, cost int64) {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s/?kind=%s&cost=%d", i.Proxy, kind, cost))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: status %d", kind, resp.StatusCode)
	}
	if strings.HasSuffix(kind, "-left") {
		_, _ = io.ReadFull(resp.Body, make([]byte, 4))
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
}
