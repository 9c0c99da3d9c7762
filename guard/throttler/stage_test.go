package throttler_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/throttle"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
)

// service is a handler behind a throttled guard, in a bubble.
type service struct {
	*testing.T

	stage   *throttler.Stage
	guard   *guard.Guard
	handler http.Handler
	began   time.Time

	mu  sync.Mutex
	log []string
}

const trustedPeer = "10.0.0.1:1234"

// newService makes a service whose requests take the time in their query, and report the work in it.
func newService(t *testing.T, c throttler.Config) *service {
	t.Helper()
	c.Identity = &rule.Identity{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	stage, err := throttler.New(c)
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{T: t, stage: stage, guard: g, began: time.Now()}
	s.handler = httplimit.New(g, httplimit.Options{})(http.HandlerFunc(s.serve))
	return s
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	call := ""
	if left := r.Header.Get("Grpc-Timeout"); left != "" {
		call = ", grpc-timeout " + left
	}
	s.notef("%s starts: %s, %s ms left%s", r.URL.Query().Get("name"), r.Header.Get(throttler.FieldCriticality),
		r.Header.Get(throttler.FieldTimeout), call)
	elapsed, _ := time.ParseDuration(r.URL.Query().Get("takes"))
	time.Sleep(elapsed) //nolint:forbidigo // In a bubble.
	if work := r.URL.Query().Get("work"); work != "" {
		w.Header().Set(throttler.FieldWork, "cpu="+work)
	}
	fmt.Fprintln(w, "done")
}

// notef writes a line with the time in milliseconds.
func (s *service) notef(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%d: ", time.Since(s.began).Milliseconds())+fmt.Sprintf(format, values...))
}

// send sends a request from a peer, with headers, in a goroutine.
func (s *service) send(name, takes, peer string, headers ...string) {
	s.sendTo("/", name, takes, peer, headers...)
}

// sendTo is send for a path.
func (s *service) sendTo(path, name, takes, peer string, headers ...string) {
	r := httptest.NewRequestWithContext(s.Context(), http.MethodGet, path+"?name="+name+"&takes="+takes+"&work=1ms", http.NoBody)
	r.RemoteAddr = peer
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	go s.receive(name, r)
	synctest.Wait()
}

func (s *service) receive(name string, r *http.Request) {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Header().Get(throttler.FieldWork) != "" {
		s.Error("the client gets the service's report")
	}
	text := ""
	if w.Code != http.StatusOK {
		after := w.Header().Get("Retry-After")
		if after == "2" {
			after = "1" // A refusal without a time says 1 or 2 by chance, so that clients do not return together.
		}
		text = ", retry after " + after + " s"
		if !strings.Contains(w.Body.String(), "temporary-reduced-capacity") {
			s.Errorf("the refusal is %s", w.Body.String())
		}
	}
	s.notef("%s gets %d%s", name, w.Code, text)
}

// tells compares the lines with the story. Goroutines that run at one time write in any order.
func (s *service) tells(story string) {
	s.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got, want := inOrder(s.log), inOrder(strings.Split(strings.TrimSpace(story), "\n"))
	if got != want {
		s.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// inOrder sorts lines by their times, and lines of one time by their texts.
func inOrder(lines []string) string {
	lines = slices.Clone(lines)
	slices.SortFunc(lines, func(a, b string) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
	})
	return strings.Join(lines, "\n")
}

// at is the time of a line, in milliseconds.
func at(line string) int {
	text, _, _ := strings.Cut(line, ":")
	ms, _ := strconv.Atoi(text)
	return ms
}

func oneAtATime() throttler.Config {
	return throttler.Config{Limits: throttler.Limits{Concurrency: 1, Deadline: 500 * time.Millisecond}, Class: throttle.SheddablePlus}
}

// TestOrderAndHeaders: a trusted peer states class and deadline, and others cannot. The service
// gets the class, and the time that is left after the wait.
func TestOrderAndHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, oneAtATime())
		s.send("first", "100ms", trustedPeer)
		s.send("liar", "10ms", "192.0.2.1:1", throttler.FieldCriticality, "critical_plus", throttler.FieldTimeout, "1")
		s.send("payment", "50ms", trustedPeer, throttler.FieldCriticality, "CRITICAL", throttler.FieldTimeout, "300")
		s.send("call", "50ms", "192.0.2.1:1", "Grpc-Timeout", "400m")
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: first starts: sheddable_plus, 500 ms left
100: first gets 200
100: payment starts: critical, 200 ms left
150: payment gets 200
150: liar starts: sheddable_plus, 350 ms left
160: liar gets 200
160: call starts: sheddable_plus, 240 ms left, grpc-timeout 240m
210: call gets 200`)
	})
}

// TestStatedTwice: of several lines of a header, the first may be that of a client whose request a trusted
// peer has forwarded. None of them counts.
func TestStatedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, oneAtATime())
		s.send("class", "1ms", trustedPeer, throttler.FieldCriticality, "critical_plus", throttler.FieldCriticality, "sheddable")
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.send("deadline", "1ms", trustedPeer, throttler.FieldTimeout, "400", throttler.FieldTimeout, "20")
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.send("call", "1ms", "192.0.2.1:1", "Grpc-Timeout", "400m", "Grpc-Timeout", "20m")
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.tells(`
0: class starts: sheddable_plus, 500 ms left
1: class gets 200
100: deadline starts: sheddable_plus, 500 ms left
101: deadline gets 200
200: call starts: sheddable_plus, 500 ms left
201: call gets 200`)
	})
}

// TestClasses: a request has the class of the first entry that it matches, unless a trusted peer states
// one. A path with an escape or a slash more is the same path to a service that ignores these.
func TestClasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oneAtATime()
		c.Classes = []throttler.Classified{
			{Match: rule.Match{Path: "/pay", Methods: []string{"GET"}}, Class: throttle.CriticalPlus},
			{Match: rule.Match{Headers: map[string]string{"X-Kind": "batch"}}, Class: throttle.Sheddable},
			{Match: rule.Match{Path: "/pay"}, Class: throttle.Sheddable},
		}
		s := newService(t, c)
		s.send("first", "100ms", trustedPeer)
		s.send("batch", "10ms", "192.0.2.1:1", "X-Kind", "batch")
		s.send("urgent", "10ms", trustedPeer, "X-Kind", "batch", throttler.FieldCriticality, "critical")
		s.send("liar", "10ms", "192.0.2.1:1", "X-Kind", "batch", throttler.FieldCriticality, "critical_plus")
		s.sendTo("/pay", "payment", "10ms", "192.0.2.1:1")
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: first starts: sheddable_plus, 500 ms left
100: first gets 200
100: payment starts: critical_plus, 400 ms left
110: payment gets 200
110: urgent starts: critical, 390 ms left
120: urgent gets 200
120: batch starts: sheddable, 380 ms left
130: batch gets 200
130: liar starts: sheddable, 370 ms left
140: liar gets 200`)
	})
}

