package guard_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestPrepared: a prepared Config has no effect before Commit. Discard releases all its limits.
func TestPrepared(t *testing.T) {
	store := newCounted(t)
	g, err := guard.New(guard.Config{Store: store, Rules: manyRules(t, 2, 1), FairShare: among(t)})
	if err != nil {
		t.Fatal(err)
	}
	var a guard.Answer
	verdicts := func(want ...headgate.Verdict) {
		t.Helper()
		for i := range want {
			if err := g.Decide(t.Context(), request("/p", "a"), &a); err != nil || a.Verdict != want[i] {
				t.Errorf("request %d: %v, %v; want %v", i+1, a.Verdict, err, want[i])
			}
		}
	}
	next := guard.Config{Store: store, Rules: manyRules(t, 3, 50)}
	discarded, err := g.Prepare(next)
	if err != nil {
		t.Fatal(err)
	}
	if n := store.inUse(t); n != 5 {
		t.Errorf("%d limits are in use, want 2 that decide and 3 that are prepared", n)
	}
	discarded.Discard()
	if n := store.inUse(t); n != 2 {
		t.Errorf("%d limits are in use after the discard, want 2", n)
	}
	committed, err := g.Prepare(next)
	if err != nil {
		t.Fatal(err)
	}
	if s, shared := g.Shares(); !shared || s.Capacity != 4 {
		t.Errorf("before the commit the shares are %+v, %t", s, shared)
	}
	verdicts(headgate.Allow, headgate.Deny) // The first rule admits one request a minute.
	committed.Commit()
	if _, shared := g.Shares(); shared {
		t.Error("after the commit there is fair share, which was left out")
	}
	verdicts(headgate.Allow, headgate.Allow, headgate.Allow, headgate.Allow)
	if _, err := g.Prepare(guard.Config{Store: store, Rules: next.Rules, Namespace: "a b"}); err == nil {
		t.Error("a namespace with a space is prepared")
	}
	if _, err := new(guard.Guard).Prepare(next); err == nil {
		t.Error("a guard that was not made prepares")
	}
}

// TestPreparedAtATime: several Configs are prepared at a time. The last committed one stays, with
// its fair share.
func TestPreparedAtATime(t *testing.T) {
	store := newCounted(t)
	g, err := guard.New(guard.Config{Store: store, FairShare: among(t)})
	if err != nil {
		t.Fatal(err)
	}
	more, err := g.Prepare(guard.Config{Store: store, FairShare: among(t, func(f *guard.FairShare) { f.Capacity = 8 })})
	if err != nil {
		t.Fatal(err)
	}
	none, err := g.Prepare(guard.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	none.Commit()
	more.Commit()
	if s, shared := g.Shares(); !shared || s.Capacity != 8 {
		t.Errorf("the shares are %+v, %t; want a capacity of 8", s, shared)
	}
}
