package throttle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// story is a Throttler whose calls are written down. Requests have names.
type story struct {
	*testing.T

	under *Throttler
	now   headgate.Instant
	names map[*Request]string
	all   map[string]*Request
}

func storyOf(t *testing.T, c Config) *story {
	t.Helper()
	under, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &story{T: t, under: under, now: headgate.Instant(time.Hour), names: map[*Request]string{}, all: map[string]*Request{}}
}

// after moves the clock.
func (s *story) after(ms int) { s.now = s.now.Add(time.Duration(ms) * time.Millisecond) }

// arrives makes a request "class tenant route" arrive that waits for its answer for some
// milliseconds, and returns what happened.
func (s *story) arrives(name, what string, patience int) string {
	s.Helper()
	words := strings.Fields(what)
	class, err := ParseClass(words[0])
	if err != nil {
		s.Fatal(err)
	}
	r := &Request{Class: class, Tenant: words[1], Route: words[2], Deadline: s.now.Add(time.Duration(patience) * time.Millisecond)}
	s.names[r], s.all[name] = name, r
	return s.says(r, s.under.Arrive(s.now, r)) + s.events()
}

// ends is the end of a request that took some milliseconds of work, and returns what happened then.
func (s *story) ends(name string, work int) string {
	if name != "" {
		s.under.Leave(s.now, s.all[name], Ended{Work: time.Duration(work) * time.Millisecond})
	}
	return strings.TrimPrefix(s.events(), " ")
}

func (s *story) events() string {
	var text strings.Builder
	for r, v := s.under.Next(s.now); r != nil; r, v = s.under.Next(s.now) {
		text.WriteString(" " + s.says(r, v))
	}
	return text.String()
}

func (s *story) says(r *Request, v headgate.Verdict) string {
	switch v {
	case headgate.Allow:
		return s.names[r] + " goes"
	case headgate.Wait:
		return s.names[r] + " waits"
	default:
		return s.names[r] + " " + strings.TrimPrefix(r.Refusal.String(), "throttle_")
	}
}

func (s *story) is(got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("got %q, want %q", got, want)
	}
}

// taught returns a story of a service for one request at a time, whose drain rate is 1. It has
// served requests of 10 ms, and of 100 ms on route /long. Its tenant is not active any more.
func taught(t *testing.T) *story {
	t.Helper()
	s := storyOf(t, Config{Concurrency: 1, Deadline: time.Second, PartOfDeadline: 0.1})
	last, n := "", 0
	for i := range 100 {
		name, route, next := fmt.Sprint("lesson ", i), "/", 10
		if i%10 == 9 {
			route, next = "/long", 100
		}
		s.arrives(name, "critical teacher "+route, 1000)
		s.after(n)
		s.ends(last, n)
		last, n = name, next
	}
	s.after(n)
	s.ends(last, n)
	s.after(3000)
	return s
}

// TestQueueStory: a full service, its queue by class, a request that leaves, and the end.
func TestQueueStory(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 1})
	s.is(s.arrives("a", "sheddable A /", 1000), "a goes")
	s.is(s.arrives("b", "sheddable A /", 1000), "b waits")
	s.is(s.arrives("c", "critical B /", 1000), "c waits")
	s.is(s.arrives("d", "critical_plus B /", 1000), "d waits")
	s.is(s.ends("d", 0), "") // Its client has left.
	s.is(s.ends("a", 1), "c goes")
	s.is(s.ends("c", 1), "b goes")
	s.is(s.ends("b", 1), "")
	s.is(s.ends("b", 1), "") // Once more: no effect.
	s.is(s.arrives("e", "sheddable A /", 1000), "e goes")
}

