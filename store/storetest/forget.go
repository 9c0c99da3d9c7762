package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func (b *bench) forget(ops ...headgate.Op) {
	b.t.Helper()
	if err := b.store.Forget(b.t.Context(), ops); err != nil {
		b.t.Errorf("Forget(%+v): %v", ops, err)
	}
}

// testForget: a forgotten key is like a new key. Other keys are not affected.
func (s *suite) testForget(t *testing.T) {
	s.each(t, headgate.Limit{Count: 4, Per: time.Minute}, func(b *bench, p headgate.Policy, id headgate.PolicyID) {
		for range 20 { // Twenty rounds use the whole limit each: no unit is lost.
			old := b.take("k", id, 4)
			b.forget(headgate.Op{Key: "k"})
			b.wantRemaining("forgotten", "k", id, 4)
			b.giveBack(old.Receipt)
			b.wantRemaining("forgotten and returned", "k", id, 4)
			fresh := b.take("k", id, 3)
			b.giveBack(old.Receipt)
			b.wantRemaining("a receipt from before", "k", id, 1)
			b.giveBack(fresh.Receipt)
			b.wantRemaining("one from after", "k", id, 4)
		}
		b.take("k", id, 4)
		b.apply(headgate.Op{Key: "k", Policy: id, Window: 1, Cost: 4}, headgate.Op{Key: "l", Policy: id, Cost: 4})
		b.forget()
		b.forget(headgate.Op{Key: "never seen"}, headgate.Op{Key: "k", Window: 7}, headgate.Op{})
		b.wantReason("others were forgotten", b.take("k", id, 1), excess(p))
		b.forget(headgate.Op{Key: "k"}, headgate.Op{Key: "k"}, headgate.Op{Key: "l"})
		b.wantRemaining("the first of two", "k", id, 4)
		b.wantRemaining("the second of two", "l", id, 4)
		if d := b.apply(headgate.Op{Key: "k", Policy: id, Window: 1, Cost: 1})[0]; d.Reason != excess(p) {
			b.t.Errorf("another window of the key: %v, want it as it was", d.Reason)
		}
	})
	if !s.without[headgate.Ban] {
		t.Run(headgate.Ban.String(), func(t *testing.T) { forgetBan(s.bench(t)) })
	}
	t.Run("Concurrency", func(t *testing.T) {
		s.each(t, headgate.Limit{Count: 4, Per: time.Hour}, forgetWhileTaking)
	})
}

// forgetBan: Forget lifts a ban.
func forgetBan(b *bench) {
	id := b.prepare(banned())
	b.wantBan("too many", b.take("k", id, 4), 40*time.Second)
	b.forget(headgate.Op{Key: "k"})
	b.wantFree("lifted", b.take("k", id, 3), 0, 10*time.Second)
	b.wantBan("too many again", b.take("k", id, 1), 40*time.Second)
}

// forgetWhileTaking: Forget runs while other goroutines take, one key and pairs of keys.
func forgetWhileTaking(b *bench, _ headgate.Policy, id headgate.PolicyID) {
	x, y := headgate.Op{Key: "x", Policy: id, Cost: 1}, headgate.Op{Key: "y", Policy: id, Cost: 1}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for range 100 {
				switch g {
				case 0:
					b.forget(x, y)
				case 1:
					b.apply(y, x)
				default:
					b.takeAndReturn(x)
				}
			}
		})
	}
	all.Wait()
	b.forget(y, x)
	b.wantRemaining("forgotten at last", "x", id, 4)
	b.wantRemaining("forgotten at last", "y", id, 4)
}
