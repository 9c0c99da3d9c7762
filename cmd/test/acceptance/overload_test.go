package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

const overloadConfiguration = `version: 1
rules: []
throttle: {%s}
identity: {trusted_proxies: [%s]}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%s"
`

// gate is a service that holds each request until the test lets it go, and tells their order.
type gate struct {
	arrived chan string // the path, the criticality, and whether a time is left
	open    chan struct{}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	left := r.Header.Get("Headgate-Timeout")
	g.arrived <- fmt.Sprint(r.URL.Path, " ", r.Header.Get("Headgate-Criticality"), " ", left != "")
	<-g.open
	w.Header().Set("Headgate-Work", "cpu=1ms")
	w.Header().Set("Trailer", "X-Sum")
	fmt.Fprintln(w, "fine")
	w.Header().Set("X-Sum", "1")
	w.Header().Set(http.TrailerPrefix+"Headgate-Work", "cpu=2ms")
}

// throttled is an instance with a throttle before a gate.
type throttled struct {
	*instance

	t       *testing.T
	gate    *gate
	service *httptest.Server
	answers chan reply
}

func startThrottled(t *testing.T, settings, trusted string) *throttled {
	t.Helper()
	g := &gate{arrived: make(chan string, 10), open: make(chan struct{}, 10)}
	behind := httptest.NewServer(g)
	t.Cleanup(func() {
		close(g.open) // A test that fails leaves requests behind.
		behind.Close()
	})
	i := launch(t, file(t, fmt.Sprintf(overloadConfiguration, settings, trusted, behind.URL)+adminAnywhere))
	return &throttled{instance: i, t: t, gate: g, service: behind, answers: make(chan reply, 10)}
}

// send sends a request without waiting for its answer.
func (s *throttled) send(path string, headers ...string) {
	go func() {
		answer, _ := get(s.t, "http://"+s.Proxy+path, headers...)
		s.answers <- answer
	}()
}

// arrives checks which request reaches the service next.
func (s *throttled) arrives(want string) {
	s.t.Helper()
	select {
	case got := <-s.gate.arrived:
		if got != want {
			s.t.Errorf("%q reaches the service, want %q", got, want)
		}
	case <-time.After(patience):
		s.t.Fatalf("nothing reaches the service, want %q: %s", want, s.text())
	}
}

// queued waits until that many requests of a class are queued.
func (s *throttled) queued(class string, n float64) {
	s.t.Helper()
	eventually(s.t, fmt.Sprint(n, " queued requests of ", class), func() bool {
		return metric(s.t, s.instance, `headgate_throttle_queued{criticality="`+class+`"}`) == n
	})
}

// answer waits for an answer.
func (s *throttled) answer() reply {
	s.t.Helper()
	select {
	case a := <-s.answers:
		return a
	case <-time.After(patience):
		s.t.Fatalf("no answer: %s", s.text())
		return reply{}
	}
}

// answered checks n answers, which the service's report must not reach.
func (s *throttled) answered(n int) {
	s.t.Helper()
	for range n {
		if a := s.answer(); a.StatusCode != http.StatusOK || a.Header.Get("Headgate-Work") != "" || a.Trailer.Get("Headgate-Work") != "" {
			s.t.Errorf("the answer is %d %v %v", a.StatusCode, a.Header, a.Trailer)
		}
	}
}

