package client_test

import (
	"context"
	"errors"
	"net"
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
	"github.com/headgate/headgate/internal/testkit/logs"
)

// unused is an address where nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestFallbacks: without a server, the fallback decides at once.
func TestFallbacks(t *testing.T) {
	local := guards.New(t, "rules: [{name: a, match: {path: /a}, key: [\"header:X-Client-Id\"], limits: [2/1d]}]")
	for _, row := range []struct {
		fallback guard.Fallback
		local    *guard.Guard
		verdicts string
		err      error
	}{
		{guard.FallbackDeny, nil, "ddd", nil},
		{guard.FallbackAllow, nil, "aaa", nil},
		{guard.FallbackLocal, local, "aad", nil},
		{guard.FallbackError, nil, "ddd", client.ErrUnavailable},
	} {
		k := connect(t, client.Config{Servers: []string{unused(t)}, Fallback: row.fallback, Local: row.local, Timeout: 50 * time.Millisecond})
		got := ""
		for range 3 {
			a, err := k.Decide(t.Context(), &client.Request{Path: "/a", Headers: map[string]string{"x-client-id": "c"}})
			if !errors.Is(err, row.err) || err == nil && !a.Local {
				t.Errorf("%v: got %+v, %v", row.fallback, a, err)
			}
			got += map[headgate.Verdict]string{headgate.Allow: "a", headgate.Deny: "d"}[a.Verdict]
		}
		if got != row.verdicts {
			t.Errorf("%v: got %s, want %s", row.fallback, got, row.verdicts)
		}
	}
}

// TestServerGoesAndComes: the fallback decides while the server is unreachable, and the log says so once.
func TestServerGoesAndComes(t *testing.T) {
	var log logs.Text
	g := guards.New(t, rules)
	s := decisions.Start(t, g, "127.0.0.2:0") // No connection takes the port meanwhile: they begin at 127.0.0.1.
	k := connect(t, client.Config{Fallback: guard.FallbackAllow, Log: log.Logger()}, s)
	if a := decide(t, k, "/many"); a.Local {
		t.Fatalf("got %+v", a)
	}
	s.Kill()
	until(t, "the fallback", func() bool { return decide(t, k, "/many").Local })
	began := time.Now()
	for range 100 {
		decide(t, k, "/many")
	}
	if elapsed := time.Since(began); elapsed > patience/2 {
		t.Errorf("100 fallbacks take %v", elapsed)
	}
	decisions.Start(t, g, s.At)
	until(t, "the server", func() bool { return !decide(t, k, "/many").Local })
	if text := log.String(); strings.Count(text, "no headgate server answers") != 1 || strings.Count(text, "answers again") != 1 {
		t.Errorf("the log is\n%s", text)
	}
}

// TestKilledServer: each caller gets exactly one answer. The store has counted at least what callers got, and
// at most what was on its way more.
func TestKilledServer(t *testing.T) {
	g := guards.New(t, rules)
	one, other := decisions.Start(t, g, ""), decisions.Start(t, g, "")
	k := connect(t, client.Config{Fallback: guard.FallbackError, Timeout: 5 * time.Second}, one, other)
	var allowed, failed atomic.Int64
	var callers sync.WaitGroup
	const workers, each = 32, 500
	for range workers {
		callers.Go(func() {
			for range each {
				a, err := k.Decide(t.Context(), &client.Request{Path: "/many"})
				switch {
				case errors.Is(err, client.ErrUnavailable):
					failed.Add(1)
				case err != nil || a.Verdict != headgate.Allow:
					t.Errorf("got %+v, %v", a, err)
				default:
					allowed.Add(1)
				}
			}
		})
	}
	until(t, "calls", func() bool { return allowed.Load() > workers*each/4 })
	for _, s := range []*decisions.Server{one, other} {
		if s.Stats().Streams > 0 {
			s.Kill()
			break
		}
	}
	callers.Wait()
	var a guard.Answer
	if err := g.Decide(t.Context(), &headgate.Request{Path: "/many"}, &a); err != nil {
		t.Fatal(err)
	}
	counted := 1_000_000_000 - a.Results[0].Decision.Remaining - 1
	if allowed.Load()+failed.Load() != workers*each || counted < allowed.Load() || counted > allowed.Load()+2*1000 {
		t.Errorf("%d allowed, %d failed, %d counted", allowed.Load(), failed.Load(), counted)
	}
	if failed.Load() > workers*each/10 {
		t.Errorf("%d calls failed, with another server at hand", failed.Load())
	}
}

// TestDeafServer: a server that answers nothing costs callers the timeout, and the client asks another one.
func TestDeafServer(t *testing.T) {
	t.Parallel()
	deaf, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	s := decisions.Start(t, guards.New(t, rules), "")
	for range 4 { // The client begins with either of them.
		k := connect(t, client.Config{Servers: []string{deaf.Addr().String()}, Fallback: guard.FallbackError, Timeout: 20 * time.Millisecond}, s)
		until(t, "an answer of the other server", func() bool {
			began := time.Now()
			a, err := k.Decide(t.Context(), &client.Request{Path: "/many"})
			if elapsed := time.Since(began); elapsed > patience/2 {
				t.Errorf("a call took %v", elapsed)
			}
			return err == nil && !a.Local
		})
		_ = k.Close()
	}
}

// TestFullQueue: calls beyond the bound get the fallback.
func TestFullQueue(t *testing.T) {
	deaf, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	k := connect(t, client.Config{Servers: []string{deaf.Addr().String()}, Fallback: guard.FallbackAllow, MaxQueue: 3})
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() { _, _ = k.Decide(ctx, &client.Request{Path: "/"}) })
	}
	until(t, "a full queue", func() bool {
		short, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer stop()
		a, err := k.Decide(short, &client.Request{Path: "/"})
		return err == nil && a.Local
	})
	cancel()
	callers.Wait()
}

// TestConfig: errors name the field and the fix.
func TestConfig(t *testing.T) {
	for want, c := range map[string]client.Config{
		"Servers is empty":            {},
		"Timeout is negative":         {Servers: []string{"a:1"}, Timeout: -1},
		"MaxQueue is negative":        {Servers: []string{"a:1"}, MaxQueue: -1},
		"Fallback is not known":       {Servers: []string{"a:1"}, Fallback: 99},
		"FallbackLocal needs Local":   {Servers: []string{"a:1"}, Fallback: guard.FallbackLocal},
		"Local has no effect without": {Servers: []string{"a:1"}, Local: new(guard.Guard)},
	} {
		if _, err := client.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestClosed: a closed client gives the fallback.
func TestClosed(t *testing.T) {
	k := connect(t, client.Config{Fallback: guard.FallbackAllow}, decisions.Start(t, guards.New(t, rules), ""))
	decide(t, k, "/many")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if a := decide(t, k, "/many"); !a.Local || a.Verdict != headgate.Allow {
		t.Errorf("got %+v", a)
	}
}
