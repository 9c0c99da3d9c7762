package client_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/internal/testkit/decisions"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
)

const rules = `
rules:
- {name: a, match: {path: /a}, key: ["header:X-Client-Id"], algorithm: fixed_window, limits: [3/365d]}
- {name: many, match: {path: /many}, key: [all], algorithm: fixed_window, limits: [1000000000/365d]}
- {name: late, match: {path: /late}, key: [all], algorithm: leaky_bucket, limits: [20/1s], burst: 100}
- {name: later, match: {path: /later}, key: [all], algorithm: leaky_bucket, limits: [1/1h], burst: 5}
- {name: moved, match: {path: /moved}, key: [ip], limits: [1/1d], on_exceed: {action: redirect, location: "https://b.example/x"}}
- {name: less, match: {path: /less}, key: [all], limits: [1/1d], on_exceed: {action: degrade, header: X-Degraded, value: "1"}}
`

func decide(tb testing.TB, k *client.Client, path string) client.Answer {
	tb.Helper()
	a, err := k.Decide(tb.Context(), &client.Request{Method: "GET", Path: path, Headers: map[string]string{"x-client-id": "c"}, IP: netip.MustParseAddr("192.0.2.1")})
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return a
}

// TestDecide: a program gets the decisions of the server's rules.
func TestDecide(t *testing.T) {
	k := connect(t, client.Config{}, decisions.Start(t, guards.New(t, rules), ""))
	if a := decide(t, k, "/a"); a.Verdict != headgate.Allow || a.Policy != "a" || a.Remaining != 2 || a.Limit != 3 || a.Quota.Per != 365*24*time.Hour || a.Local {
		t.Errorf("an allowed request: %+v", a)
	}
	decide(t, k, "/a")
	decide(t, k, "/a")
	if a := decide(t, k, "/a"); a.Verdict != headgate.Deny || a.Status != 429 || a.RetryAfter <= 0 || len(a.Violated) != 1 || a.Reason != "over_limit" {
		t.Errorf("a refused request: %+v", a)
	}
	decide(t, k, "/moved")
	if a := decide(t, k, "/moved"); a.Status != 302 || a.Location != "https://b.example/x" {
		t.Errorf("a redirected request: %+v", a)
	}
	decide(t, k, "/less")
	if a := decide(t, k, "/less"); a.Verdict != headgate.Allow || len(a.Marks) != 1 || a.Marks[0] != (client.Header{Name: "X-Degraded", Value: "1"}) {
		t.Errorf("a degraded request: %+v", a)
	}
	if a := decide(t, k, "/none"); a.Verdict != headgate.Allow || a.Policy != "" || a.Reason != "no_rule" {
		t.Errorf("a request without a rule: %+v", a)
	}
	var fault *client.RequestError
	if a, err := k.Decide(t.Context(), &client.Request{Path: "no slash"}); !errors.As(err, &fault) || a.Verdict != headgate.Deny || !strings.Contains(err.Error(), "ambiguous") {
		t.Errorf("an invalid request: %+v, %v", a, err)
	}
}

// TestInvalidText: end users choose some texts. One that is no UTF-8 harms neither its own call nor others, which travel
// in the same message.
func TestInvalidText(t *testing.T) {
	k := connect(t, client.Config{}, decisions.Start(t, guards.New(t, rules), ""))
	var callers sync.WaitGroup
	for n := range 8 {
		callers.Go(func() {
			for range 50 {
				if n%2 == 0 {
					decide(t, k, "/many")
					continue
				}
				r := &client.Request{Method: "G\xff", Host: "a\xff", Path: "/many/\xff", Headers: map[string]string{"x-client-id": "\xff"}, Subject: "\xff"}
				if a, err := k.Decide(t.Context(), r); err != nil || a.Local {
					t.Errorf("got %+v, %v", a, err)
				}
			}
		})
	}
	callers.Wait()
	if got := k.Stats(); got.Fallbacks != 0 || got.Decided != 400 || got.Switches != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestWait: Decide returns when the request may go. A caller that leaves gives its departure back.
func TestWait(t *testing.T) {
	s := decisions.Start(t, guards.New(t, rules), "")
	k := connect(t, client.Config{}, s)
	began := time.Now() // The second departure is 50 ms after the first one, whenever it is asked for.
	decide(t, k, "/late")
	if a := decide(t, k, "/late"); a.Verdict != headgate.Allow || time.Since(began) < 50*time.Millisecond {
		t.Errorf("%+v after %v, want a wait of 50 ms", a, time.Since(began))
	}
	decide(t, k, "/later")
	for range 20 { // With 4 places, the fifth departure would be refused.
		ctx, leave := context.WithCancel(t.Context())
		decided, left := k.Stats().Decided, make(chan struct{})
		go func() {
			defer close(left)
			if a, err := k.Decide(ctx, &client.Request{Path: "/later"}); !errors.Is(err, context.Canceled) || a.Verdict != headgate.Deny {
				t.Errorf("got %+v, %v", a, err)
			}
		}()
		until(t, "the answer", func() bool { return k.Stats().Decided > decided })
		leave()
		<-left
		returned := k.Stats().Returned
		until(t, "the return", func() bool { return s.Stats().Returned >= returned })
	}
	until(t, "all returns", func() bool { return s.Stats().Returned == 20 })
}

// TestCallersShareMessages: calls that come together travel together, each is decided once, and in total the
// limit holds.
func TestCallersShareMessages(t *testing.T) {
	s := decisions.Start(t, guards.New(t, "rules: [{name: a, match: {path: /a}, key: [all], algorithm: fixed_window, limits: [10000/365d]}]"), "")
	k := connect(t, client.Config{}, s)
	var allowed atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 250 {
				if decide(t, k, "/a").Verdict == headgate.Allow {
					allowed.Add(1)
				}
			}
		})
	}
	callers.Wait()
	got := k.Stats()
	if allowed.Load() != 10_000 || got.Decided != 16_000 || got.Fallbacks != 0 {
		t.Errorf("%d are allowed, %+v", allowed.Load(), got)
	}
	if perMessage := float64(got.Decided) / float64(got.Messages); perMessage < 2 {
		t.Errorf("%.1f calls a message, want several", perMessage)
	}
}

