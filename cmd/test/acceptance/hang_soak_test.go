//go:build soak

package acceptance

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// deafService is a service that answers nothing. It counts its requests, and those that it has at once.
type deafService struct {
	mu       sync.Mutex
	here     map[*http.Request]bool
	all      int
	together int
}

func (s *deafService) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	others := maps.Clone(s.here)
	s.here[r] = true
	s.all++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.here, r)
	}()
	go func() { // A service learns late that the proxy has left. A request that is here half a second later has not left.
		<-time.After(500 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		maps.DeleteFunc(others, func(other *http.Request, _ bool) bool { return !s.here[other] })
		s.together = max(s.together, len(others)+1)
	}()
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		<-r.Context().Done()
	}
}

// counts returns the counts so far, and begins the count of requests at once anew.
func (s *deafService) counts() (all, together int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, together, s.together = s.all, s.together, 0
	return all, together
}

// slowly is a body of a client that sends a byte each 100 ms, until its request ends.
type slowly struct{ ctx context.Context }

func (b slowly) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return copy(p, "a"), nil
	}
}

// patient is what one client saw.
type patient struct {
	sent   time.Duration // since the begin
	wait   time.Duration
	status int
}

// TestSoakServiceHangs measures 12 s of 30 requests a second to a service that answers nothing, on both data planes. In the second
// kind of round, each third client sends its body slowly once the hang is known, and its wait does not count.
func TestSoakServiceHangs(t *testing.T) {
	for _, plane := range []string{"standard", "fast"} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(plane, ", slow bodies ", slow), func(t *testing.T) { measureHang(t, plane, slow) })
		}
	}
}

func measureHang(t *testing.T, plane string, slow bool) {
	t.Helper()
	s := &deafService{here: map[*http.Request]bool{}}
	behind := httptest.NewServer(s)
	t.Cleanup(behind.CloseClientConnections)
	t.Cleanup(behind.Close)
	i := launch(t, file(t, fmt.Sprintf(overloadConfiguration+"  data_plane: %s\n  upstream_timeout: 2s\n", "concurrency: 4, deadline: 1s",
		"192.0.2.1", behind.URL, plane)+adminAnywhere))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(client.CloseIdleConnections)
	const every, lasts, known = time.Second / 30, 12 * time.Second, 2500 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var all []patient
	var clients sync.WaitGroup
	began, tick, first := time.Now(), time.NewTicker(every), true
	defer tick.Stop()
	for n := 0; time.Since(began) < lasts; n++ {
		if first && time.Since(began) > known {
			s.counts() // The first four have left.
			first = false
		}
		clients.Go(func() {
			o := patient{sent: time.Since(began)}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			method, body, sends := http.MethodGet, io.Reader(http.NoBody), slow && n%3 == 0 && o.sent > known
			if sends { // Its refusal waits for its body: see docs/throttling.md.
				method, body = http.MethodPost, slowly{ctx}
				time.AfterFunc(5*time.Second, cancel)
			}
			req, err := http.NewRequestWithContext(ctx, method, "http://"+i.Proxy+"/", body)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(req)
			switch {
			case sends:
				if err == nil {
					_ = resp.Body.Close()
				}
				return
			case err != nil:
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			o.wait, o.status = time.Since(began)-o.sent, resp.StatusCode
			mu.Lock()
			defer mu.Unlock()
			all = append(all, o)
		})
		<-tick.C
	}
	clients.Wait()
	served, together := s.counts()
	statuses, waits, late := map[int]int{}, []time.Duration(nil), time.Duration(0)
	for _, o := range all {
		statuses[o.status]++
		if o.status == http.StatusServiceUnavailable {
			if waits = append(waits, o.wait); o.sent > known {
				late = max(late, o.wait)
			}
		}
	}
	slices.Sort(waits)
	if len(waits) == 0 {
		t.Fatalf("no request is refused: %v", statuses)
	}
	t.Logf("%d requests, statuses %v: 503 after a median of %v and at most %v; at most %v after the first %v; %d requests at the service, at most %d at once after the first %v",
		len(all), statuses, waits[len(waits)/2], waits[len(waits)-1], late, known, served, together, known)
	if together > 1 {
		t.Errorf("the service had %d requests at once in the hang", together)
	}
	if median := waits[len(waits)/2]; median > 100*time.Millisecond {
		t.Errorf("a refused request waits for %v in the median, want a tenth of its deadline at most", median)
	}
}
