package guard

import (
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
)

// TestLocalIsLikeTheStore: one guard has an unreachable store and a LocalShare of 100 %. It decides
// like a guard with a working store, except for the reason.
func TestLocalIsLikeTheStore(t *testing.T) {
	local := []Fallback{FallbackLocal}
	for seed := range stories(300) {
		synctest.Test(t, func(t *testing.T) {
			there, gone := newStory(t, seed, local), newStory(t, seed, local)
			gone.store.down = true
			there.together(t)
			gone.together(t)
			for n := range 40 {
				there.pass(1500)
				there.ask(t)
				gone.rnd.IntN(1500) // Time passes for both guards.
				gone.ask(t)
				same(t, seed, n, &there.answer, &gone.answer)
			}
			there.end()
		})
		if t.Failed() {
			return
		}
	}
}

// together makes the rules all or nothing. With independent rules, the store gives a booked
// departure of a refused request to the next request, and Local does not.
func (s *story) together(t *testing.T) {
	t.Helper()
	c := s.guard.current.Load().config
	c.Independent = false
	if err := s.guard.Reload(c); err != nil {
		t.Fatal(err)
	}
}

// ask makes a random request, and cancels some of the waiting ones.
func (s *story) ask(t *testing.T) {
	t.Helper()
	req := &headgate.Request{Method: "GET", Path: "/", Header: sender([]string{"a", "b"}[s.rnd.IntN(2)])}
	if err := s.guard.Decide(t.Context(), req, &s.answer); err != nil {
		t.Fatal(err)
	}
	if s.rnd.IntN(3) == 0 {
		if err := s.guard.Cancel(t.Context(), &s.answer); err != nil {
			t.Fatal(err)
		}
	}
}

func same(t *testing.T, seed uint64, n int, there, gone *Answer) {
	t.Helper()
	if there.Verdict != gone.Verdict || len(there.Results) != len(gone.Results) || there.closest != gone.closest {
		t.Fatalf("seed %d, request %d: %v by %d of %d, and away %v by %d of %d", seed, n, there.Verdict, there.closest,
			len(there.Results), gone.Verdict, gone.closest, len(gone.Results))
	}
	for i := range there.Results {
		r := &gone.Results[i]
		want, got := there.Results[i].Decision, r.Decision
		switch want.Reason {
		case headgate.WithinLimit, headgate.OverLimit, headgate.QueueFull, headgate.WaitTooLong:
			want.Reason = headgate.StoreUnavailable
		default:
		}
		if want.Receipt.Empty() != got.Receipt.Empty() || !r.Fallback || there.Results[i].Fallback {
			t.Errorf("seed %d, request %d: %s took %+v, and away %+v", seed, n, r.Policy, want.Receipt, got.Receipt)
		}
		want.Receipt, got.Receipt = headgate.Receipt{}, headgate.Receipt{}
		if want != got {
			t.Errorf("seed %d, request %d: %s decides %+v, and away %+v", seed, n, r.Policy, want, got)
		}
	}
}
