package memcached_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/testkit/leak"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// keysOn gives a key for each server of a store, found by the counters in Stats.
func keysOn(t *testing.T, store *memcached.Store, id headgate.PolicyID) []string {
	t.Helper()
	keys := make([]string, len(store.Stats()))
	for i, missing := 0, len(keys); missing > 0; i++ {
		before := store.Stats()
		key := fmt.Sprint("key ", i)
		apply(t, store, headgate.Op{Key: key, Policy: id, Cost: 1})
		for j, now := range store.Stats() {
			if now.Decisions > before[j].Decisions && keys[j] == "" {
				keys[j] = key
				missing--
			}
		}
	}
	return keys
}

// beyondDeadlines is so long that a decision that does not keep its own deadline is told from a busy machine.
const beyondDeadlines = 20 * time.Second

// TestKilledServer: when a server dies, its keys fail within their deadline, and then at once.
// Keys of other servers are decided. When the server is back, its keys are decided again.
func TestKilledServer(t *testing.T) {
	dies, lives := testserver.Start(t), testserver.Start(t)
	var lines bytes.Buffer
	store := newStore(t, memcached.Config{
		Timeout: beyondDeadlines, DialTimeout: beyondDeadlines, Servers: []string{dies.Addr, lives.Addr},
		Breaker: breaker.Config{Failures: 3, Probe: 20 * time.Millisecond, MaxProbe: 100 * time.Millisecond},
		Log:     slog.New(slog.NewTextHandler(&lines, nil)),
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1 << 40, Per: time.Hour}})
	keys := keysOn(t, store, id)
	ask := func(key string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		err := store.Apply(ctx, []headgate.Op{{Key: key, Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
		if elapsed := time.Since(began); elapsed > beyondDeadlines/4 { // The machine may be busy.
			t.Errorf("a decision took %v of 2s", elapsed)
		}
		return err
	}
	dies.Kill()
	until(t, "the breaker opens", func() bool { return errors.Is(ask(keys[0]), headgate.ErrUnavailable) })
	for range 20 {
		if err := ask(keys[1]); err != nil {
			t.Fatalf("the other server: %v", err)
		}
	}
	if st := store.Stats(); st[0].Breaker == breaker.Closed || st[0].Opened != 1 || st[0].Errors == 0 || st[1].Breaker != breaker.Closed {
		t.Errorf("%+v", st)
	}
	if st := store.Stats(); st[0].LastFailure.At.IsZero() || st[0].LastFailure.Err == nil || st[1].LastFailure != (memcached.Failure{}) {
		t.Errorf("got the last failures %v and %v, want one of the first server", st[0].LastFailure, st[1].LastFailure)
	}
	testserver.StartAt(t, dies.Addr)
	until(t, "the server is asked again", func() bool { return ask(keys[0]) == nil })
	until(t, "its breaker is closed", func() bool { return store.Stats()[0].Breaker == breaker.Closed })
	_ = store.Close()
	if got := strings.Count(lines.String(), "\n"); got != 2 || !strings.Contains(lines.String(), dies.Addr) {
		t.Errorf("the log says\n%swant a line for each change", lines.String())
	}
}

// TestSilentServer: a server accepts requests and does not answer. A caller waits until its
// deadline at most, and its units may have been counted.
func TestSilentServer(t *testing.T) {
	server := testserver.Start(t)
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Timeout: beyondDeadlines})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})
	server.Pause()
	until(t, "the breaker opens", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := store.Apply(ctx, []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
		if elapsed := time.Since(began); elapsed > beyondDeadlines/4 { // The machine may be busy.
			t.Errorf("a decision took %v of 20ms", elapsed)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, headgate.ErrUnavailable) {
			t.Fatalf("a paused server: %v", err)
		}
		return errors.Is(err, headgate.ErrUnavailable) && store.Stats()[0].Breaker != breaker.Closed
	})
	server.Resume()
	until(t, "it is asked again", func() bool {
		return store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1)) == nil
	})
}

// TestStartsWithoutServers: New does not wait for servers. Until a server is reachable, a
// decision fails, and its error gives the next step.
func TestStartsWithoutServers(t *testing.T) {
	server := testserver.Start(t)
	server.Stop()
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	ops, decisions := []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1)
	if err := store.Apply(t.Context(), ops, decisions); err == nil || !strings.Contains(err.Error(), server.Addr) {
		t.Errorf("no server: %v", err)
	}
	testserver.StartAt(t, server.Addr)
	until(t, "the server is found", func() bool { return store.Apply(t.Context(), ops, decisions) == nil })
}