// TestDeadlineStory: requests that cannot be answered in time are refused, at once or later.
func TestDeadlineStory(t *testing.T) {
	s := taught(t)
	s.is(s.arrives("probe", "critical teacher /long", 50), "probe goes") // After 3 s.
	s.after(100)
	s.is(s.ends("probe", 100), "")
	s.is(s.arrives("late", "critical teacher /long", 50), "late deadline") // It takes 100 ms.
	s.is(s.arrives("a", "critical A /long", 150), "a goes")
	s.is(s.arrives("b", "critical B /long", 150), "b waits")
	s.after(100)
	s.is(s.ends("a", 100), "b deadline") // 50 ms are left.
	s.is(s.arrives("past", "critical A /", -1), "past deadline")
	s.now = s.now.Add(-time.Hour)
	s.is(s.arrives("c", "critical A /", 1000), "c goes") // The clock stepped back.
	s.is(s.ends("c", 10), "")
}

// TestEvictionStory: the queue has room for 100 ms of work besides the newest request. The last bucket loses first, and in
// it the tenant with the most work besides its newest request.
func TestEvictionStory(t *testing.T) {
	s := taught(t)
	s.is(s.arrives("a", "critical A /", 1000), "a goes")
	for i := range 7 {
		s.is(s.arrives(fmt.Sprint("b", i), "sheddable B /", 1000), fmt.Sprintf("b%d waits", i))
	}
	for i := range 4 {
		s.is(s.arrives(fmt.Sprint("c", i), "sheddable C /", 1000), fmt.Sprintf("c%d waits", i))
	}
	s.is(s.arrives("d", "sheddable D /", 1000), "d waits b6 evicted")
	s.is(s.arrives("e", "critical E /", 1000), "e waits b5 evicted")
	if after := s.all["b5"].RetryAfter; after < 80*time.Millisecond || after > 120*time.Millisecond {
		t.Errorf("RetryAfter is %v, want the time of about 100 ms of work", after)
	}
	s.is(s.arrives("b7", "sheddable B /", 1000), "b7 full")
}

// TestCostlierThanTheQueue: one request may always wait, whatever its work is.
func TestCostlierThanTheQueue(t *testing.T) {
	s := taught(t)
	for i := range 100 { // Route /huge takes 300 ms, three times the bound.
		name := fmt.Sprint("huge ", i)
		s.arrives(name, "critical A /huge", 1000)
		s.after(300)
		s.ends(name, 300)
	}
	s.is(s.arrives("a", "critical A /", 1000), "a goes")
	s.is(s.arrives("b", "critical A /huge", 1000), "b waits")
	s.is(s.ends("a", 10), "b goes")
}

// TestProbeStory: a route that was slow once is tried again after 5 s, or 200 ms before a service with less than
// half of its bound. The answer replaces the mean.
func TestProbeStory(t *testing.T) {
	s := taught(t)
	if err := s.under.Configure(Config{Concurrency: 2}); err != nil {
		t.Fatal(err)
	}
	s.is(s.arrives("running", "critical teacher /", 60_000), "running goes")
	s.is(s.arrives("early", "critical teacher /long", 50), "early deadline")
	s.after(2000) // 5 s after the last lesson.
	s.is(s.arrives("a", "critical teacher /long", 50), "a goes")
	s.after(100)
	s.is(s.ends("a", 100), "")
	s.is(s.ends("running", 10), "")
	s.is(s.arrives("b", "critical teacher /long", 50), "b deadline")
	s.after(200)
	s.is(s.arrives("c", "critical teacher /long", 50), "c goes")
	s.is(s.arrives("d", "critical teacher /long", 50), "d deadline")
	s.after(10)
	s.is(s.ends("c", 10), "")
	s.is(s.arrives("e", "critical teacher /long", 50), "e goes")
}

// TestChangeMidway: a smaller limit waits for requests to end; a larger one admits at once.
func TestChangeMidway(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 2})
	s.is(s.arrives("a", "critical A /", 1000)+" "+s.arrives("b", "critical A /", 1000)+" "+s.arrives("c", "critical A /", 1000), "a goes b goes c waits")
	configure := func(c Config) {
		if err := s.under.Configure(c); err != nil {
			t.Error(err)
		}
	}
	configure(Config{Concurrency: 1})
	s.is(s.ends("a", 1), "")
	configure(Config{CPUInFlight: time.Hour})
	s.is(s.events(), " c goes")
	if err := s.under.Configure(Config{}); err == nil {
		t.Error("a faulty configuration is accepted")
	}
	s.is(s.ends("b", 1)+s.ends("c", 1), "")
}

