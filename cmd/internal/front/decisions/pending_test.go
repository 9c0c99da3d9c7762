package decisions

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
)

// shut is a store that decides nothing until it is opened.
type shut struct {
	headgate.Store

	open          chan struct{}
	waiting, most atomic.Int64 // Ops now, and at most so far

	mu   sync.Mutex
	keys [][]string // of the Ops of each call
}

func (s *shut) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.keep(ops)
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

// keep keeps the keys of a call to the open store.
func (s *shut) keep(ops []headgate.Op) {
	select {
	case <-s.open:
	default:
		return
	}
	keys := make([]string, len(ops))
	for i := range ops {
		keys[i] = strings.Clone(ops[i].Key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, keys)
}

// take gives the keys of the calls since the last take.
func (s *shut) take() (keys [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, s.keys = s.keys, nil
	return keys
}

// TestPendingOfAllStreams: when 100,000 requests are pending on all streams together, no stream reads a further message.
// Each is read and answered later.
func TestPendingOfAllStreams(t *testing.T) {
	store, r := serveShut(t)
	const message, more = 1000, 5
	requests := paths("p", message)
	streams := make([]*client, maxPending/message+more)
	for i := range streams {
		streams[i] = r.open(t)
		streams[i].send(&headgatev1.DecideRequest{Requests: requests})
	}
	until(t, "100,000 pending requests", func() bool { return store.waiting.Load() == 100_000 && !r.takes(1) })
	close(store.open)
	for i, s := range streams {
		if got := verdicts(s.receive()); got != strings.Repeat("a", message) {
			t.Errorf("stream %d gets %.40s", i, got)
		}
	}
	until(t, "no pending request", func() bool { return r.takes(maxPending) })
	if most := store.most.Load(); most > 100_000 {
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