// TestRestarted: a restarted server has lost all counts. Earlier receipts do not return units to
// new counts.
func TestRestarted(t *testing.T) {
	for _, counters := range []bool{false, true} {
		server := testserver.Start(t)
		store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Counters: counters})
		id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: 24 * time.Hour}})
		first := apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 5})[0]
		server.Kill()
		testserver.StartAt(t, server.Addr)
		var again [1]headgate.Decision
		until(t, "it answers again", func() bool {
			return store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 5}}, again[:]) == nil
		})
		if again[0].Verdict != headgate.Allow {
			t.Errorf("after the restart: %v, want a new beginning", again[0].Verdict)
		}
		giveBack(t, store, first.Receipt)
		if left := remaining(t, store, "k", id); left != 0 {
			t.Errorf("a receipt from before the restart gave back %d", left)
		}
	}
}

// TestEvicted: a full server evicts keys, which start again with empty counts. Receipts of
// evicted keys return nothing, and Stats counts the evictions.
func TestEvicted(t *testing.T) {
	server := testserver.Start(t, "-m", "1", "-I", "512k")
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Hour}})
	first := apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 5})[0]
	flood := make([]headgate.Op, 256)
	for i := 0; evictions(t, server.Addr) < 2000; i++ {
		if i > 400 {
			t.Fatal("100,000 keys evicted nothing from one megabyte")
		}
		for j := range flood {
			flood[j] = headgate.Op{Key: fmt.Sprint(i, " ", j), Policy: id, Group: uint8(j), Cost: 1}
		}
		apply(t, store, flood...)
	}
	if left := remaining(t, store, "k", id); left != 5 {
		t.Fatalf("%d remain after the flood, want 5: the key was to be evicted", left)
	}
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 5})
	giveBack(t, store, first.Receipt)
	if left := remaining(t, store, "k", id); left != 0 {
		t.Errorf("a receipt from before the eviction gave back %d", left)
	}
	until(t, "Stats tell of the evictions", func() bool {
		st := store.Stats()[0]
		return st.Evictions > 0 && st.Items > 0 && st.Bytes > 0 && st.MaxBytes == 1<<20
	})
}

func evictions(t *testing.T, addr string) int {
	t.Helper()
	for _, line := range say(t, addr, "stats") {
		if number, ok := strings.CutPrefix(line, "STAT evictions "); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("stats tell no evictions")
	return 0
}

// TestForeignItems: an item of another program under one of the store's names is not read as a
// state, and is not changed.
func TestForeignItems(t *testing.T) {
	server, way := testserver.Start(t), &tap{}
	store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Dial: way.dial})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Hour}})
	name := ""
	way.on(func(written []byte) {
		for _, written := range writesTo(written) {
			name = written
		}
	})
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})
	say(t, server.Addr, "set "+name+" 0 0 5\r\nhello")
	err := store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
	if err == nil || !strings.Contains(err.Error(), "servers of its own") {
		t.Errorf("another program's value: %v", err)
	}
}

// TestClose: all goroutines end, and later calls are refused.
func TestClose(t *testing.T) {
	server := testserver.Start(t)
	ended := leak.Watch(t)
	store, err := memcached.New(memcached.Config{Servers: []string{server.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	for range 50 {
		go func() {
			_ = store.Apply(t.Context(), []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
		}()
	}
	apply(t, store, headgate.Op{Key: "k", Policy: id, Cost: 1})
	for range 2 {
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}}
	if err := store.Apply(t.Context(), ops, make([]headgate.Decision, 1)); !errors.Is(err, memcached.ErrClosed) {
		t.Errorf("Apply after Close: %v", err)
	}
	if err := store.Forget(t.Context(), ops); !errors.Is(err, memcached.ErrClosed) {
		t.Errorf("Forget after Close: %v", err)
	}
	if err := store.Return(t.Context(), []headgate.Receipt{{Nonce: 1, Cost: 1}}); !errors.Is(err, memcached.ErrClosed) {
		t.Errorf("Return after Close: %v", err)
	}
	ended()
}

// TestNewRefuses: each invalid setting is refused with a valid alternative.
func TestNewRefuses(t *testing.T) {
	for want, c := range map[string]memcached.Config{
		"at least one":     {},
		"named twice":      {Servers: []string{"a:1", "a:1"}},
		"host:port":        {Servers: []string{"nowhere"}},
		"Retries is -1":    {Servers: []string{"a:1"}, Retries: -1},
		"at least 1ms":     {Servers: []string{"a:1"}, Timeout: 1},
		"Connections is -": {Servers: []string{"a:1"}, Connections: -1},
		"2000 servers":     {Servers: make([]string, 2000)},
	} {
		if _, err := memcached.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
