package guard

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate"
)

// TestExplain compares what Explain says with the decision that follows at the same time, under random rules and requests: with waits,
// bans, marks of degraded requests, shadow and fallbacks. Explanations in between change no counter.
func TestExplain(t *testing.T) {
	for seed := range stories(600) {
		synctest.Test(t, func(t *testing.T) {
			var fallbacks []Fallback
			if seed%3 == 0 {
				fallbacks = Fallbacks()
			}
			story := newStory(t, seed, fallbacks)
			for n := range 40 {
				story.store.down = seed%3 == 0 && story.rnd.IntN(3) == 0
				story.explained(t, n)
			}
			story.end()
		})
		if t.Failed() {
			return
		}
	}
}

// explained explains a request, and then decides it.
func (s *story) explained(t *testing.T, n int) {
	t.Helper()
	s.pass(1500)
	req := &headgate.Request{Method: "GET", Path: "/", Header: sender([]string{"a", "b"}[s.rnd.IntN(2)])}
	before := s.left(t, req, s.store.down)
	var said Answer
	for range 1 + s.rnd.IntN(3) {
		if _, err := s.guard.Explain(t.Context(), req, &said); err != nil {
			t.Fatal(err)
		}
	}
	after := s.left(t, req, s.store.down)
	for w, was := range before {
		if is := after[w]; was != is {
			t.Errorf("seed %d, request %d: explanations changed %s from %+v to %+v", s.seed, n, w.policy, was, is)
		}
	}
	a := &s.answer
	if err := s.guard.Decide(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	sameAnswer(t, s.seed, n, &said, a)
	if a.Verdict == headgate.Wait && s.rnd.IntN(2) == 0 { // Its departure becomes spare.
		if err := s.guard.Cancel(t.Context(), a); err != nil && !s.store.down {
			t.Fatal(err)
		}
	}
}

// sameAnswer compares an explanation with a decision.
func sameAnswer(t *testing.T, seed uint64, n int, said, is *Answer) {
	t.Helper()
	x, y := said.Closest(), is.Closest()
	if said.Verdict != is.Verdict || (x == nil) != (y == nil) || len(said.Results) != len(is.Results) {
		t.Fatalf("seed %d, request %d: the explanation says %v with %+v, and the decision is %v with %+v",
			seed, n, said.Verdict, said.Results, is.Verdict, is.Results)
	}
	refuses := slices.ContainsFunc(is.Results, func(r Result) bool {
		return r.Decision.Verdict == headgate.Deny || r.Decision.Reason == headgate.Degraded
	})
	counts := slices.ContainsFunc(is.Results, func(r Result) bool { return r.window.countsRejected })
	if x != nil && !(refuses && counts) && (x.Policy != y.Policy || !sameDecision(&x.Decision, &y.Decision)) {
		t.Fatalf("seed %d, request %d: the explanation says %s with %+v, and the decision is %s with %+v",
			seed, n, x.Policy, x.Decision, y.Policy, y.Decision)
	}
	for i := range said.Results {
		x, y := &said.Results[i], &is.Results[i]
		if y.Decision.Reason == headgate.SoftLimit && x.Decision.Verdict == headgate.Allow {
			x.Decision.Reason = headgate.SoftLimit // Beside a limit that refuses or waits, a Peek of a group counts nothing.
		}
		if x.Policy != y.Policy || x.Fallback != y.Fallback || x.Decision.Verdict != y.Decision.Verdict || x.Decision.Reason != y.Decision.Reason {
			t.Fatalf("seed %d, request %d: of %s, the explanation says %+v, and the decision is %+v", seed, n, x.Policy, x.Decision, y.Decision)
		}
	}
}

// sameDecision compares what callers see.
func sameDecision(x, y *headgate.Decision) bool {
	return x.Verdict == y.Verdict && x.Reason == y.Reason && x.Limit == y.Limit && x.Remaining == y.Remaining && x.RetryAfter == y.RetryAfter &&
		(x.ResetAfter-y.ResetAfter).Abs() <= 1 // The end of a booking is rounded.
}
