package engine_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/testkit/race"
)

// start is the time at which the tests begin.
const start = headgate.Instant(1_000_000 * 3600 * 1_000_000_000)

func made(t *testing.T, text string, o engine.Options) *engine.Engine {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	if o.Start == 0 {
		o.Start = start
	}
	e, err := engine.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// story records what happens to attempts, in words.
type story struct {
	engine *engine.Engine
	lines  []string
}

// send makes a request that has a name.
func (s *story) send(name, path string, lasts time.Duration) *engine.Attempt {
	a := &engine.Attempt{Request: headgate.Request{Method: "GET", Path: path}, Lasts: lasts}
	note := func(text string) {
		s.lines = append(s.lines, fmt.Sprintf("%v: %s %s", s.engine.Now().Sub(start), name, text))
	}
	a.Decided = func(a *engine.Attempt) {
		reason := headgate.WithinLimit // A rule with in_flight alone has no result for an allowed request.
		if closest := a.Answer.Closest(); closest != nil {
			reason = closest.Decision.Reason
		}
		note(fmt.Sprintf("%s after %v, %v", a.Verdict, a.Waited, reason))
	}
	a.Ended = func(*engine.Attempt) { note("ended") }
	s.engine.Arrive(a)
	return a
}

func (s *story) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(s.lines, lines) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(s.lines, "\n"), strings.Join(lines, "\n"))
	}
}

// TestDelayQueue: two requests fill the queue of a rule at the beginning. They keep their places until they depart, in virtual time, and
// 100 virtual seconds later the queue has room again.
func TestDelayQueue(t *testing.T) {
	t.Parallel()
	s := &story{engine: made(t, `rules: [{name: slow, key: [all], limits: [1/10s],
  on_exceed: {action: delay, max_wait: 1m, max_waiters: 2}}]`, engine.Options{})}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.send(name, "/", 0)
	}
	s.engine.Advance(start.Add(100 * time.Second))
	for _, name := range []string{"e", "f", "g", "h"} {
		s.send(name, "/", 0)
	}
	s.engine.Finish()
	s.want(t,
		"0s: a allow after 0s, within_limit", "0s: a ended",
		"0s: d deny after 0s, too_many_waiters", "0s: d ended",
		"10s: b allow after 10s, scheduled", "10s: b ended",
		"20s: c allow after 20s, scheduled", "20s: c ended",
		"1m40s: e allow after 0s, within_limit", "1m40s: e ended",
		"1m40s: h deny after 0s, too_many_waiters", "1m40s: h ended",
		"1m50s: f allow after 10s, scheduled", "1m50s: f ended",
		"2m0s: g allow after 20s, scheduled", "2m0s: g ended",
	)
}

// TestInFlight: a request keeps its slot from its admission until it ends: after Lasts, by End, or by Leave.
func TestInFlight(t *testing.T) {
	t.Parallel()
	s := &story{engine: made(t, `rules: [{name: busy, key: [all], in_flight: 2}]`, engine.Options{})}
	open := s.send("open", "/", engine.Open)
	s.send("b", "/", 5*time.Second)
	s.send("c", "/", time.Second)
	s.engine.Advance(start.Add(5 * time.Second))
	s.send("d", "/", time.Second)
	s.engine.End(open)
	left := s.send("left", "/", time.Minute)
	s.send("e", "/", time.Second)
	s.engine.Leave(left)
	s.send("f", "/", time.Second)
	s.engine.Finish()
	s.want(t,
		"0s: open allow after 0s, within_limit", "0s: b allow after 0s, within_limit",
		"0s: c deny after 0s, in_flight", "0s: c ended",
		"5s: b ended", "5s: d allow after 0s, within_limit", "5s: open ended",
		"5s: left allow after 0s, within_limit", "5s: e deny after 0s, in_flight", "5s: e ended", "5s: left ended",
		"5s: f allow after 0s, within_limit", "6s: d ended", "6s: f ended",
	)
}

// TestCalendarAndFairShare: windows of the calendar and cycles of fair share pass in virtual time.
func TestCalendarAndFairShare(t *testing.T) {
	t.Parallel()
	s := &story{engine: made(t, `
fair_share: {client: path, capacity: 2, cycle: 1s}
rules: [{name: daily, key: [all], algorithm: fixed_window, limits: [3/day]}]`, engine.Options{})}
	names := strings.Split("abcdefgh", "")
	for i, name := range names {
		s.send(name, "/", 0)
		if i == 2 {
			s.engine.Advance(s.engine.Now().Add(time.Second))
		}
	}
	s.engine.Advance(start.Add(24 * time.Hour))
	s.send("i", "/", 0)
	reasons := ""
	for _, line := range s.lines {
		if _, reason, decided := strings.Cut(line, ", "); decided {
			reasons += reason + "\n"
		}
	}
	want := strings.Join([]string{
		"within_limit", "within_limit", "over_share", // In the first second.
		"within_limit", "over_limit", "over_limit", "over_limit", "over_limit", // A refusal by the rule takes nothing of the share.
		"within_limit", "", // The next day.
	}, "\n")
	if reasons != want {
		t.Errorf("got  %s\nwant %s", reasons, want)
	}
}

