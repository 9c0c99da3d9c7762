package prefetch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
)

// ample is a limit that the loops never use up.
func ample(a headgate.Algorithm) headgate.Policy {
	p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 1 << 40, Per: time.Hour}, Hold: 10 * time.Second, Batch: 1 << 30}
	if a == headgate.SlidingWindow {
		p.SubWindows = 4
	}
	return p
}

// TestHotPathAllocatesNothing: a unit from a stash and a repeated refusal, alone and in a
// group.
func TestHotPathAllocatesNothing(t *testing.T) {
	s := behind(t, newSource(t, nil), prefetch.Config{DenyFor: time.Hour})
	bucket, window := prepare(t, s, ample(headgate.TokenBucket)), prepare(t, s, ample(headgate.SlidingWindow))
	empty := prepare(t, s, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: 24 * time.Hour}})
	d := make([]headgate.Decision, 2)
	one := headgate.Op{Key: "k", Policy: bucket, Cost: 1}
	none := headgate.Op{Key: "k", Policy: empty, Cost: 1}
	windows := []headgate.Op{{Key: "k", Policy: bucket, Cost: 1}, {Key: "k", Policy: window, Cost: 1, Window: 1}}
	keys := []headgate.Op{{Key: "k", Policy: bucket, Cost: 1}, {Key: "l", Policy: window, Cost: 1}}
	refused := []headgate.Op{{Key: "k", Policy: empty, Cost: 1}, {Key: "l", Policy: empty, Cost: 1}}
	for name, call := range map[string]func() error{
		"Take":              func() error { return s.Take(t.Context(), &one, &d[0]) },
		"Take refused":      func() error { return s.Take(t.Context(), &none, &d[0]) },
		"Apply":             func() error { return s.Apply(t.Context(), windows[:1], d) },
		"two windows":       func() error { return s.Apply(t.Context(), windows, d) },
		"two keys":          func() error { return s.Apply(t.Context(), keys, d) },
		"two keys, refused": func() error { return s.Apply(t.Context(), refused, d) },
	} {
		for range 3 {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
		before := s.Stats()
		n := testing.AllocsPerRun(200, func() { _ = call() })
		after := s.Stats()
		if race.On && len(name) > 5 {
			continue // The working memory of a group comes from a sync.Pool.
		}
		if n != 0 || after.Asked != before.Asked || after.Flights != before.Flights {
			t.Errorf("%s allocates %v times, asks %d times and sends %d flights",
				name, n, after.Asked-before.Asked, after.Flights-before.Flights)
		}
	}
}

// BenchmarkTake compares a unit from a stash with store/memory on the same hot keys.
func BenchmarkTake(b *testing.B) {
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%d", i)
	}
	for _, hot := range []int{1, 16, 1024} {
		for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingWindow} {
			plain := ample(a)
			plain.Hold, plain.Batch = 0, 0
			mem, _ := memory.New(memory.Config{})
			front := behind(b, newSource(b, nil), prefetch.Config{})
			id, held := prepare(b, mem, plain), prepare(b, front, ample(a))
			for name, take := range map[string]func(*headgate.Op, *headgate.Decision) error{
				"memory": func(op *headgate.Op, d *headgate.Decision) error { op.Policy = id; return mem.Take(op, d) },
				"prefetch": func(op *headgate.Op, d *headgate.Decision) error {
					op.Policy = held
					return front.Take(b.Context(), op, d)
				},
			} {
				b.Run(fmt.Sprintf("%d keys/%s/%s", hot, a, name), func(b *testing.B) {
					b.RunParallel(func(pb *testing.PB) {
						var op headgate.Op
						var d headgate.Decision
						op.Cost = 1
						for i := 0; pb.Next(); i++ {
							op.Key = keys[i%hot]
							_ = take(&op, &d)
						}
					})
				})
			}
		}
	}
}
