package memcached_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestLookup: decisions fail at once until a lookup gives valid servers. They then count on these servers, and no
// further lookup is made.
func TestLookup(t *testing.T) {
	server := testserver.Start(t)
	results := make(chan []string)
	var lookups atomic.Int64
	var logged bytes.Buffer // Read it only after Close.
	s, err := memcached.New(memcached.Config{
		Log: slog.New(slog.NewTextHandler(&logged, nil)),
		Lookup: func(ctx context.Context) ([]string, error) {
			lookups.Add(1)
			select {
			case servers := <-results:
				if servers == nil {
					return nil, errors.New("no such host")
				}
				return servers, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	op, d := []headgate.Op{{Key: "k", Policy: id, Cost: 2}}, make([]headgate.Decision, 1)
	for _, bad := range [][]string{nil, {}, {"a:1", "a:1"}, {"without a port"}} {
		if err := s.Apply(t.Context(), op, d); !errors.Is(err, headgate.ErrUnavailable) || d[0] != headgate.Undecided() {
			t.Errorf("before %q: %v, %+v", bad, err, d[0])
		}
		if err := s.Return(t.Context(), []headgate.Receipt{{Nonce: 1, Policy: id}}); !errors.Is(err, headgate.ErrUnavailable) {
			t.Errorf("a return before %q: %v", bad, err)
		}
		results <- bad
	}
	results <- []string{server.Addr}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err = headgate.ErrUnavailable; errors.Is(err, headgate.ErrUnavailable) && ctx.Err() == nil; {
		err = s.Apply(ctx, op, d)
	}
	if err != nil || d[0].Remaining != 3 || len(s.Stats()) != 1 || lookups.Load() != 5 {
		t.Errorf("%v, %+v after %d lookups, with %d servers", err, d[0], lookups.Load(), len(s.Stats()))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := logged.String(); strings.Count(text, "are not found") != 1 || strings.Count(text, "are found") != 1 {
		t.Errorf("the log is\n%s", text)
	}
}

// TestLookupEvery: servers come and go. Known ones keep their counts, a failed lookup changes nothing, and no call
// fails.
func TestLookupEvery(t *testing.T) {
	first, second := testserver.Start(t), testserver.Start(t)
	var servers atomic.Pointer[[]string] // nil: the lookup fails
	var lookups atomic.Int64
	name := func(addrs ...string) { servers.Store(&addrs) }
	name(first.Addr)
	var logged bytes.Buffer // Read it only after Close.
	s, err := memcached.New(memcached.Config{
		Log: slog.New(slog.NewTextHandler(&logged, nil)), LookupEvery: 5 * time.Millisecond,
		Lookup: func(context.Context) ([]string, error) {
			defer lookups.Add(1)
			if all := servers.Load(); all != nil {
				return *all, nil
			}
			return nil, errors.New("no such host")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := s.Prepare(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1 << 30, Per: 365 * 24 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(s.Stats()) == 1 })
	take := func() (remaining int64) {
		t.Helper()
		ops, ds := make([]headgate.Op, 50), make([]headgate.Decision, 50)
		for i := range ops {
			ops[i] = headgate.Op{Key: fmt.Sprint("k", i), Policy: id, Cost: 1, Group: uint8(i)}
		}
		if err := s.Apply(t.Context(), ops, ds); err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			remaining += d.Remaining
		}
		return remaining
	}
	const all = 50 << 30
	if got := take(); got != all-50 {
		t.Errorf("%d units are used, want 50", all-got)
	}
	servers.Store(nil)
	before := lookups.Load()
	waitFor(t, func() bool { return lookups.Load() > before+2 })
	if got := take(); got != all-100 {
		t.Errorf("after failed lookups %d units are used, want 100", all-got)
	}
	name(first.Addr, second.Addr)
	waitFor(t, func() bool { return len(s.Stats()) == 2 })
	if used := all - take(); used <= 50 || used >= 150 {
		t.Errorf("with a second server %d units are used, want those of some keys and 50", used)
	}
	name(second.Addr)
	waitFor(t, func() bool { got := s.Stats(); return len(got) == 1 && got[0].Server == second.Addr })
	for range 20 {
		take()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := logged.String(); strings.Count(text, "servers have changed") != 2 || strings.Count(text, "not found again") != 1 {
		t.Errorf("the log is\n%s", text)
	}
	if _, err := memcached.New(memcached.Config{Servers: []string{first.Addr}, LookupEvery: -1}); err == nil {
		t.Error("a negative interval is accepted")
	}
}

// waitFor polls until ok returns true.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-again.C {
		if time.Now().After(end) {
			t.Fatal("waited a minute")
		}
	}
}

// TestLookupEndsWithClose: Close ends a lookup in progress.
func TestLookupEndsWithClose(t *testing.T) {
	began := make(chan struct{})
	s, err := memcached.New(memcached.Config{Lookup: func(ctx context.Context) ([]string, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-began
	if err := s.Close(); err != nil || len(s.Stats()) != 0 {
		t.Errorf("%v, %d servers", err, len(s.Stats()))
	}
}
