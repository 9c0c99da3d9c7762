package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// TestGroupCommit: queries that wait while calls are in flight share one call. A single query
// has its own call.
func TestGroupCommit(t *testing.T) {
	server := testserver.Start(t)
	store := openPatient(t, server.Addr)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	for i := range 3 {
		if _, err := take(store, id, "alone", patience); err != nil {
			t.Fatal(err)
		}
		if node := store.Stats().Nodes[0]; node.Calls != uint64(i)+1 || node.Decisions != uint64(i)+1 {
			t.Fatalf("after %d single decisions: got %+v, want one call for each", i+1, node)
		}
	}
	server.Pause()
	const callers = 130
	var all sync.WaitGroup
	remaining := make([]int64, callers)
	for c := range callers {
		all.Go(func() {
			d, err := take(store, id, fmt.Sprint("together", c%2), patience)
			if err != nil || d.Verdict != headgate.Allow {
				t.Errorf("caller %d: got %v and error %v, want Allow", c, d.Verdict, err)
			}
			remaining[c] = d.Remaining
		})
	}
	before := waitFor(t, store, callers)
	server.Resume()
	all.Wait()
	if node := store.Stats().Nodes[0]; node.Calls != 3+before+1 || node.Decisions != 3+callers {
		t.Errorf("got %d calls and %d decisions, want %d and %d", node.Calls, node.Decisions, 3+before+1, 3+callers)
	}
	seen := map[string]bool{}
	for c, left := range remaining {
		name := fmt.Sprint(c%2, left)
		if seen[name] {
			t.Errorf("two decisions on one key have %d units remaining", left)
		}
		seen[name] = true
	}
}

// TestLeftBehind: a caller that leaves while it waits takes nothing, and the other callers get
// answers.
func TestLeftBehind(t *testing.T) {
	server := testserver.Start(t)
	store := openPatient(t, server.Addr)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	var all sync.WaitGroup
	stays := 0
	for store.Stats().Nodes[0].Waiting == 0 { // Queries wait only after maxInFlight is reached.
		stays++
		all.Go(func() {
			if _, err := take(store, id, "k", patience); err != nil {
				t.Error(err)
			}
		})
		waitFor(t, store, stays)
	}
	var leaving sync.WaitGroup
	for range 5 {
		leaving.Go(func() {
			if _, err := take(store, id, "k", 20*time.Millisecond); err == nil {
				t.Error("a decision succeeded while the server was paused")
			}
		})
	}
	waitFor(t, store, stays+5)
	leaving.Wait()
	server.Resume()
	all.Wait()
	if node := store.Stats().Nodes[0]; node.Unsent != 5 {
		t.Errorf("%d queries were not sent, want 5: %+v", node.Unsent, node)
	}
	if d, err := take(store, id, "k", patience); err != nil || d.Remaining != int64(100-2-stays) {
		t.Errorf("got %d units remaining and error %v, want %d", d.Remaining, err, 100-2-stays)
	}
}

// openPatient opens a store that keeps its connection while a test pauses the server, even on a
// slow machine.
func openPatient(t *testing.T, addr string) *redis.Store {
	t.Helper()
	return open(t, redis.Config{Client: rueidis.ClientOption{
		InitAddress: []string{addr}, ConnWriteTimeout: time.Hour,
	}})
}

// waitFor waits until all callers have a call in flight or a query in the queue. It gives the
// number of calls in flight, which have one query each.
func waitFor(t *testing.T, store *redis.Store, callers int) (inFlight uint64) {
	t.Helper()
	until(t, "all callers in flight or in the queue", func() bool {
		node := store.Stats().Nodes[0]
		inFlight = uint64(node.InFlight)
		return node.InFlight+node.Waiting == callers
	})
	return inFlight
}

// TestQueueIsBounded: when the queue of a node is full, the next caller is refused at once.
func TestQueueIsBounded(t *testing.T) {
	server := testserver.Start(t)
	store := openPatient(t, server.Addr)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100_000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	const inFlight, queue = 32, 1 << 14 // inFlight is an upper bound: 2 or 32 batches are in flight.
	var all sync.WaitGroup
	var served atomic.Int64
	for range inFlight + queue {
		all.Go(func() {
			if d, err := take(store, id, "k", patience); err == nil && d.Verdict == headgate.Allow {
				served.Add(1)
			}
		})
	}
	until(t, "a full queue", func() bool { return store.Stats().Nodes[0].Waiting == queue })
	if _, err := take(store, id, "k", patience); !errors.Is(err, headgate.ErrUnavailable) || !strings.Contains(err.Error(), "too many") {
		t.Errorf("decision with a full queue: got error %v, want ErrUnavailable with \"too many\"", err)
	}
	server.Resume()
	all.Wait()
	if served.Load() < queue {
		t.Errorf("%d decisions succeeded, want at least %d", served.Load(), queue)
	}
}