// TestLoneCaller: a lone call is a message.
func TestLoneCaller(t *testing.T) {
	k := connect(t, client.Config{}, decisions.Start(t, guards.New(t, rules), ""))
	for range 100 {
		decide(t, k, "/many")
	}
	if got := k.Stats(); got.Messages != 100 || got.Decided != 100 {
		t.Errorf("got %+v", got)
	}
}

// TestLeavers: what the answers to callers took that have left is given back.
func TestLeavers(t *testing.T) {
	g := guards.New(t, "rules: [{name: a, match: {path: /a}, key: [all], algorithm: fixed_window, limits: [1000/365d]}]")
	s := decisions.Start(t, g, "")
	k := connect(t, client.Config{}, s)
	var kept atomic.Int64
	var callers sync.WaitGroup
	for i := range 32 {
		callers.Go(func() {
			for n := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if (i+n)%2 == 0 {
					go cancel() // At any time between the call and its answer.
				}
				if a, err := k.Decide(ctx, &client.Request{Path: "/a"}); err == nil && a.Verdict == headgate.Allow {
					kept.Add(1)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	until(t, "the returns", func() bool { return s.Stats().Returned+s.Stats().Unknown >= k.Stats().Returned })
	var a guard.Answer
	until(t, "the units to come back", func() bool {
		if err := g.Decide(t.Context(), &headgate.Request{Path: "/a"}, &a); err != nil {
			t.Fatal(err)
		}
		left := a.Results[0].Decision.Remaining
		if a.Verdict == headgate.Allow {
			left++
			if err := g.Cancel(t.Context(), &a); err != nil {
				t.Fatal(err)
			}
		}
		return left == max(0, 1000-kept.Load()) || kept.Load() >= 1000
	})
	if kept.Load() > 1000 {
		t.Errorf("%d requests pass, want at most 1000", kept.Load())
	}
}

// TestDrain: a server that drains loses no call, and the client goes on with another one.
func TestDrain(t *testing.T) {
	g := guards.New(t, rules)
	servers := []*decisions.Server{decisions.Start(t, g, ""), decisions.Start(t, g, ""), decisions.Start(t, g, "")}
	k := connect(t, client.Config{}, servers...)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var calls atomic.Int64
	for range 16 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if a := decide(t, k, "/many"); a.Local || a.Verdict != headgate.Allow {
					t.Errorf("got %+v", a)
				}
				calls.Add(1)
			}
		})
	}
	for range 2 {
		before := calls.Load()
		until(t, "calls", func() bool { return calls.Load() > before+1000 })
		serving := slices.IndexFunc(servers, func(s *decisions.Server) bool { return s.Stats().Streams > 0 })
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := servers[serving].Stop(ctx); err != nil {
			t.Errorf("the drain fails: %v", err)
		}
		cancel()
		servers = slices.Delete(servers, serving, serving+1)
	}
	close(stop)
	callers.Wait()
	if got := k.Stats(); got.Fallbacks != 0 || got.Switches < 2 {
		t.Errorf("got %+v", got)
	}
	a := decide(t, k, "/many")
	if counted := 1_000_000_000 - a.Remaining - 1; counted != calls.Load() {
		t.Errorf("%d calls, and %d are counted", calls.Load(), counted)
	}
}
