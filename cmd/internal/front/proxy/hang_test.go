package proxy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/guard"

	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/throttle"
)

// set is a guard.Clock that moves only by advance. It has one alarm.
type set struct {
	mu   sync.Mutex
	now  time.Duration
	due  time.Duration // of the alarm; 0 when it is not set
	ring func()
}

func (c *set) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *set) Alarm(ring func()) guard.Alarm {
	c.ring = ring
	return c
}

func (c *set) Reset(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = c.now + d
	return true
}

func (c *set) Stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = 0
	return true
}

// advance moves the clock, and rings the alarm as often as it is due.
func (c *set) advance(d time.Duration) {
	c.mu.Lock()
	until := c.now + d
	for c.due != 0 && c.due <= until {
		c.now, c.due = max(c.now, c.due), 0
		c.mu.Unlock()
		c.ring()
		c.mu.Lock()
	}
	c.now = until
	c.mu.Unlock()
}

// hanging is a proxy with a throttle of four places, by a clock of its own, before a service.
type hanging struct {
	*front

	clock *set
	stage *throttler.Stage
}

func hangs(t *testing.T, service http.HandlerFunc) *hanging {
	t.Helper()
	clock := new(set)
	stage, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 4, Deadline: time.Second}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	p := beforeHandler(t, service, func(c *Config) { c.Guard = g })
	_, at := start(t, p, nil, ServerConfig{})
	return &hanging{&front{p, "http://" + at, httpClient(t, nil, http1Only)}, clock, stage}
}

func (h *hanging) hung() bool {
	_, stats := h.stage.Load()
	return stats.Hung
}

// TestDownloadIsNoHang: a service that sends the header of a long answer at once has answered. While
// four downloads have all places, another request waits for its whole deadline, and has the place of the first that ends.
func TestDownloadIsNoHang(t *testing.T) {
	begin := strings.Repeat("begin", 20_000) // net/http's reverse proxy keeps a short one back.
	for name, length := range map[string]string{"with a length": strconv.Itoa(len(begin) + 2), "in chunks": ""} {
		t.Run(name, func(t *testing.T) {
			rest := make(chan struct{})
			finish := sync.OnceFunc(func() { close(rest) })
			defer finish() // A test that fails leaves downloads behind.
			h := hangs(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/download" {
					return
				}
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_, _ = io.WriteString(w, begin)
				_ = http.NewResponseController(w).Flush()
				<-rest
				_, _ = io.WriteString(w, "ok")
			})
			ends := make(chan string)
			for range 4 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/download", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				read := reader(t, h.client, req)
				read(len(begin) / 2)
				go func() { ends <- read(len(begin)/2 + 2) }()
			}
			for range 10 { // Ten seconds.
				h.clock.advance(100 * time.Millisecond)
				status := make(chan int, 1)
				go func() { status <- h.statusOf(t, "/") }()
				eventually(t, "a queued request", func() bool {
					l, _ := h.stage.Load()
					return l.Queued[throttle.CriticalPlus] == 1
				})
				h.clock.advance(899 * time.Millisecond)
				if h.hung() {
					t.Fatal("four downloads are a hang")
				}
				select {
				case got := <-status:
					t.Fatalf("a request gets %d before its deadline", got)
				default:
				}
				h.clock.advance(101 * time.Millisecond)
				if got := <-status; got != http.StatusServiceUnavailable {
					t.Errorf("a request gets %d after its deadline", got)
				}
			}
			status := make(chan int, 1)
			go func() { status <- h.statusOf(t, "/") }()
			rest <- struct{}{}
			if got := <-status; got != http.StatusOK {
				t.Errorf("after a download, a request gets %d", got)
			}
			finish()
			for range 4 {
				if text := <-ends; !strings.HasSuffix(text, "ok") {
					t.Errorf("a download ends with %.10q", text)
				}
			}
		})
	}
}

// statusOf sends a request, and returns the status of its answer.
func (h *hanging) statusOf(t *testing.T, path string) int {
	t.Helper()
	got, text := h.get(t, path)
	if got.StatusCode == http.StatusServiceUnavailable && got.Header.Get("Retry-After") == "" {
		t.Error(fmt.Sprint("a refusal without Retry-After: ", text))
	}
	return got.StatusCode
}

// deaf is a service that answers nothing until it recovers. It counts the requests that it has at once.
type deaf struct {
	*testing.T

	arrived   chan string
	recovered chan struct{}
	mu        sync.Mutex
	here      map[*http.Request]bool
	strict    bool // at most one request at once
}

