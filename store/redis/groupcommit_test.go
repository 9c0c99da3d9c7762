package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestGroupCommit: what waits while calls are on their way goes in one call; what
// comes alone goes alone.
func TestGroupCommit(t *testing.T) {
	server := testserver.Start(t)
	store := newStore(t, server.Addr, nil)
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
	until(t, "a queue behind two calls", func() bool { return store.Stats().Nodes[0].Waiting == callers-2 })
	server.Resume()
	all.Wait()
	if node := store.Stats().Nodes[0]; node.Calls != 3+3 || node.Decisions != 3+callers {
		t.Errorf("three alone and %d together: %+v, want 6 calls", callers, node)
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
	store := newStore(t, server.Addr, nil)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _, _ = take(store, id, "k", patience) })
	}
	until(t, "two calls on their way", func() bool { return store.Stats().Nodes[0].Calls == 3 })
	var leaving sync.WaitGroup
	for range 5 {
		leaving.Go(func() {
			if _, err := take(store, id, "k", 20*time.Millisecond); err == nil {
				t.Error("a paused server has answered")
			}
		})
	}
	all.Go(func() {
		if d, err := take(store, id, "k", patience); err != nil || d.Remaining != 96 {
			t.Errorf("the one who stayed: %d remain, %v", d.Remaining, err)
		}
	})
	until(t, "six that wait", func() bool { return store.Stats().Nodes[0].Waiting == 6 })
	leaving.Wait()
	server.Resume()
	all.Wait()
	if node := store.Stats().Nodes[0]; node.Unsent != 5 {
		t.Errorf("%d were not sent, want 5: %+v", node.Unsent, node)
	}
}

// TestQueueIsBounded: when as many wait as a node can be expected to serve, who comes
// next is told so at once.
func TestQueueIsBounded(t *testing.T) {
	server := testserver.Start(t)
	store := newStore(t, server.Addr, nil)
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100_000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	const onTheWay, queue = 2, 1 << 14
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
	if served.Load() != onTheWay+queue {
		t.Errorf("%d of %d were served", served.Load(), onTheWay+queue)
	}
}