// TestOverload: with one request at the service, others wait by importance. A reload midway
// raises the limit, and the requests keep their places.
func TestOverload(t *testing.T) {
	t.Parallel()
	const settings = "concurrency: %d, deadline: 1m, max_deadline: 2m, queue: {max_waiters: 3}"
	s := startThrottled(t, fmt.Sprintf(settings, 1), "127.0.0.1")
	s.send("/first")
	s.arrives("/first sheddable_plus true")
	s.send("/batch", "Headgate-Criticality", "sheddable")
	s.queued("sheddable", 1)
	s.send("/usual")
	s.queued("sheddable_plus", 1)
	s.send("/payment", "Headgate-Criticality", "critical", "Headgate-Timeout", "90000")
	s.queued("critical", 1)
	s.send("/late", "Headgate-Criticality", "sheddable") // The queue is full.
	refused := s.answer()
	carries(t, "the refusal", refused.Header, []string{"Content-Type: application/problem+json"})
	if refused.StatusCode != http.StatusServiceUnavailable || !isSpread(refused.Header) {
		t.Errorf("the refusal has status %d and Retry-After %q", refused.StatusCode, refused.Header.Get("Retry-After"))
	}
	s.ctlThrottle(t)
	next := fmt.Sprintf(overloadConfiguration, fmt.Sprintf(settings, 2), "127.0.0.1", s.service.URL) + adminAnywhere
	replace(t, s.path, []byte(next))
	s.hangup(t)
	s.arrives("/payment critical true") // The reload brings the new limit to the queue.
	s.send("/new", "Headgate-Criticality", "critical_plus")
	s.queued("critical_plus", 1)
	s.gate.open <- struct{}{}
	s.arrives("/new critical_plus true")
	for _, want := range []string{"/usual sheddable_plus true", "/batch sheddable true"} {
		s.gate.open <- struct{}{}
		s.arrives(want)
	}
	s.gate.open <- struct{}{}
	s.gate.open <- struct{}{}
	s.answered(5)
	eventually(t, "no request in flight", func() bool { return metric(t, s.instance, "headgate_throttle_in_flight") == 0 })
	if n := metric(t, s.instance, `headgate_throttle_refused_total{criticality="sheddable",reason="throttle_full"}`); n != 1 {
		t.Errorf("%v refusals are counted, want 1", n)
	}
}

// ctlThrottle checks ctl throttle with one request at the service, three queued and one refused.
func (s *throttled) ctlThrottle(t *testing.T) {
	t.Helper()
	status, table, faults := call(t, "ctl", "throttle", "--admin", s.instance.Admin)
	if status != 0 {
		t.Fatalf("ctl throttle ends with %d: %s", status, faults)
	}
	said := strings.Join(strings.Fields(table), " ")
	for _, want := range []string{
		"enforce 1 of 1", "critical 1 0", "sheddable_plus 1 0", "sheddable 1 1", "throttle_full 1", "not compared yet",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("ctl throttle does not print %q:\n%s", want, table)
		}
	}
	var load struct {
		InFlight int            `json:"in_flight"`
		Queued   map[string]int `json:"queued"`
	}
	_, text, _ := call(t, "ctl", "throttle", "--json", "--admin", s.instance.Admin)
	if err := json.Unmarshal([]byte(text), &load); err != nil || load.InFlight != 1 || load.Queued["critical"] != 1 {
		t.Errorf("ctl throttle --json prints %s: %v", text, err)
	}
}

// TestOverloadTrustsNobody: without trusted peers, the class and the deadline of a client have no
// effect, and do not reach the service.
func TestOverloadTrustsNobody(t *testing.T) {
	t.Parallel()
	s := startThrottled(t, "concurrency: 1, criticality: sheddable", "192.0.2.1")
	s.send("/", "Headgate-Criticality", "critical_plus", "Headgate-Timeout", "1")
	s.arrives("/ sheddable true")
	s.gate.open <- struct{}{}
	s.answered(1)
}

// TestOverloadDeadline: a queued request is refused at its deadline, while the service is busy.
func TestOverloadDeadline(t *testing.T) {
	t.Parallel()
	s := startThrottled(t, "concurrency: 1, deadline: 200ms", "192.0.2.1")
	s.send("/first")
	s.arrives("/first sheddable_plus true")
	s.send("/second")
	if a := s.answer(); a.StatusCode != http.StatusServiceUnavailable || !isSpread(a.Header) {
		t.Errorf("the second request gets %d %v", a.StatusCode, a.Header)
	}
	s.gate.open <- struct{}{}
	s.answered(1)
}

// isSpread reports whether Retry-After is that of a refusal whose end is not known.
func isSpread(h http.Header) bool { return slices.Contains([]string{"1", "2"}, h.Get("Retry-After")) }