// A grpc-timeout is forwarded less the wait, also one above MaxDeadline. In shadow it stays.
func TestCallTimeouts(t *testing.T) {
	for sent, want := range map[string]string{
		"1H": "3599900m", "99999999S": "3599999S", "300m": "200m", "0m": "", "1X": "", "": "", "100000n": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, oneAtATime())
			s.send("first", "100ms", trustedPeer)
			s.send("call", "1ms", "192.0.2.1:1", "Grpc-Timeout", sent)
			time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
			s.mu.Lock()
			defer s.mu.Unlock()
			got := ""
			for _, line := range s.log {
				if _, after, found := strings.Cut(line, "grpc-timeout "); found {
					got = after
				}
			}
			if got != want {
				t.Errorf("%q is forwarded as %q, want %q: %q", sent, got, want, s.log)
			}
		})
	}
}

// TestDeadlineInTheQueue: a request is refused when its deadline passes, although no other
// request has ended.
func TestDeadlineInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, oneAtATime())
		s.send("slow", "2s", trustedPeer)
		s.send("queued", "10ms", trustedPeer)
		time.Sleep(3 * time.Second) //nolint:forbidigo // In a bubble.
		s.send("next", "10ms", trustedPeer)
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: slow starts: sheddable_plus, 500 ms left
500: queued gets 503, retry after 1 s
2000: slow gets 200
3000: next starts: sheddable_plus, 500 ms left
3010: next gets 200`)
		if l, stats := s.stage.Load(); l.InFlight != 0 || stats.Refused[2][throttle.SheddablePlus] != 1 {
			t.Errorf("the load is %+v after %+v", l, stats)
		}
	})
}

// TestHang: when the service has answered nothing for the time of a deadline, a request waits for a part of
// its deadline only. A request that waits already is refused as soon.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oneAtATime()
		c.Deadline = time.Second
		s := newService(t, c)
		s.send("hung", "3s", trustedPeer)
		time.Sleep(990 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.send("before", "10ms", trustedPeer)
		time.Sleep(510 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.send("after", "10ms", trustedPeer)
		time.Sleep(1490 * time.Millisecond) //nolint:forbidigo // In a bubble.
		s.send("waits", "10ms", trustedPeer)
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: hung starts: sheddable_plus, 1000 ms left
1053: before gets 503, retry after 1 s
1563: after gets 503, retry after 1 s
3000: hung gets 200
3000: waits starts: sheddable_plus, 990 ms left
3010: waits gets 200`)
	})
}

// TestQueueIsFull: beyond MaxWaiters, a request takes the place of a less important one or is
// refused.
func TestQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oneAtATime()
		c.MaxWaiters = 1
		s := newService(t, c)
		s.send("first", "100ms", trustedPeer)
		s.send("batch", "10ms", trustedPeer)
		s.send("more", "10ms", trustedPeer)
		s.send("payment", "10ms", trustedPeer, throttler.FieldCriticality, "critical")
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: first starts: sheddable_plus, 500 ms left
0: more gets 503, retry after 1 s
0: batch gets 503, retry after 1 s
100: first gets 200
100: payment starts: critical, 400 ms left
110: payment gets 200`)
	})
}

// TestShadow: in mode Shadow nothing is delayed or refused, and the model counts.
func TestShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oneAtATime()
		c.Mode = guard.Shadow
		s := newService(t, c)
		s.send("first", "600ms", trustedPeer)
		s.send("second", "700ms", trustedPeer)
		time.Sleep(time.Second) //nolint:forbidigo // In a bubble.
		s.tells(`
