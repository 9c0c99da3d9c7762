package prefetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/versions"
)

// TestHeldWindowsBesideABucket: the store's clock has stepped back. A fixed window is held at
// its start, while a bucket of the same group is decided at the present. Units that are
// counted in the held window are spent in that window, by the decision's time. The window
// before is full, and gets none of them.
func TestHeldWindowsBesideABucket(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: -1})
	d.clock.advance(500 * time.Millisecond)
	plain := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Per: time.Second}}
	windowed := plain
	windowed.Hold, windowed.Batch = 400*time.Millisecond, 12
	bucket := headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Second}, Hold: 400 * time.Millisecond, Batch: 12}
	a, b := prepare(t, d, bucket), prepare(t, d, windowed)
	w := &world{t: t, spends: map[string][]versions.Spend{}}
	note := func(ops []headgate.Op) bool {
		decisions, _ := d.ask(ops...)
		for i, one := range decisions {
			if one.Verdict != headgate.Allow {
				return false
			}
			if ops[i].Policy == b {
				w.spends["k"] = append(w.spends["k"], versions.Spend{At: one.At, Cost: ops[i].Cost})
			}
		}
		return true
	}
	alone := []headgate.Op{{Key: "k", Policy: b, Window: 1, Cost: 20}} // The cost is too large for a stash.
	for range 5 {
		if !note(alone) {
			t.Fatal("the window is not empty")
		}
	}
	d.clock.advance(600 * time.Millisecond)
	note(alone) // The next window begins.
	d.clock.step(-300 * time.Millisecond)
	both := []headgate.Op{{Key: "k", Policy: a, Cost: 1}, {Key: "k", Policy: b, Window: 1, Cost: 1}}
	for range 30 {
		note(both)
		d.clock.advance(time.Millisecond)
	}
	w.judge("k", plain, false)
}

// TestBordersKeepAThousandth: a clock that is as slow as Config allows spends no unit of a
// window after the end of that window by the source's clock.
func TestBordersKeepAThousandth(t *testing.T) {
	clock := &manual{now: time.Hour + 2*time.Second}
	far := newSmallSource(t, clock.theirs)
	slow := func() time.Duration { return time.Duration(float64(clock.ours()-time.Hour) * 0.9995) }
	s := behind(t, far, prefetch.Config{Clock: slow, DenyFor: -1})
	id := prepare(t, s, headgate.Policy{
		Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100, Per: 10 * time.Second}, Hold: 10 * time.Second, Batch: 10,
	})
	warm(t, s, id, 1)
	clock.advance(8*time.Second + 2*time.Millisecond) // The next window has begun.
	before := far.calls.Load()
	d, err := take(t.Context(), s, id, 1)
	if err != nil || far.calls.Load() == before {
		t.Errorf("2 ms after the window's end a unit of it is spent, said to be at %v (%v)", d.At.Sub(epoch), err)
	}
}

// TestNeverIsNotRepeatedAsOver: a request that can never pass gets the reason Never, also
// while smaller requests of its key are known to be over the limit.
func TestNeverIsNotRepeatedAsOver(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, hundred)
	d.want("all", headgate.Allow, true, headgate.Op{Key: "k", Policy: id, Cost: 100})
	d.want("more", headgate.Deny, true, headgate.Op{Key: "k", Policy: id, Cost: 1})
	got, _ := d.ask(headgate.Op{Key: "k", Policy: id, Cost: 101})
	if got[0].Reason != headgate.Never || got[0].RetryAfter != 0 {
		t.Errorf("101 of 100: %v, to come again in %v", got[0].Reason, got[0].RetryAfter)
	}
	pair := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "l", Policy: id, Cost: 101}}
	if got, _ := d.ask(pair...); got[1].Reason != headgate.Never {
		t.Errorf("101 of 100 beside one that is over: %v", got[1].Reason)
	}
}

// TestLateRefusalsAreNotRepeated: an answer is on its way while the key is forgotten, or units
// of the key are returned. The answer is outdated, and is not repeated.
func TestLateRefusalsAreNotRepeated(t *testing.T) {
	for name, lift := range map[string]func(t *testing.T, s *prefetch.Store, taken headgate.Receipt) error{
		"forgotten": func(t *testing.T, s *prefetch.Store, _ headgate.Receipt) error {
			t.Helper()
			return s.Forget(t.Context(), []headgate.Op{{Key: "k"}})
		},
		"returned": func(t *testing.T, s *prefetch.Store, taken headgate.Receipt) error {
			t.Helper()
			return s.Return(t.Context(), []headgate.Receipt{taken})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := behind(t, link(t, 10*time.Millisecond), prefetch.Config{})
				id := prepare(t, s, hundred)
				all, err := take(t.Context(), s, id, 100)
				if err != nil {
					t.Fatal(err)
				}
				answer := make(chan headgate.Decision, 1)
				go func() {
					d, err := take(t.Context(), s, id, 1)
					if err != nil {
						t.Error(err)
					}
					answer <- d
				}()
				rest(15 * time.Millisecond) // The source has refused the request, and the answer is on its way.
				if err := lift(t, s, all.Receipt); err != nil {
					t.Fatal(err)
				}
				if d := <-answer; d.Verdict != headgate.Deny {
					t.Fatalf("%+v", d)
				}
				if d, err := take(t.Context(), s, id, 1); err != nil || d.Verdict != headgate.Allow {
					t.Errorf("after that: %v, to come again in %v (%v)", d.Reason, d.RetryAfter, err)
				}
			})
		})
	}
}