// TestSmallerQueue: requests keep their places until the next one is queued.
func TestSmallerQueue(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 1})
	s.is(s.arrives("a", "critical A /", 1000), "a goes")
	for _, name := range []string{"b", "c", "d"} {
		s.is(s.arrives(name, "sheddable B /", 1000), name+" waits")
	}
	if err := s.under.Configure(Config{Concurrency: 1, MaxWaiters: 2}); err != nil {
		t.Error(err)
	}
	s.is(s.events(), "")
	s.is(s.arrives("e", "critical C /", 1000), "e waits d evicted c evicted")
}

// TestNoStarvation: within a class, each of two tenants gets half of the work, although one
// queues far more requests, and although its requests are ten times as long.
func TestNoStarvation(t *testing.T) {
	s := taught(t)
	s.under.config.PartOfDeadline = 1
	s.arrives("running", "sheddable A /", 100_000)
	for i := range 10 {
		s.arrives(fmt.Sprint("A", i), "sheddable A /long", 100_000)
	}
	for i := range 100 {
		s.arrives(fmt.Sprint("B", i), "sheddable B /", 100_000)
	}
	work := map[string]int{}
	running := "running"
	for range 50 {
		s.after(10)
		next := strings.TrimSuffix(s.ends(running, 10), " goes")
		if next == "" {
			break
		}
		work[next[:1]] += int(s.all[next].Work() / time.Millisecond)
		running = next
	}
	if work["A"] == 0 || work["B"] == 0 || work["A"] > work["B"]+110 || work["B"] > work["A"]+110 {
		t.Errorf("the two tenants got %v ms of work, want equal parts", work)
	}
}

// TestLongRequestKeepsOnePlace: a tenant with one long request keeps its own place only. A new
// tenant takes the place of the tenant without requests that was used longest ago.
func TestLongRequestKeepsOnePlace(t *testing.T) {
	s := storyOf(t, Config{Concurrency: 10, MaxTenants: 2})
	s.is(s.arrives("stream", "critical A /", 100_000), "stream goes")
	s.is(s.arrives("b", "critical B /", 1000), "b goes")
	s.is(s.ends("b", 1), "")
	s.is(s.arrives("c", "critical C /", 1000), "c goes")
	if s.all["c"].tenant == &s.under.tenants.others {
		t.Error("a new tenant finds no place, although a tenant without requests has one")
	}
	s.is(s.arrives("d", "critical D /", 1000), "d goes")
	if s.all["d"].tenant != &s.under.tenants.others {
		t.Error("a new tenant has taken the place of a tenant with requests")
	}
}

// TestOrderForgetsDirectRequests: a tenant whose requests went to the service without a wait, and
// took more work than predicted, has its turn in a later queue like any other tenant.
func TestOrderForgetsDirectRequests(t *testing.T) {
	s := taught(t)
	s.under.config.PartOfDeadline = 1
	for i := range 20 { // The work of the tenant's requests has risen from 10 ms to 100 ms.
		name := fmt.Sprint("direct ", i)
		s.is(s.arrives(name, "sheddable A /", 100_000), name+" goes")
		s.after(100)
		s.is(s.ends(name, 100), "")
	}
	s.is(s.arrives("x", "sheddable X /", 100_000), "x goes")
	for i := range 4 {
		s.is(s.arrives(fmt.Sprint("b", i), "sheddable B /", 100_000), fmt.Sprintf("b%d waits", i))
	}
	s.after(3000) // The tenant is within its share again.
	s.is(s.arrives("a", "sheddable A /", 100_000), "a waits")
	s.is(s.ends("x", 10), "b0 goes")
	s.is(s.ends("b0", 10), "a goes")
}