0: first starts: sheddable_plus, 500 ms left
0: second starts: sheddable_plus, 500 ms left
600: first gets 200
700: second gets 200`)
		if l, stats := s.stage.Load(); l.InFlight != 0 || stats.Refused[2][throttle.SheddablePlus] != 1 {
			t.Errorf("the load is %+v after %+v", l, stats)
		}
	})
}

// TestStreams: a stream gives up its slot when it begins, unless CountStreams is set.
func TestStreams(t *testing.T) {
	for _, count := range []bool{false, true} {
		c := oneAtATime()
		c.CountStreams = count
		stage, err := throttler.New(c)
		if err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
		if err != nil {
			t.Fatal(err)
		}
		ticket := &guard.Ticket{Answer: &guard.Answer{}}
		if err := g.Admit(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, ticket); err != nil {
			t.Fatal(err)
		}
		ticket.Forward()
		ticket.Stream()
		if l, _ := stage.Load(); (l.InFlight == 1) != count {
			t.Errorf("CountStreams %v: %d in flight", count, l.InFlight)
		}
		ticket.Done(guard.Outcome{})
		if l, _ := stage.Load(); l.InFlight != 0 {
			t.Errorf("CountStreams %v: %d in flight at the end", count, l.InFlight)
		}
	}
}

// TestStreamsTeachNothing: after streams that lasted longer than any deadline, requests of their
// route are still admitted.
func TestStreamsTeachNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oneAtATime()
		c.CountStreams = true
		stage, err := throttler.New(c)
		if err != nil {
			t.Fatal(err)
		}
		g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			ticket := &guard.Ticket{Answer: &guard.Answer{}}
			if err := g.Admit(t.Context(), &headgate.Request{Method: "GET", Path: "/chat"}, ticket); err != nil {
				t.Fatal(err)
			}
			if ticket.Answer.Verdict != headgate.Allow {
				t.Fatalf("stream %d: %v", n, ticket.Answer.Closest().Decision.Reason)
			}
			ticket.Forward()
			ticket.Stream()
			time.Sleep(2 * time.Second) //nolint:forbidigo // In a bubble.
			ticket.Done(guard.Outcome{})
		}
	})
}

// TestWith: the next stage has the same requests. Its limits take effect when a guard uses it, and requests that enter
// the former stage later do not change them back.
func TestWith(t *testing.T) {
	c := oneAtATime()
	former, err := throttler.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, faulty := range []throttler.Config{
		{}, {Limits: c.Limits, Mode: 9}, {Limits: c.Limits, Class: 9}, {Limits: c.Limits, MaxDeadline: time.Millisecond},
	} {
		if _, err := former.With(faulty); err == nil {
			t.Errorf("%+v is accepted", faulty)
		}
		if _, err := throttler.New(faulty); err == nil {
			t.Errorf("%+v is accepted by New", faulty)
		}
	}
	c.Concurrency = 3
	next, err := former.With(c)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := ""
	for _, stage := range []*throttler.Stage{former, former, next, former, former} {
		g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
		if err != nil {
			t.Fatal(err)
		}
		ticket := &guard.Ticket{Answer: &guard.Answer{}}
		if err := g.Admit(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, ticket); err != nil {
			t.Fatal(err)
		}
		verdicts += ticket.Answer.Verdict.String() + " "
	}
	// The second waits. The third raises the limit, so the second goes on, and the third too.
	if l, _ := next.Load(); l.InFlight != 3 || l.Queued[throttle.SheddablePlus] != 2 {
		t.Errorf("%d in flight and %v queued: %s", l.InFlight, l.Queued, verdicts)
	}
}

// called has a grpc-timeout.
type called struct{}

// Lookup implements headgate.Values.
func (called) Lookup(name string) (string, bool) { return "5S", name == "Grpc-Timeout" }

// TestAllocatesNothing checks Admit, Forward, Answers and Done with a throttler.
func TestAllocatesNothing(t *testing.T) {
	stage, err := throttler.New(throttler.Config{
		Limits: throttler.Limits{Concurrency: 1000}, Classes: []throttler.Classified{{Match: rule.Match{Path: "/users/*"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Stages: []guard.Stage{stage}})
	if err != nil {
		t.Fatal(err)
	}
	ticket, answer := &guard.Ticket{}, &guard.Answer{}
	req := &headgate.Request{Method: "GET", Path: "/users/123/orders", Header: called{}}
	ctx := t.Context()
	request := func() {
		ticket.Answer = answer
		if err := g.Admit(ctx, req, ticket); err != nil {
			t.Fatal(err)
		}
		ticket.Forward()
		ticket.Answers(200)
		ticket.Done(guard.Outcome{Status: 200})
	}
	for range 100 {
		request()
	}
	if n := testing.AllocsPerRun(1000, request); n != 0 {
		t.Errorf("a request allocates %v times, want 0", n)
	}
}
