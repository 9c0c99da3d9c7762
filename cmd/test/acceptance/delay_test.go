package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// crowd is a set of callers that send requests at once and may leave early.
type crowd struct {
	t      *testing.T
	url    string
	client *http.Client
	all    sync.WaitGroup

	mu       sync.Mutex
	statuses map[int]int // answers by status; 0 counts the callers that left
}

func newCrowd(t *testing.T, i *instance) *crowd {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 2000}
	t.Cleanup(transport.CloseIdleConnections)
	return &crowd{t: t, url: "http://" + i.Proxy + "/", client: &http.Client{Transport: transport}, statuses: map[int]int{}}
}

// ask adds a caller, which leaves when ctx ends. The request has the caller's number.
func (c *crowd) ask(ctx context.Context, number int) {
	c.all.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
		if err != nil {
			c.t.Error(err)
			return
		}
		req.Header.Set("X-Number", strconv.Itoa(number))
		status := 0
		resp, err := c.client.Do(req)
		switch {
		case err == nil:
			status = resp.StatusCode
			resp.Body.Close()
		case ctx.Err() == nil:
			c.t.Errorf("caller %d: %v", number, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.statuses[status]++
	})
}

// departures gives the departures of the log's requests with a verdict, in the order of the
// decisions.
func departures(t *testing.T, i *instance, verdicts ...string) []int64 {
	t.Helper()
	var all []int64
	for _, line := range i.lines() {
		if line.Msg != "decision" || !slices.Contains(verdicts, line.Verdict) {
			continue
		}
		var wait time.Duration
		if line.RetryAfter != "" {
			var err error
			if wait, err = time.ParseDuration(line.RetryAfter); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, line.At+int64(wait))
	}
	return all
}

// waiters waits until n requests wait for their departure.
func waiters(t *testing.T, i *instance, n float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%v requests to wait", n), func() bool { return metric(t, i, "headgate_waiting") == n })
}

const delayConfiguration = `version: 1
max_memory: 16MiB
log: {decisions: all}
rules:
  - name: steady
    key: [all]
    algorithm: ALGORITHM
    limits: ["LIMIT"]
    burst: BURST
    on_exceed: {action: delay, max_wait: MAX, max_waiters: WAITERS}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
`

func delaying(algorithm, limit string, burst int, maxWait string, waiters int) string {
	return strings.NewReplacer("ALGORITHM", algorithm, "LIMIT", limit, "BURST", strconv.Itoa(burst), "MAX", maxWait,
		"WAITERS", strconv.Itoa(waiters)).Replace(delayConfiguration)
}

// TestDelaySpaces sends twelve requests at once; two may depart at once. The others depart a
// tenth of a second apart, and no request reaches the service before its departure.
func TestDelaySpaces(t *testing.T) {
	t.Parallel()
	upstream := &arrivals{start: time.Now()}
	behind := httptest.NewServer(upstream)
	defer behind.Close()
	i := start(t, delaying("token_bucket", "10/s", 2, "10s", 100), behind.URL)
	callers := newCrowd(t, i)
	began := time.Now()
	for n := range 12 {
		callers.ask(t.Context(), n)
	}
	callers.all.Wait()
	if callers.statuses[http.StatusOK] != 12 {
		t.Fatalf("answers by status: %v, want 12 with 200", callers.statuses)
	}
	eventually(t, "the log of twelve decisions", func() bool { return len(departures(t, i, "allow", "wait")) == 12 })
	booked := departures(t, i, "allow", "wait")
	slices.Sort(booked)
	slices.Sort(upstream.at)
	for n := range booked {
		since := time.Duration(booked[n] - booked[0])
		if n > 1 && since < time.Duration(n-1)*100*time.Millisecond {
			t.Errorf("departure %d is booked %v after the first, want at least %v", n+1, since, time.Duration(n-1)*100*time.Millisecond)
		}
		// The first decision is later than began, so no departure can seem late by this clock.
		if arrived := time.Duration(upstream.at[n] - upstream.start.Add(began.Sub(upstream.start)).UnixNano()); arrived < since {
			t.Errorf("arrival %d comes %v after the start, before its departure at %v", n+1, arrived, since)
		}
	}
}

