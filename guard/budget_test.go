package guard

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

type budgetKey struct{}

// TestBudgetIsAContext: in any order of calls, a budget gives the same results as
// context.WithTimeout at the same time.
func TestBudgetIsAContext(t *testing.T) {
	for name, story := range map[string]struct {
		callers time.Duration // the caller's own timeout; 0 is unbounded
		leaves  bool          // the caller cancels at 10ms
		early   bool          // Done is called at once
		at      time.Duration
		want    error
	}{
		"it is in time":                    {at: 19 * time.Millisecond},
		"it is in time, and watched":       {at: 19 * time.Millisecond, early: true},
		"it is over":                       {at: 20 * time.Millisecond, want: context.DeadlineExceeded},
		"it is over, and watched":          {at: 21 * time.Millisecond, early: true, want: context.DeadlineExceeded},
		"the caller has less time":         {callers: 5 * time.Millisecond, at: 6 * time.Millisecond, want: context.DeadlineExceeded},
		"the caller has more time":         {callers: time.Hour, at: 20 * time.Millisecond, want: context.DeadlineExceeded},
		"the caller leaves":                {leaves: true, at: 11 * time.Millisecond, want: context.Canceled},
		"the caller leaves, it is watched": {leaves: true, early: true, at: 11 * time.Millisecond, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, leave := context.WithCancel(context.WithValue(t.Context(), budgetKey{}, name))
				defer leave()
				if story.callers > 0 {
					bounded, cancel := context.WithTimeout(caller, story.callers)
					defer cancel()
					caller = bounded
				}
				twin, cancel := context.WithTimeout(caller, 20*time.Millisecond)
				defer cancel()
				b := newBudget(caller, 20*time.Millisecond)
				defer b.end()
				if story.early {
					b.Done()
				}
				if story.leaves {
					time.AfterFunc(10*time.Millisecond, leave)
				}
				time.Sleep(story.at) //nolint:forbidigo // because it is the time of the bubble.
				synctest.Wait()
				compare(twin, t, b, story.want)
			})
		})
	}
}

func compare(twin context.Context, t *testing.T, b *budget, want error) {
	t.Helper()
	if b.Value(budgetKey{}) != twin.Value(budgetKey{}) {
		t.Errorf("it knows %v", b.Value(budgetKey{}))
	}
	got, _ := b.Deadline()
	deadline, _ := twin.Deadline()
	if !errors.Is(b.Err(), want) || !errors.Is(twin.Err(), want) || !got.Equal(deadline) {
		t.Errorf("it says %v and %v, want %v and %v (%v)", b.Err(), got, want, deadline, twin.Err())
	}
	select {
	case <-b.Done():
		if want == nil {
			t.Error("it is done too early")
		}
	default:
		if want != nil {
			t.Error("it is not done")
		}
	}
	if !errors.Is(b.Err(), want) || b.Value(budgetKey{}) != twin.Value(budgetKey{}) {
		t.Errorf("afterwards it says %v and %v", b.Err(), b.Value(budgetKey{}))
	}
}

// TestDerivedContexts: a context that a store derives needs no goroutine to watch the budget.
func TestDerivedContexts(t *testing.T) {
	watched := newBudget(t.Context(), time.Hour)
	before := runtime.NumGoroutine()
	derived, cancel := context.WithCancel(watched)
	defer cancel()
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines watch the budget", n-before)
	}
	watched.end()
	if !errors.Is(derived.Err(), context.Canceled) {
		t.Error("it outlives the budget")
	}
}

// TestBudgetIsOverWithTheDecision: a store keeps the context. The context has ended after the
// decision, and also a context derived from it.
func TestBudgetIsOverWithTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, watched := newBudget(t.Context(), time.Hour), newBudget(t.Context(), time.Hour)
		derived, cancel := context.WithCancel(watched)
		defer cancel()
		if derived.Err() != nil || derived.Value(budgetKey{}) != nil {
			t.Error("it ends before its time")
		}
		kept.end()
		watched.end()
		<-kept.Done()
		<-derived.Done()
		if !errors.Is(kept.Err(), context.Canceled) || !errors.Is(derived.Err(), context.Canceled) {
			t.Errorf("they end with %v and %v", kept.Err(), derived.Err())
		}
	})
}

func TestBudgetIsCheap(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { newBudget(ctx, time.Hour).end() }); n > 1 {
		t.Errorf("a budget that nobody watches allocates %v times", n)
	}
}

// BenchmarkBudget compares a budget with context.WithTimeout: for a store that answers at once, and
// for a store that waits for Done.
func BenchmarkBudget(b *testing.B) {
	caller, cancel := context.WithCancel(b.Context())
	defer cancel()
	for name, ask := range map[string]func(context.Context){
		"unwatched": func(ctx context.Context) { ctx.Deadline() },
		"watched":   func(ctx context.Context) { ctx.Done() },
	} {
		b.Run("budget/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bounded := newBudget(caller, time.Second)
				ask(bounded)
				bounded.end()
			}
		})
		b.Run("WithTimeout/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bounded, end := context.WithTimeout(caller, time.Second)
				ask(bounded)
				end()
			}
		})
	}
}
