package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// changes collects the reported state changes of a store's nodes.
type changes struct {
	mu  sync.Mutex
	all []redis.Change
}

func (c *changes) note(change redis.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, change)
}

func (c *changes) states() []breaker.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	var states []breaker.State
	for _, change := range c.all {
		states = append(states, change.State)
	}
	return states
}

// TestGivenUpAndBack: after three failures, the breaker of a silent server opens, and decisions
// fail at once. A probe closes the breaker when the server answers. Each change is reported
// once.
func TestGivenUpAndBack(t *testing.T) {
	server := testserver.Start(t)
	var reported changes
	store := open(t, redis.Config{
		Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Changed: reported.note,
		Breaker: breaker.Config{Failures: 3, Probe: 50 * time.Millisecond, MaxProbe: 100 * time.Millisecond},
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	if last := store.Stats().Nodes[0].LastFailure; !last.At.IsZero() || last.Err != nil {
		t.Errorf("before a failure: got the last failure %v", last)
	}
	paused := time.Now()
	server.Pause()
	for i := range 3 {
		if _, err := take(store, id, "k", 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("failure %d: got error %v, want context.DeadlineExceeded", i, err)
		}
	}
	_, err := take(store, id, "k", patience)
	if !errors.Is(err, headgate.ErrUnavailable) {
		t.Fatalf("after three failures: got error %v, want ErrUnavailable at once", err)
	}
	if got := reported.states(); len(got) != 1 || got[0] != breaker.Open {
		t.Errorf("reported states: got %v, want [Open]", got)
	}
	if node := store.Stats().Nodes[0]; node.State == breaker.Closed || node.Opened != 1 || node.Failures < 3 {
		t.Errorf("got %+v, want an open breaker, Opened 1 and at least 3 Failures", node)
	}
	last := store.Stats().Nodes[0].LastFailure
	if last.At.Before(paused) || !errors.Is(last.Err, context.DeadlineExceeded) {
		t.Errorf("got the last failure %v, want a timeout after %v", last, paused)
	}
	server.Resume()
	until(t, "an answer to a probe", func() bool {
		_, err := take(store, id, "k", 200*time.Millisecond)
		return err == nil
	})
	if now := store.Stats().Nodes[0].LastFailure; now.At.Before(last.At) || now.Err == nil {
		t.Errorf("after a success: got the last failure %v, want that of the outage", now)
	}
	if got := reported.states(); len(got) != 2 || got[1] != breaker.Closed {
		t.Errorf("reported states: got %v, want [Open Closed]", got)
	}
}

// TestStartsWithoutServer: a store opens while its server is down, and decisions fail at once.
// They succeed when the server has started.
func TestStartsWithoutServer(t *testing.T) {
	server := testserver.Start(t)
	server.Kill()
	var reported changes
	store := open(t, redis.Config{Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Changed: reported.note})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	for range 3 {
		if _, err := take(store, id, "k", patience); !errors.Is(err, headgate.ErrUnavailable) {
			t.Fatalf("no server: got error %v, want ErrUnavailable", err)
		}
	}
	if last := store.Stats().Nodes[0].LastFailure; last.Err == nil || last.At.IsZero() {
		t.Errorf("without a server: got the last failure %v", last)
	}
	server.Restart()
	until(t, "a decision", func() bool { _, err := take(store, id, "k", patience); return err == nil })
	if got := reported.states(); len(got) != 2 || got[0] != breaker.Open || got[1] != breaker.Closed {
		t.Errorf("reported states: got %v, want [Open Closed]", got)
	}
}

// TestCallersFaultsAreNotTheNodes: cancelled callers and invalid Ops do not count as failures of
// the server.
func TestCallersFaultsAreNotTheNodes(t *testing.T) {
	server := testserver.Start(t)
	store := open(t, redis.Config{
		Client: rueidis.ClientOption{InitAddress: []string{server.Addr}}, Breaker: breaker.Config{Failures: 1},
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	err := store.Apply(ctx, []headgate.Op{{Key: "k", Policy: id, Cost: 1}}, make([]headgate.Decision, 1))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled caller: got error %v, want context.Canceled", err)
	}
	server.Resume()
	twice := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "k", Policy: id, Cost: 1}}
	if err := store.Apply(t.Context(), twice, make([]headgate.Decision, 2)); err == nil {
		t.Error("a group with the same state twice was decided, want an error")
	}
	if _, err := take(store, id, "k", patience); err != nil {
		t.Errorf("after cancelled and invalid calls: got error %v, want a decision", err)
	}
}
