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

// TestGroupCommit: what waits while calls are on their way goes in one call; what
// comes alone goes alone.
func TestGroupCommit(t *testing.T) {
	server := testserver.Start(t)
	store := openPatient(t, server.Addr)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	for i := range 3 {
		if _, err := take(store, id, "alone", patience); err != nil {
			t.Fatal(err)
		}
		if node := store.Stats().Nodes[0]; node.Calls != uint64(i)+1 || node.Decisions != uint64(i)+1 {
			t.Fatalf("%d decisions alone: %+v", i+1, node)
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
				t.Errorf("caller %d: %v %v", c, d.Verdict, err)
			}
			remaining[c] = d.Remaining
		})
	}
	before := waitFor(t, store, callers)
	server.Resume()
	all.Wait()
	if node := store.Stats().Nodes[0]; node.Calls != 3+before+1 || node.Decisions != 3+callers {
		t.Errorf("three alone, %d on their way and %d together: %+v", before, callers-int(before), node)
	}
	seen := map[string]bool{}
	for c, left := range remaining {
		name := fmt.Sprint(c%2, left)
		if seen[name] {
			t.Errorf("two decisions on one key left %d", left)
		}
		seen[name] = true
	}
}

// TestLeftBehind: who leaves while waiting takes nothing, and the others are answered.
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
	for store.Stats().Nodes[0].Waiting == 0 { // As many are on their way as there can be.
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
				t.Error("a paused server has answered")
			}
		})
	}
	waitFor(t, store, stays+5)
	leaving.Wait()
	server.Resume()
	all.Wait()
	if node := store.Stats().Nodes[0]; node.Unsent != 5 {
		t.Errorf("%d were not sent, want 5: %+v", node.Unsent, node)
	}
	if d, err := take(store, id, "k", patience); err != nil || d.Remaining != int64(100-2-stays) {
		t.Errorf("after %d who stayed %d remain, %v", stays, d.Remaining, err)
	}
}

// openPatient opens a store for which a server that a test has paused is not lost,
// however long a busy machine takes to send all that shall wait for it.
func openPatient(t *testing.T, addr string) *redis.Store {
	t.Helper()
	return open(t, redis.Config{Client: rueidis.ClientOption{
		InitAddress: []string{addr}, ConnWriteTimeout: time.Hour,
	}})
}

// waitFor waits until so many are on their way or wait, each on its way alone, and
// gives how many those are.
func waitFor(t *testing.T, store *redis.Store, callers int) (onTheWay uint64) {
	t.Helper()
	until(t, "so many callers", func() bool {
		node := store.Stats().Nodes[0]
		onTheWay = uint64(node.InFlight)
		return node.InFlight+node.Waiting == callers
	})
	return onTheWay
}

// TestQueueIsBounded: when as many wait as a node can be expected to serve, who comes
// next is told so at once.
func TestQueueIsBounded(t *testing.T) {
	server := testserver.Start(t)
	store := openPatient(t, server.Addr)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100_000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	const onTheWay, queue = 32, 1 << 14 // Of those on their way there are 2 or 32.
	var all sync.WaitGroup
	var served atomic.Int64
	for range onTheWay + queue {
		all.Go(func() {
			if d, err := take(store, id, "k", patience); err == nil && d.Verdict == headgate.Allow {
				served.Add(1)
			}
		})
	}
	until(t, "a full queue", func() bool { return store.Stats().Nodes[0].Waiting == queue })
	if _, err := take(store, id, "k", patience); !errors.Is(err, headgate.ErrUnavailable) || !strings.Contains(err.Error(), "too many") {
		t.Errorf("one more: %v, want that too many wait", err)
	}
	server.Resume()
	all.Wait()
	if served.Load() < queue {
		t.Errorf("%d of %d were served", served.Load(), queue)
	}
}
