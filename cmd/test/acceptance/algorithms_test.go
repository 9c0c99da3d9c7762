package acceptance

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const algorithmConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: %s
    match: {path: /v1/*}
    key: [header:X-Client-Id]
    algorithm: %s
    limits: ["5/1d"]
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
`

// TestEveryAlgorithmEndToEnd sends seven requests against a limit of five a day, for each
// algorithm without waits.
func TestEveryAlgorithmEndToEnd(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_log", "sliding_window"} {
		t.Run(algorithm, func(t *testing.T) {
			name := strings.ReplaceAll(algorithm, "_", "-")
			i := start(t, fmt.Sprintf(algorithmConfiguration, name, algorithm), behind.URL)
			for n := range 7 {
				head, _ := curl(t, "-H", "X-Client-Id: a", "http://"+i.Proxy+"/v1/product")
				want := "HTTP/1.1 200 OK"
				if n >= 5 {
					want = "HTTP/1.1 429 Too Many Requests"
				}
				if head[0] != want {
					t.Errorf("request %d of five: %s, want %s", n+1, head[0], want)
				}
			}
		})
	}
}

const queueConfiguration = `version: 1
max_memory: 16MiB
rules:
  - name: even
    key: [all]
    algorithm: leaky_bucket
    limits: ["2/s"]
    burst: 4
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// TestLeakyBucketEndToEnd sends six simultaneous requests to a queue of four. Two are refused,
// and the others depart half a second apart, none early.
func TestLeakyBucketEndToEnd(t *testing.T) {
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, queueConfiguration, behind.URL)
	var mu sync.Mutex
	var waits []time.Duration
	refused := 0
	began := time.Now()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			head, _ := curl(t, "http://"+i.Proxy+"/")
			elapsed := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			if head[0] == "HTTP/1.1 200 OK" {
				waits = append(waits, elapsed)
			} else {
				refused++
			}
		})
	}
	all.Wait()
	if len(waits) != 4 || refused != 2 {
		t.Fatalf("%d passed and %d were refused, want 4 and 2", len(waits), refused)
	}
	slices.Sort(waits)
	for n, elapsed := range waits {
		// The first decision is later than began, so no departure can seem early.
		if least := time.Duration(n) * 500 * time.Millisecond; elapsed < least {
			t.Errorf("answer %d came after %v, before its departure at %v", n+1, elapsed, least)
		}
	}
}
