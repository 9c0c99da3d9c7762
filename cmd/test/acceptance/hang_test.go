package acceptance

import (
	"context"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestServiceHangs: a service with four places answers nothing. Once that is known, a request waits for a
// tenth of its deadline at most, and the service gets one request at a time until it answers.
func TestServiceHangs(t *testing.T) {
	t.Parallel()
	s := startThrottled(t, "concurrency: 4, deadline: 1s", "192.0.2.1")
	ctx, leave := context.WithCancel(t.Context())
	for range 4 {
		go s.status(ctx)
		s.arrives("/ sheddable_plus true")
	}
	eventually(t, "a hang", func() bool {
		s.status(t.Context())
		return metric(t, s.instance, "headgate_throttle_hung") == 1
	})

	// The bound is 100 ms, and the rest is for a busy machine. Without the rule, each request waits for 1 s.
	var waits []time.Duration
	for range 11 {
		sent := time.Now()
		if status := s.status(t.Context()); status != http.StatusServiceUnavailable {
			t.Errorf("a request gets %d in the hang", status)
		}
		waits = append(waits, time.Since(sent))
	}
	slices.Sort(waits)
	if median := waits[len(waits)/2]; median > 500*time.Millisecond {
		t.Errorf("refused requests wait for %v, in the median", median)
	}

	leave() // The four clients give up, so the service has four places.
	eventually(t, "an empty service", func() bool { return metric(t, s.instance, "headgate_throttle_in_flight") == 0 })
	statuses := make(chan int, 10)
	go func() { statuses <- s.status(t.Context()) }()
	s.arrives("/ sheddable_plus true")
	for range 3 {
		if status := s.status(t.Context()); status != http.StatusServiceUnavailable {
			t.Errorf("a request beside the probe gets %d", status)
		}
	}
	for range 4 + 1 + 4 { // The service answers again, also the requests whose clients have left.
		s.gate.open <- struct{}{}
	}
	if status := <-statuses; status != http.StatusOK {
		t.Errorf("the probe gets %d", status)
	}
	for range 4 {
		go func() { statuses <- s.status(t.Context()) }()
	}
	for range 4 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("after the hang, a request gets %d", status)
		}
	}
}

// status sends a request, and returns the status of its answer, or 0.
func (s *throttled) status(ctx context.Context) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Proxy+"/", http.NoBody)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
