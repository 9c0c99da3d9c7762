package guard

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestTaken uses the random rules of TestConservation. What a request took can be given back after its
// Answer was used again, once, from the store or from Local.
func TestTaken(t *testing.T) {
	for seed := range stories(400) {
		synctest.Test(t, func(t *testing.T) {
			story := newStory(t, seed, Fallbacks())
			for n := range 40 {
				story.store.down = story.rnd.IntN(3) == 0
				story.giveBack(t, n)
			}
			story.end()
		})
		if t.Failed() {
			return
		}
	}
}

// giveBack decides a request and gives back what it took.
func (s *story) giveBack(t *testing.T, n int) {
	t.Helper()
	s.pass(1500)
	req := &headgate.Request{Method: "GET", Path: "/", Header: sender([]string{"a", "b"}[s.rnd.IntN(2)])}
	before := s.left(t, req, s.store.down)
	a := &s.answer
	if err := s.guard.Decide(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	taken := []Taken{a.Taken()}
	if a.Verdict == headgate.Deny {
		if !taken[0].Empty() {
			t.Errorf("seed %d, request %d: a refusal took %+v", s.seed, n, taken)
		}
		return
	}
	results := slices.Clone(a.Results)
	clear(a.Results[:cap(a.Results)]) // As a later decision may.
	a.reset()
	for range 2 {
		if err := s.guard.GiveBack(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		s.returned(t, n, req, results, before)
	}
}

// returning counts the calls of Return.
type returning struct {
	headgate.Store

	returns int
}

// Return implements headgate.Store.
func (r *returning) Return(ctx context.Context, receipts []headgate.Receipt) error {
	r.returns++
	return r.Store.Return(ctx, receipts)
}

// TestTakenBatch gives back a part of a batch, in one call of the store, after a reload that removed the rule.
func TestTakenBatch(t *testing.T) {
	kept, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	store := &returning{Store: kept}
	c := Config{Store: store, StoreTimeout: time.Second, Rules: []Rule{{
		Rule: rule.Rule{Name: "all", Key: []rule.Part{all}},
		Policies: []headgate.Policy{
			{Limit: headgate.Limit{Count: 10, Per: limit.MaxPer}}, {Limit: headgate.Limit{Count: 100, Per: limit.MaxPer}},
		},
	}}}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	requests, answers := make([]headgate.Request, 10), make([]Answer, 10)
	taken := make([]Taken, 0, 10)
	g.DecideAll(t.Context(), requests, answers)
	for i := range answers {
		taken = append(taken, answers[i].Taken())
	}
	g.DecideAll(t.Context(), requests[:1], answers[:1])
	if answers[0].Verdict != headgate.Deny {
		t.Fatalf("the eleventh of ten units: %v", answers[0].Verdict)
	}
	clear(answers) // Only the Taken keep the limits prepared now.
	rules := c.Rules
	if c.Rules = nil; g.Reload(c) != nil {
		t.Fatal("the reload failed")
	}
	runtime.GC()
	if err := g.GiveBack(t.Context(), taken[3:7]); err != nil || store.returns != 1 {
		t.Errorf("got %v, with %d returns, want 1", err, store.returns)
	}
	if c.Rules = rules; g.Reload(c) != nil {
		t.Fatal("the reload failed")
	}
	g.DecideAll(t.Context(), requests, answers)
	allowed := 0
	for i := range answers {
		if answers[i].Verdict == headgate.Allow {
			allowed++
		}
	}
	if allowed != 4 {
		t.Errorf("after the return of 4 units %d requests pass", allowed)
	}
}

// stalling is a store whose returns wait for the end of their context.
type stalling struct {
	headgate.Store

	returns int
}

func (s *stalling) Return(ctx context.Context, _ []headgate.Receipt) error {
	s.returns++
	<-ctx.Done()
	return ctx.Err()
}

// TestReturnsOfFairShareTogether: the requests of fair share are given back by one call of the store too. Later requests of a stream
// wait for it, at most for one timeout of the store.
func TestReturnsOfFairShareTogether(t *testing.T) {
	kept, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	share, err := NewFairShare(1000, "path")
	if err != nil {
		t.Fatal(err)
	}
	store := &stalling{Store: kept}
	g, err := New(Config{Store: store, StoreTimeout: 20 * time.Millisecond, FairShare: share, Rules: []Rule{{
		Rule:     rule.Rule{Name: "all", Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1000, Per: limit.MaxPer}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	requests, answers := slices.Repeat([]headgate.Request{{Path: "/"}}, 100), make([]Answer, 100)
	g.DecideAll(t.Context(), requests, answers)
	taken := make([]Taken, 0, len(answers))
	for i := range answers {
		if answers[i].Verdict != headgate.Allow {
			t.Fatalf("request %d: %v", i, answers[i].Verdict)
		}
		taken = append(taken, answers[i].Taken())
	}
	if err := g.GiveBack(t.Context(), taken); !errors.Is(err, context.DeadlineExceeded) || store.returns != 1 {
		t.Errorf("got %v, with %d returns, want one that timed out", err, store.returns)
	}
}

// slow is a store whose calls take a millisecond. It counts what it gets back, and nothing of a call whose context has ended.
type slow struct {
	headgate.LastReturner

	returned int
}

func (s *slow) spend(ctx context.Context) error {
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Return implements headgate.Store.
func (s *slow) Return(ctx context.Context, receipts []headgate.Receipt) error {
	if err := s.spend(ctx); err != nil {
		return err
	}
	s.returned += len(receipts)
	return s.LastReturner.Return(ctx, receipts)
}

// ReturnLast implements headgate.LastReturner.
func (s *slow) ReturnLast(ctx context.Context, r *headgate.Receipt) (bool, error) {
	if err := s.spend(ctx); err != nil {
		return false, err
	}
	return s.LastReturner.ReturnLast(ctx, r)
}

// TestReturnsBesideQueues: requests of one stream that wait in a queue do not use up the time in which the units of all requests go back
// to the store. Both together take at most two timeouts of the store. Departures for which no time is left stay for later requests. Lost are
// only the one whose call was cut short, and that of the request that did not wait, because others follow it.
func TestReturnsBesideQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, timeout = 100, 20 * time.Millisecond
		kept, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		path, err := rule.ParsePart("path")
		if err != nil {
			t.Fatal(err)
		}
		store := &slow{LastReturner: kept}
		long := headgate.Limit{Count: most, Per: limit.MaxPer}
		paced := headgate.Limit{Count: 1, Per: time.Hour, Burst: most}
		g, err := New(Config{Store: store, StoreTimeout: timeout, Rules: []Rule{
			{Rule: rule.Rule{Name: "all", Key: []rule.Part{path}}, Policies: []headgate.Policy{{Limit: long}}},
			{
				Rule: rule.Rule{Name: "paced", Match: rule.Match{Path: "/paced"}, Key: []rule.Part{path}}, Exceed: Exceed{MaxWaiters: most},
				Policies: []headgate.Policy{{Limit: paced, Algorithm: headgate.LeakyBucket}},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		requests := append(slices.Repeat([]headgate.Request{{Path: "/"}}, most/2), slices.Repeat([]headgate.Request{{Path: "/paced"}}, most/2)...)
		answers := make([]Answer, len(requests))
		decide := func() (taken []Taken, waits int, longest time.Duration) {
			g.DecideAll(t.Context(), requests, answers)
			for i := range answers {
				if answers[i].Verdict == headgate.Wait {
					waits++
				}
				for j := range answers[i].Results {
					longest = max(longest, answers[i].Results[j].Decision.RetryAfter)
				}
				taken = append(taken, answers[i].Taken())
			}
			return taken, waits, longest
		}
		taken, waits, longest := decide()
		if waits != most/2-1 {
			t.Fatalf("%d requests wait", waits)
		}
		start := time.Now()
		err = g.GiveBack(t.Context(), taken)
		if spent := time.Since(start); spent > 2*timeout || store.returned < most {
			t.Errorf("got %v; %d receipts went back in %s, want at least %d in %s", err, store.returned, spent, most, 2*timeout)
		}
		taken, waits, again := decide()
		if waits < most/2-1 || again > longest+2*paced.Per {
			t.Errorf("later %d requests wait at most %s, want as many as before at most two periods above %s", waits, again, longest)
		}
		_ = g.GiveBack(t.Context(), taken)
	})
}
