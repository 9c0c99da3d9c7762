package storetest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// testKeys: hostile keys work like any other key, and no two of them collide.
func (s *suite) testKeys(t *testing.T) {
	keys := []string{
		"", " ", "\x00", "\n", "\r\n", "a", "A", "a\x00", "{a}", "{a}b", "{", "}", "{}", "a}b{c", "*", "?", "[a]",
		"\xff\xfe", "ключ", "key\r\nSET x 1", strings.Repeat("x", 1<<16), strings.Repeat("x", 1<<16-1) + "y", "%s%n", "'; --",
	}
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, _ headgate.Policy, id headgate.PolicyID) {
		for i, k := range keys {
			if got := b.remaining(k, id); got != 4 {
				b.t.Errorf("key %d (%.20q) shares its state with another: %d remain of 4", i, k, got)
			}
			b.take(k, id, 1+int64(i)%4)
		}
		for i, k := range keys {
			if got := b.remaining(k, id); got != 4-1-int64(i)%4 {
				b.t.Errorf("key %d (%.20q): %d remain, want %d", i, k, got, 4-1-int64(i)%4)
			}
		}
	})
}

// testConcurrency: no unit is given twice, however many goroutines take at once.
func (s *suite) testConcurrency(t *testing.T) {
	s.each(t, headgate.Limit{Count: 500, Per: time.Hour}, func(b *bench, _ headgate.Policy, id headgate.PolicyID) {
		var passed, pairs, returned atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 200 {
					passed.Add(b.countPassed(headgate.Op{Key: "one", Policy: id, Cost: 1}))
					// Two keys, in either order: no deadlock, and no pair passes by half.
					x, y := headgate.Op{Key: "x", Policy: id, Cost: 1}, headgate.Op{Key: "y", Policy: id, Cost: 1}
					if i%2 == 0 {
						x, y = y, x
					}
					pairs.Add(b.countPassed(x, y))
					returned.Add(b.takeAndReturn(headgate.Op{Key: "back", Policy: id, Cost: 1}))
				}
			})
		}
		all.Wait()
		if passed.Load() != 500 {
			b.t.Errorf("%d of 1,600 passed one limit of 500", passed.Load())
		}
		if s.apart {
			s.wantNearly(b, id, pairs.Load())
			return
		}
		if pairs.Load() != 1000 {
			b.t.Errorf("%d Ops passed in pairs, want 500 pairs", pairs.Load())
		}
		b.wantRemaining("one of the pair", "x", id, 0)
		b.wantRemaining("the other", "y", id, 0)
	})
}

// wantNearly checks a store that decides pairs in parts. It admits whole pairs only, and none
// above the limit. It may leave one pair unused for each caller: a caller can be refused for
// the last units while another one holds units that it returns.
func (s *suite) wantNearly(b *bench, id headgate.PolicyID, pairs int64) {
	const callers = 8
	if pairs%2 != 0 || pairs > 1000 || pairs < 1000-2*callers {
		b.t.Errorf("%d Ops passed in pairs, want 500 pairs, or up to %d less", pairs, callers)
	}
	for _, key := range []string{"x", "y"} {
		if left := b.remaining(key, id); left < 0 || left > 500-pairs/2 {
			b.t.Errorf("%s has %d left after %d pairs", key, left, pairs/2)
		}
	}
}

// countPassed counts the Ops of a group that took units.
func (b *bench) countPassed(ops ...headgate.Op) int64 {
	decisions := make([]headgate.Decision, len(ops))
	if err := b.store.Apply(context.Background(), ops, decisions); err != nil {
		b.t.Errorf("Apply: %v", err)
		return 0
	}
	n := int64(0)
	for _, d := range decisions {
		if !d.Receipt.Empty() {
			n++
		}
	}
	return n
}

func (b *bench) takeAndReturn(op headgate.Op) int64 {
	decisions := make([]headgate.Decision, 1)
	if err := b.store.Apply(context.Background(), []headgate.Op{op}, decisions); err != nil {
		b.t.Errorf("Apply: %v", err)
		return 0
	}
	if err := b.store.Return(context.Background(), []headgate.Receipt{decisions[0].Receipt}); err != nil {
		b.t.Errorf("Return: %v", err)
	}
	return 1
}
