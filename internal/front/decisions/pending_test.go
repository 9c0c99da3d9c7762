package decisions

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	headgatev1 "github.com/headgate/headgate/proto/headgate/v1"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// shut is a store that decides nothing until it is opened.
type shut struct {
	headgate.Store

	open          chan struct{}
	waiting, most atomic.Int64 // Ops now, and at most so far
}

func (s *shut) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	now := s.waiting.Add(int64(len(ops)))
	defer s.waiting.Add(-int64(len(ops)))
	for {
		if most := s.most.Load(); now <= most || s.most.CompareAndSwap(most, now) {
			break
		}
	}
	select {
	case <-s.open:
		return s.Store.Apply(ctx, ops, decisions)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestPendingOfAllStreams: when 100,000 requests are pending on all streams together, no stream reads a further message.
// Each is read and answered later.
func TestPendingOfAllStreams(t *testing.T) {
	behind, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	path, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	store := &shut{Store: behind, open: make(chan struct{})}
	g, err := guard.New(guard.Config{Store: store, StoreTimeout: patience, Rules: []guard.Rule{{
		Rule: rule.Rule{Name: "many", Key: []rule.Part{path}}, Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1 << 30, Per: time.Hour}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := serveWithin(t, g, Options{Shared: true}, 4<<30) // The memory of the calls is no bound here.
	const message, more = 1000, 5
	paths := make([]string, message) // Requests with one key would be one Op.
	for i := range paths {
		paths[i] = fmt.Sprint("/", i)
	}
	requests := of(paths...)
	streams := make([]*client, maxPending/message+more)
	for i := range streams {
		streams[i] = r.open(t)
		streams[i].send(&headgatev1.DecideRequest{Requests: requests})
	}
	until(t, "100,000 pending requests", func() bool { return store.waiting.Load() == maxPending && !r.takes(1) })
	close(store.open)
	for i, s := range streams {
		if got := verdicts(s.receive()); got != strings.Repeat("a", message) {
			t.Errorf("stream %d gets %.40s", i, got)
		}
	}
	until(t, "no pending request", func() bool { return r.takes(maxPending) })
	if most := store.most.Load(); most > maxPending {
		t.Errorf("%d requests were pending at once", most)
	}
}

// takes reports whether n more requests may be pending.
func (r *running) takes(n int64) bool {
	ok := r.pending.TryAcquire(n)
	if ok {
		r.pending.Release(n)
	}
	return ok
}
