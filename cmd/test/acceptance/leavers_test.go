package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

const leaversConfiguration = `version: 1
max_memory: 16MiB
store: "redis://REDIS"
store_timeout: 5s # What is booked for a decision that timed out is lost, and this machine is busy.
rules:
  - name: crowded
    key: [all]
    algorithm: ALGORITHM
    limits: ["RATE/s"]
    burst: BURST
    on_exceed: {action: delay, max_wait: 60s, max_waiters: WAITERS}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

// leavers are clients of one key at several instances with one Redis. Each client waits for a
// while, leaves, and returns.
type leavers struct {
	algorithm          string
	instances, clients int
	rate, maxWaiters   int
	patience, lasts    time.Duration
	again              time.Duration // the longest time from a refusal to the client's next request

	servers []*instance
	began   time.Time
	seen    arrivals // by the upstream

	mu     sync.Mutex
	served []time.Duration // times since began, of clients that still waited
	late   int             // those of them with less than 20 ms left
	status map[int]int     // 0 counts the clients that left
}

// burst is the number of requests that may depart at once; for a leaky bucket, it is the length
// of the queue.
func (l *leavers) burst() int {
	if l.algorithm == "leaky_bucket" {
		return l.maxWaiters
	}
	return l.rate
}

// atOnce is the number of requests that the limit admits at the same time.
func (l *leavers) atOnce() int {
	if l.algorithm == "leaky_bucket" {
		return 1
	}
	return l.rate
}

func (l *leavers) start(t *testing.T) {
	t.Helper()
	redis := testserver.Start(t)
	l.status, l.seen.start = map[int]int{}, time.Now()
	behind := httptest.NewUnstartedServer(&l.seen)
	behind.Config.Protocols = &http.Protocols{}
	behind.Config.Protocols.SetUnencryptedHTTP2(true)
	behind.Start()
	t.Cleanup(behind.Close)
	text := strings.NewReplacer("REDIS", redis.Addr, "ALGORITHM", l.algorithm, "RATE", fmt.Sprint(l.rate), "BURST", fmt.Sprint(l.burst()),
		"WAITERS", fmt.Sprint(l.maxWaiters)).Replace(leaversConfiguration)
	for range l.instances {
		l.servers = append(l.servers, start(t, text, strings.Replace(behind.URL, "http:", "h2c:", 1)))
	}
}

// streamsOfOne is the number of clients on one connection, which carries 250 streams.
const streamsOfOne = 125

// crowd runs the clients until the end.
func (l *leavers) crowd(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	l.began = time.Now()
	for first := 0; first < l.clients; first += streamsOfOne {
		transport := &http.Transport{Protocols: &http.Protocols{}}
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		client := &http.Client{Transport: transport}
		url := "http://" + l.servers[first/streamsOfOne%l.instances].Proxy + "/"
		for n := first; n < min(first+streamsOfOne, l.clients); n++ {
			all.Go(func() { l.client(t, client, url, rand.New(rand.NewPCG(uint64(n), 1))) })
		}
	}
	all.Wait()
}

// client sends requests in a loop. It starts within the first second, so that the clients do not
// all start at once.
func (l *leavers) client(t *testing.T, client *http.Client, url string, rnd *rand.Rand) {
	t.Helper()
	pause := time.Duration(rnd.Int64N(int64(time.Second)))
	for {
		<-time.After(pause)
		if time.Since(l.began) > l.lasts {
			return
		}
		pause = 0
		if status := l.request(t, client, url); status != 0 && status != http.StatusOK {
			pause = time.Duration(rnd.Int64N(int64(l.again)))
		}
	}
}

func (l *leavers) request(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), l.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Error(err)
		return 0
	}
	status := 0
	resp, err := client.Do(req)
	switch {
	case err == nil:
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		status = resp.StatusCode
	case !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("a client: %v", err)
	}
	l.note(ctx, status)
	return status
}

func (l *leavers) note(ctx context.Context, status int) {
	at := time.Since(l.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status[status]++
	if status != http.StatusOK {
		return
	}
	l.served = append(l.served, at)
	if deadline, _ := ctx.Deadline(); time.Until(deadline) < 20*time.Millisecond {
		l.late++
	}
}

// seconds gives the number of served clients in each complete second.
func (l *leavers) seconds() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]int, l.lasts/time.Second)
	for _, at := range l.served {
		if s := int(at / time.Second); s < len(all) {
			all[s]++
		}
	}
	return all
}

// excess gives the largest number of requests beyond the rate at the service: since the start,
// and in any interval.
func (l *leavers) excess() (since, interval float64) {
	l.seen.mu.Lock()
	at := slices.Clone(l.seen.at)
	l.seen.mu.Unlock()
	slices.Sort(at)
	began, least := l.seen.start.Add(l.began.Sub(l.seen.start)).UnixNano(), 0.0
	for n, a := range at {
		over := float64(n+1) - float64(l.rate)*time.Duration(a-began).Seconds()
		if n == 0 {
			since, least = over, over-1
		}
		since, interval = max(since, over), max(interval, over-least)
		least = min(least, over)
	}
	return since, interval
}

// judge checks that each interval of some seconds has nine tenths of the limit, and that no
// request is early. The first interval, in which the clients arrive, does not count.
func (l *leavers) judge(t *testing.T, window int) {
	t.Helper()
	seconds := l.seconds()
	since, interval := l.excess()
	total, last := 0, 0
	for s, n := range seconds {
		total, last = total+n, last+n
		if s >= window {
			last -= seconds[s-window]
		}
		if s >= window && last*10 < l.rate*window*9 {
			t.Errorf("in the %d seconds to second %d %d clients were served, want 90 %% of %d", window, s, last, l.rate*window)
		}
	}
	t.Logf("%s %d/s, %d instances, %d clients of %v for %v: served in the worst second %d, in all %d of %d, with less than 20 ms left %d; beyond the rate since the start %.0f, in any interval %.0f, seen by the service %d; answers %v, fallbacks %v; by second %v",
		l.algorithm, l.rate, l.instances, l.clients, l.patience, l.lasts, slices.Min(seconds[1:]), total, l.rate*len(seconds), l.late, since, interval, len(l.seen.at), l.status, l.fallbacks(t), seconds)
	if since > float64(l.atOnce()) {
		t.Errorf("the service saw %.0f requests more than %d a second admit since the start, want at most %d", since, l.rate, l.atOnce())
	}
	// A request that departs in time may arrive late, so the next ones seem to follow too fast.
	if most := float64(l.rate + 1); interval > most {
		t.Errorf("the service saw %.0f requests more than %d a second in an interval, want at most %.0f", interval, l.rate, most)
	}
}

// fallbacks counts the decisions that the store did not make in time. Departures that it booked
// for them are lost.
func (l *leavers) fallbacks(t *testing.T) (all float64) {
	t.Helper()
	for _, i := range l.servers {
		_, text := get(t, "http://"+i.Health+"/metrics")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "headgate_fallbacks_total{") || strings.HasPrefix(line, "headgate_store_failures_total") {
				_, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				n, err := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64)
				if err != nil {
					t.Errorf("%q: %v", line, err)
				}
				all += n
			}
		}
	}
	return all
}

func (l *leavers) run(t *testing.T, window int) {
	t.Helper()
	l.start(t)
	l.crowd(t)
	l.judge(t, window)
}

// TestCrowdThatLeavesAProxy is the small form of the attack; make soak runs the full size.
func TestCrowdThatLeavesAProxy(t *testing.T) {
	t.Parallel()
	l := leavers{algorithm: "token_bucket", instances: 1, clients: 250, rate: 20, maxWaiters: 100, patience: time.Second, lasts: 5 * time.Second, again: time.Second}
	l.run(t, 5)
}