func (d *deaf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	others := maps.Clone(d.here)
	d.here[r] = true
	strict := d.strict
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.here, r)
		d.mu.Unlock()
	}()
	for other := range others {
		if !strict {
			break
		}
		select {
		case <-other.Context().Done(): // The service learns late that the proxy has left.
		case <-time.After(10 * time.Second):
			d.Errorf("%s comes while %s is here", r.URL.Path, other.URL.Path)
		}
	}
	d.arrived <- r.URL.Path
	read := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, r.Body); close(read) }()
	select {
	case <-r.Context().Done():
	case <-read:
		select {
		case <-r.Context().Done():
		case <-d.recovered:
			_, _ = io.WriteString(w, "done")
		}
	}
	<-read
}

// TestOneProbeAtATime: in a hang, the service has one request at a time. A client that sends its body slowly does not
// keep others out.
func TestOneProbeAtATime(t *testing.T) {
	d := &deaf{T: t, arrived: make(chan string, 10), recovered: make(chan struct{}), here: map[*http.Request]bool{}}
	h := hangs(t, d.ServeHTTP)
	statuses := make(chan string, 10)
	arrives := func(want string) {
		t.Helper()
		select {
		case got := <-d.arrived:
			if got != want {
				t.Fatalf("%s reaches the service, want %s", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("nothing reaches the service, want %s", want)
		}
	}
	holds := func(inFlight, queued int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d requests in flight and %d in the queue", inFlight, queued), func() bool {
			l, _ := h.stage.Load()
			return l.InFlight == inFlight && l.Queued[throttle.CriticalPlus] == queued
		})
	}
	send := func(ctx context.Context, method, path string, body io.Reader) {
		req, err := http.NewRequestWithContext(ctx, method, h.url+path, body)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := h.client.Do(req)
		if err != nil {
			return // The client has left.
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && !isSpread(resp.Header.Get("Retry-After")) {
			t.Errorf("%s: Retry-After is %q", path, resp.Header.Get("Retry-After"))
		}
		statuses <- fmt.Sprint(path, " ", resp.StatusCode)
	}
	gets := func(wants ...string) { // in any order
		t.Helper()
		var answers []string
		for range wants {
			select {
			case got := <-statuses:
				answers = append(answers, got)
			case <-time.After(10 * time.Second):
				t.Fatalf("answers %q, want %q", answers, wants)
			}
		}
		if slices.Sort(answers); !slices.Equal(answers, wants) {
			t.Fatalf("answers %q, want %q", answers, wants)
		}
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range 4 {
		go send(ctx, http.MethodGet, "/first", http.NoBody)
		arrives("/first")
	}
	h.clock.advance(1001 * time.Millisecond)
	leave()
	holds(0, 0)
	d.mu.Lock()
	d.strict = true
	d.mu.Unlock()

	for n := range 3 { // Clients that send one byte.
		in, out := io.Pipe()
		t.Cleanup(func() { _ = out.Close() })
		path := fmt.Sprint("/slow", n)
		go send(t.Context(), http.MethodPost, path, in)
		_, _ = out.Write([]byte("a"))
		arrives(path)
		holds(1, 0)
		h.clock.advance(30 * time.Millisecond)
		next := fmt.Sprint("/hung", n)
		go send(t.Context(), http.MethodGet, next, http.NoBody)
		holds(1, 1)
		h.clock.advance(31 * time.Millisecond) // 61 of 62.5 ms.
		holds(1, 1)
		h.clock.advance(2 * time.Millisecond)
		gets(path + " 503")
		arrives(next)
		holds(1, 0)
		h.clock.advance(3 * time.Second)
		gets(next + " 503")
		holds(0, 0)
	}

	go send(t.Context(), http.MethodGet, "/probe", http.NoBody)
	arrives("/probe")
	holds(1, 0)
	for range 28 {
		go send(t.Context(), http.MethodGet, "/beside", http.NoBody)
		holds(1, 1)
		h.clock.advance(100 * time.Millisecond)
		gets("/beside 503")
	}
	go send(t.Context(), http.MethodGet, "/last", http.NoBody)
	holds(1, 1)
	h.clock.advance(50 * time.Millisecond)
	close(d.recovered)
	gets("/last 200", "/probe 200")
	if h.hung() {
		t.Error("the service hangs after its answer")
	}
}
