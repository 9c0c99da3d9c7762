package prefetch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// source is a shared store that implements Source in a slow and simple way: in memory, one
// request at a time. way is called before and after each call.
type source struct {
	*memory.Store

	mu     sync.Mutex
	way    func(ctx context.Context) error
	calls  atomic.Int64
	grants atomic.Int64
}

func newSource(tb testing.TB, clock func() headgate.Instant) *source {
	tb.Helper()
	return newSourceOf(tb, 8<<20, clock)
}

// newSmallSource makes a source for tests that need thousands of them.
func newSmallSource(tb testing.TB, clock func() headgate.Instant) *source {
	tb.Helper()
	return newSourceOf(tb, 128<<10, clock)
}

func newSourceOf(tb testing.TB, bytes int64, clock func() headgate.Instant) *source {
	tb.Helper()
	store, err := memory.New(memory.Config{MaxMemory: bytes, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	return &source{Store: store}
}

// behind puts a Store in front of the source.
func behind(tb testing.TB, s prefetch.Source, c prefetch.Config) *prefetch.Store {
	tb.Helper()
	c.Source = s
	store, err := prefetch.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(store.Close)
	return store
}

func (s *source) travel(ctx context.Context) error {
	if s.way == nil {
		return nil
	}
	return s.way(ctx)
}

func (s *source) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.calls.Add(1)
	if err := s.travel(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	err := s.Store.Apply(ctx, ops, decisions)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.travel(ctx)
}

func (s *source) Grant(ctx context.Context, ops []headgate.Op, least []int64, decisions []headgate.Decision) error {
	s.calls.Add(1)
	s.grants.Add(1)
	if err := s.travel(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && ops[n].Group == ops[0].Group {
			n++
		}
		if err := s.grant(ctx, ops[:n], least[0], decisions[:n]); err != nil {
			s.mu.Unlock()
			return err
		}
		ops, least, decisions = ops[n:], least[n:], decisions[n:]
	}
	s.mu.Unlock()
	return s.travel(ctx)
}

// grant tries every number of units, from the key's Remaining downwards.
func (s *source) grant(ctx context.Context, ops []headgate.Op, least int64, decisions []headgate.Decision) error {
	tries := make([]headgate.Op, len(ops))
	n := ops[0].Cost
	for i, op := range ops {
		op.Kind, op.Cost = headgate.Peek, 0
		tries[i] = op
	}
	if err := s.Store.Apply(ctx, tries, decisions); err != nil {
		return err
	}
	for i := range decisions {
		n = min(n, decisions[i].Remaining)
	}
	for i, op := range ops {
		op.Cost = max(n, least)
		tries[i] = op
	}
	return s.Store.Apply(ctx, tries, decisions)
}

func prepare(tb testing.TB, s headgate.Store, p headgate.Policy) headgate.PolicyID {
	tb.Helper()
	id, err := s.Prepare(p)
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// manual is a pair of clocks that a test moves: the source's clock and the Store's clock.
type manual struct {
	mu   sync.Mutex
	now  time.Duration
	skew time.Duration // The sum of the steps of the source's clock.
}

const epoch = headgate.Instant(1_704_110_400_000_000_000)

func (m *manual) ours() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *manual) theirs() headgate.Instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return epoch.Add(m.now + m.skew)
}

// step moves only the source's clock.
func (m *manual) step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew += d
}

func (m *manual) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += d
}

// rest passes virtual time. Call it only in a synctest bubble.
func rest(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a synctest bubble
}

// seeds gives n, or 1 under the race detector, which slows the test down tenfold.
func seeds(n uint64) uint64 {
	if race.On {
		return 1
	}
	return n
}