// TestDelayedClientLeaves: a waiting client disconnects. Its departure is free again, and the
// service does not get its request.
func TestDelayedClientLeaves(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"token_bucket", "leaky_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			upstream := &arrivals{start: time.Now()}
			behind := httptest.NewServer(upstream)
			defer behind.Close()
			i := start(t, delaying(algorithm, "1/10s", 5, "1m", 100), behind.URL)
			url := "http://" + i.Proxy + "/"
			first := 1
			if algorithm == "token_bucket" {
				first = 5
			}
			for range first {
				ask(t, url)
			}
			for n := range 3 {
				givesUp(t, "0.2", url)
				waiters(t, i, 0)
				eventually(t, "the log", func() bool { return len(departures(t, i, "wait")) == n+1 })
			}
			// Each of the three requests got the first departure again, ten seconds after the last request.
			booked := departures(t, i, "allow", "wait")
			for _, at := range booked[first:] {
				if ahead := time.Duration(at - booked[0]); ahead > 10*time.Second {
					t.Errorf("one that leaves is to depart %v after the first, want at most 10s", ahead)
				}
			}
			if len(upstream.at) != first {
				t.Errorf("%d requests reached the service, want %d", len(upstream.at), first)
			}
			if n := metric(t, i, `headgate_proxy_requests_total{code="canceled"}`); n != 3 {
				t.Errorf("%v requests are counted as canceled, want 3", n)
			}
		})
	}
}

// TestDelayHandsDeparturesOn: when waiters leave, later waiters move up. New requests take the
// departures at the end. Each departure is used once, and no new departure is made.
func TestDelayHandsDeparturesOn(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"token_bucket", "leaky_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			behind := httptest.NewServer(page())
			defer behind.Close()
			burst := map[string]int{"token_bucket": 1, "leaky_bucket": 20}[algorithm]
			i := start(t, delaying(algorithm, "1/10s", burst, "10m", 100), behind.URL)
			ask(t, "http://"+i.Proxy+"/")
			callers := newCrowd(t, i)
			impatient, leave := context.WithCancel(t.Context())
			defer leave()
			patient, end := context.WithCancel(t.Context())
			defer callers.all.Wait()
			defer end()
			for n := range 8 {
				ctx := patient
				if n < 4 {
					ctx = impatient
				}
				callers.ask(ctx, n)
				waiters(t, i, float64(n+1))
			}
			leave()
			waiters(t, i, 4)
			for n := range 4 {
				callers.ask(patient, 8+n)
				waiters(t, i, float64(5+n))
			}
			eventually(t, "the log", func() bool { return len(departures(t, i, "wait")) == 12 })
			booked := departures(t, i, "wait")
			for n := 1; n < 8; n++ {
				if apart := time.Duration(booked[n] - booked[n-1]); apart < 10*time.Second {
					t.Errorf("departures %d and %d are %v apart, want at least 10s", n, n+1, apart)
				}
			}
			for n, taken := range booked[8:] {
				// A reused departure is computed by the clock of the process.
				if off := time.Duration(taken - booked[4+n]).Abs(); off > time.Second {
					t.Errorf("newcomer %d departs %v off the departure that was given up", n+1, off)
				}
			}
		})
	}
}