// TestPlans: customers use up the quotas of their plans, which come back in virtual time.
func TestPlans(t *testing.T) {
	t.Parallel()
	e := made(t, `
rules: [{name: api, key: [ip], quota: calls}]
default_plan: free
plans:
  free: {quotas: {calls: [{limit: 3/30d}]}}
  paid: {quotas: {calls: [{limit: 5/30d}]}}
customers:
  192.0.2.1: {plan: paid}`, engine.Options{})
	passed := func(ip string) (n int) {
		for range 10 {
			a := &engine.Attempt{Request: headgate.Request{Method: "GET", Path: "/", IP: netip.MustParseAddr(ip)}}
			if e.Arrive(a); a.Verdict == headgate.Allow {
				n++
			}
		}
		return n
	}
	for range 2 {
		if paid, free := passed("192.0.2.1"), passed("192.0.2.2"); paid != 5 || free != 3 {
			t.Errorf("%d and %d of 10 requests pass, want 5 and 3", paid, free)
		}
		e.Advance(e.Now().Add(60 * 24 * time.Hour))
	}
}

// TestLeftOut: the engine says what it does not decide, and decides the rest.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	e := made(t, `
store: redis://user:secret@192.0.2.1/0
server: {grpc: "127.0.0.1:8081"}
lease: {servers: ["127.0.0.1:8082"]}
throttle: {concurrency: 10}
rules:
  - {name: leased, match: {path: /leased}, key: [all], lease: api, fallback: deny, group: one}
  - {name: other, key: [all], limits: [5/m], group: one}
  - {name: slots, key: [all], in_flight: 3}
  - {name: both, key: [all], limits: [2/m], in_flight: 3}
`, engine.Options{WithoutDurations: true})
	got := strings.Join(e.LeftOut(), "\n")
	want := `store redis://user:***@192.0.2.1:6379: its rules count in memory, without prefetch, and it never fails, so that no fallback decides
throttle: it needs the durations of requests
rule "leased": it spends a lease, which a server gives; the other rules of group "one" decide in its place
rule "slots": in_flight needs the durations of requests
in_flight of rule "both": it needs the durations of requests`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	passed := 0
	for range 5 {
		a := &engine.Attempt{Request: headgate.Request{Method: "GET", Path: "/"}}
		if e.Arrive(a); a.Verdict == headgate.Allow {
			passed++
		}
	}
	if passed != 2 {
		t.Errorf("%d of 5 requests pass, want 2", passed)
	}
}

// TestInvalidRequest: a request that the guard cannot decide is refused with its error.
func TestInvalidRequest(t *testing.T) {
	t.Parallel()
	e := made(t, `rules: [{name: a, key: [all], limits: [2/m], cost: "header:X-Cost"}]`, engine.Options{})
	ended := 0
	a := &engine.Attempt{Request: headgate.Request{Method: "GET", Path: "/", Cost: -1}, Ended: func(*engine.Attempt) { ended++ }}
	if e.Arrive(a); a.Err == nil || a.Verdict != headgate.Deny || ended != 1 {
		t.Errorf("got %v, %v, ended %d times", a.Err, a.Verdict, ended)
	}
}

// TestKeys: with memory for a number of keys, this number of keys keeps every counter, whatever the algorithm, and so memory for
// logs and windows of any size.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_log", "sliding_window"} {
		keys := race.Fewer(20_000, 5_000)
		e := made(t, `rules: [{name: a, key: [ip], algorithm: `+algorithm+`, limits: [100/m, 1000/h]}]`, engine.Options{Keys: int64(keys)})
		a := &engine.Attempt{}
		for i := range 3 * keys {
			n := i % keys
			a.Request = headgate.Request{Method: "GET", Path: "/", IP: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})}
			if e.Arrive(a); a.Verdict != headgate.Allow || a.Err != nil {
				t.Fatalf("%s: request %d: %v, %v", algorithm, i, a.Answer.Closest(), a.Err)
			}
		}
		if n := e.Evictions(); n != 0 {
			t.Errorf("%s: %d evictions", algorithm, n)
		}
	}
}

// TestPlainDecisionsAllocateNothing: a caller that reuses its attempts allocates nothing for a request that passes or is refused.
func TestPlainDecisionsAllocateNothing(t *testing.T) {
	e := made(t, `rules: [{name: a, key: [ip], algorithm: sliding_window, limits: [100/m]}]`, engine.Options{WithoutDurations: true})
	a := &engine.Attempt{Lasts: time.Second, Outcome: guard.Outcome{Status: 200}}
	a.Request = headgate.Request{Method: "GET", Path: "/", IP: netip.MustParseAddr("192.0.2.1")}
	seen := map[headgate.Verdict]int{}
	a.Decided = func(a *engine.Attempt) { seen[a.Verdict]++ }
	if n := testing.AllocsPerRun(1000, func() {
		e.Advance(e.Now().Add(time.Millisecond))
		e.Arrive(a)
	}); n != 0 && !race.On || seen[headgate.Allow] < 100 || seen[headgate.Deny] == 0 {
		t.Errorf("%v allocations for a request, %v", n, seen)
	}
}