// TestDelayRefuses: a request is refused at once when the queue is full or its wait would be too
// long.
func TestDelayRefuses(t *testing.T) {
	t.Parallel()
	behind := httptest.NewServer(page())
	defer behind.Close()
	i := start(t, delaying("token_bucket", "1/1m", 1, "170s", 3), behind.URL)
	callers := newCrowd(t, i)
	defer callers.all.Wait()
	url := "http://" + i.Proxy + "/"
	atOnce := []string{"--max-time", "20", url} // The next departure is a minute ahead.
	if got := ask(t, atOnce...); got.status != http.StatusOK {
		t.Fatalf("the first is answered with %d", got.status)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	callers.ask(ctx, 1)
	callers.ask(ctx, 2)
	waiters(t, i, 2)
	got := ask(t, atOnce...)
	problem(t, got.body, map[string]any{"status": 429, "reason": "wait_too_long"})
	if after := got.header.Get("Retry-After"); after != "10" && after != "9" {
		t.Errorf("who would wait for 180 s, with 170 allowed, is to come again after %s s, want 10", after)
	}
	replace(t, i.path, []byte(fmt.Sprintf(delaying("token_bucket", "1/1m", 1, "10m", 3), behind.URL)+adminAnywhere))
	i.hangup(t)
	one, leaveOne := context.WithCancel(t.Context())
	defer leaveOne()
	callers.ask(one, 3)
	waiters(t, i, 3)
	problem(t, ask(t, atOnce...).body, map[string]any{"status": 503, "reason": "too_many_waiters"})
	leaveOne()
	waiters(t, i, 2)
	callers.ask(ctx, 4) // This caller gets the place of the one that left.
	waiters(t, i, 3)
	problem(t, ask(t, atOnce...).body, map[string]any{"status": 503, "reason": "too_many_waiters"})
	leave()
	waiters(t, i, 0)
}

// numbered is an upstream that records the numbers of the callers.
type numbered struct {
	arrivals

	seen map[string]int // guarded by arrivals.mu
}

func (n *numbered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.seen[r.Header.Get("X-Number")]++
	n.mu.Unlock()
	n.arrivals.ServeHTTP(w, r)
}

// TestThousandWaiters: of a thousand waiting requests, half leave. No other request is early or
// lost, and the requests that left use nothing.
func TestThousandWaiters(t *testing.T) {
	t.Parallel()
	const rate, callersInAll, patient = 250, 1000, 500
	upstream := &numbered{arrivals: arrivals{start: time.Now()}, seen: map[string]int{}}
	behind := httptest.NewServer(upstream)
	defer behind.Close()
	i := start(t, delaying("token_bucket", fmt.Sprintf("%d/s", rate), 1, "1m", callersInAll), behind.URL)
	callers := newCrowd(t, i)
	began := time.Now()
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	for n := range callersInAll {
		if n%2 == 0 {
			callers.ask(t.Context(), n)
		} else {
			callers.ask(leaving, n)
		}
	}
	eventually(t, "a thousand decisions", func() bool {
		return decisions(t, i, "steady", "enforce", "wait", "scheduled") > callersInAll-10
	})
	leave()
	callers.all.Wait()
	waiters(t, i, 0)
	left := callers.statuses[0]
	t.Logf("%v after %v", callers.statuses, time.Since(began))
	if left < patient/10 || callers.statuses[http.StatusOK] != callersInAll-left {
		t.Errorf("answers by status: %v, want %d with 200 and a good part of %d that left", callers.statuses, callersInAll-left, patient)
	}
	for n := range callersInAll {
		seen := upstream.seen[strconv.Itoa(n)]
		if seen > 1 || n%2 == 0 && seen != 1 {
			t.Errorf("the service saw caller %d %d times", n, seen)
		}
	}
	slices.Sort(upstream.at)
	from := upstream.start.Add(began.Sub(upstream.start)).UnixNano()
	for n, at := range upstream.at {
		if least := time.Duration(n) * time.Second / rate; time.Duration(at-from) < least {
			t.Errorf("arrival %d comes after %v, before any %d could depart at %v", n+1, time.Duration(at-from), n+1, least)
		}
	}
	// No request waits any more, and every place is free. At two departures a second the line is full
	// however slowly a busy machine starts a thousand callers.
	replace(t, i.path, []byte(fmt.Sprintf(delaying("token_bucket", "2/s", 1, "10m", callersInAll), behind.URL)+adminAnywhere))
	i.hangup(t)
	again, stop := context.WithCancel(t.Context())
	for n := range callersInAll {
		callers.ask(again, n)
	}
	eventually(t, "all places to be taken again", func() bool { return metric(t, i, "headgate_waiting") > callersInAll*3/4 })
	stop()
	callers.all.Wait()
	waiters(t, i, 0)
	if n := decisions(t, i, "steady", "enforce", "deny", "too_many_waiters"); n > 0 {
		t.Errorf("%v were refused for want of a place", n)
	}
}
