package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// TestConservation uses random rules and requests. A refused request takes nothing, a request that
// passes takes its cost once, and a cancelled wait leaves nothing behind. Counted refused attempts
// and bans are the exceptions.
func TestConservation(t *testing.T) {
	for seed := range stories(1000) {
		synctest.Test(t, func(t *testing.T) {
			story := newStory(t, seed, nil)
			for n := range 40 {
				story.step(t, n)
			}
			story.end()
		})
		if t.Failed() {
			return
		}
	}
}

// TestConservationInOutages: the same is true for Local while the store is unreachable, and for the
// store at other times. Neither counts while the other decides.
func TestConservationInOutages(t *testing.T) {
	for seed := range stories(400) {
		synctest.Test(t, func(t *testing.T) {
			story := newStory(t, seed, Fallbacks())
			for n := range 40 {
				story.store.down = story.rnd.IntN(2) == 0
				story.step(t, n)
			}
			story.end()
		})
		if t.Failed() {
			return
		}
	}
}

// stories gives the number of stories: n, or a quarter of n under the race detector.
func stories(n uint64) uint64 {
	if race.On {
		return n / 4
	}
	return n
}

// story is a random guard with random requests, in the time of a synctest bubble.
type story struct {
	seed  uint64
	rnd   *rand.Rand
	rules []Rule
	guard *Guard
	store *away
	local *memory.Store
	// All requests use one answer, as fronts do.
	answer Answer
}

// away is a store that fails on command.
type away struct {
	*memory.Store

	down bool
}

var errAway = errors.New("away")

// Apply implements headgate.Store.
func (s *away) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	if s.down {
		return errAway
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// Return implements headgate.Store.
func (s *away) Return(ctx context.Context, receipts []headgate.Receipt) error {
	if s.down {
		return errAway
	}
	return s.Store.Return(ctx, receipts)
}

// sender is the Header of a request that names its client.
type sender string

// Lookup implements headgate.Values.
func (s sender) Lookup(string) (string, bool) { return string(s), true }

// newStory makes a guard of random rules, with some of the given fallbacks.
func newStory(t *testing.T, seed uint64, fallbacks []Fallback) *story {
	t.Helper()
	s := &story{seed: seed, rnd: rand.New(rand.NewPCG(seed, 7))}
	part, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1 + s.rnd.IntN(4) {
		r := s.rule(rule.Rule{Name: fmt.Sprint("r", i), Key: []rule.Part{part}})
		if len(fallbacks) > 0 {
			r.Fallback = fallbacks[s.rnd.IntN(len(fallbacks))]
		}
		s.rules = append(s.rules, r)
	}
	s.store, s.local = &away{Store: s.memory(t)}, s.memory(t)
	// The two stores thus give a policy different ids.
	if _, err := s.local.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 1e6, Per: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	s.guard, err = New(Config{
		Rules: s.rules, Store: s.store, Local: s.local, LocalShare: 100, Independent: s.rnd.IntN(4) == 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass advances the time by up to most milliseconds. Requests with a departure in that time go.
func (s *story) pass(most int) {
	<-time.After(time.Duration(s.rnd.IntN(most)) * time.Millisecond)
	synctest.Wait()
}

// end lets all departures pass, so that the bubble can end.
func (*story) end() { <-time.After(time.Hour) }

func (s *story) memory(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (s *story) rule(named rule.Rule) Rule {
	r := Rule{Rule: named, Cost: s.rnd.Int64N(3), Soft: 50 * s.rnd.IntN(2)}
	policy := headgate.Policy{Algorithm: headgate.Algorithms()[s.rnd.IntN(5)]}
	if policy.Algorithm == headgate.SlidingWindow {
		policy.SubWindows = 4
	}
	bucket := policy.Algorithm <= headgate.LeakyBucket
	policy.CountRejected = !bucket && s.rnd.IntN(3) == 0
	for i := range 1 + s.rnd.IntN(2) {
		policy.Limit = headgate.Limit{Count: s.rnd.Int64N(6), Per: time.Duration(1+i*9+s.rnd.IntN(3)) * time.Second}
		r.Policies = append(r.Policies, policy)
	}
	switch action := Action(s.rnd.IntN(4)); {
	case action == Delay && bucket:
		r.Exceed = Exceed{Action: Delay, MaxWait: time.Duration(s.rnd.IntN(5)) * time.Second, MaxWaiters: 1 + s.rnd.IntN(2)}
	case action == Redirect:
		r.Exceed = Exceed{Action: Redirect, Location: "/busy"}
	case action == Degrade:
		r.Exceed = Exceed{Action: Degrade, Header: "X-Degraded", Value: "1"}
		if s.rnd.IntN(2) == 0 {
			hard := headgate.Limit{Count: s.rnd.Int64N(8), Per: 10 * time.Second}
			r.Exceed.Hard = headgate.Policy{Algorithm: headgate.FixedWindow, Limit: hard}
		}
	}
	if s.rnd.IntN(4) == 0 {
		r.Ban = Ban{After: headgate.Limit{Count: 3 + s.rnd.Int64N(6), Per: 7 * time.Second}, For: 5 * time.Second}
	}
	if s.rnd.IntN(4) == 0 {
		r.Mode = Shadow
	}
	return r
}

// left gives what remains for a client in each window, in the store or in Local.
func (s *story) left(t *testing.T, req *headgate.Request, local bool) map[*window]headgate.Decision {
	t.Helper()
	all := map[*window]headgate.Decision{}
	rules := s.guard.current.Load().rules
	for i := range rules {
		if local && rules[i].Fallback != FallbackLocal {
			continue
		}
		key, _ := rules[i].AppendKey(nil, req)
		for j := range rules[i].limits {
			w := &rules[i].limits[j]
			store, id := s.store.Store, w.id
			if local {
				store, id = s.local, w.local
			}
			ops := []headgate.Op{{Key: string(key), Policy: id, Window: w.number, Kind: headgate.Peek}}
			var seen [1]headgate.Decision
			if err := store.Apply(t.Context(), ops, seen[:]); err != nil {
				t.Fatal(err)
			}
			all[w] = seen[0]
		}
	}
	return all
}

func (s *story) step(t *testing.T, n int) {
	t.Helper()
	s.pass(1500)
	req := &headgate.Request{Method: "GET", Path: "/", Header: sender([]string{"a", "b"}[s.rnd.IntN(2)])}
	before, idle := s.left(t, req, s.store.down), s.left(t, req, !s.store.down)
	a := &s.answer
	if err := s.guard.Decide(t.Context(), req, a); err != nil || (a.StoreError != nil) != (s.store.down && asked(a)) {
		t.Fatal(err, a.StoreError)
	}
	after := s.left(t, req, s.store.down)
	for i := range a.Results {
		r := &a.Results[i]
		if r.op != opReserved && r.Fallback != s.store.down {
			t.Errorf("seed %d, request %d: down %v, and %s says %v", s.seed, n, s.store.down, r.Policy, r.Fallback)
		}
		if s.store.down && r.Rule.Fallback != FallbackLocal {
			continue
		}
		s.check(t, n, a, r, before[r.window], after[r.window])
	}
	if a.Verdict == headgate.Wait && s.rnd.IntN(2) == 0 {
		s.cancel(t, n, req, a, before)
	}
	if is := s.left(t, req, !s.store.down); !maps.Equal(idle, is) {
		t.Errorf("seed %d, request %d: down %v, and what was not asked goes from %+v to %+v", s.seed, n, s.store.down, idle, is)
	}
}

// asked reports whether a store decided. Reserved departures need no decision.
func asked(a *Answer) bool {
	return slices.ContainsFunc(a.Results, func(r Result) bool { return r.op >= 0 })
}

// check compares a result with the remaining units of its window before and after.
func (s *story) check(t *testing.T, n int, a *Answer, r *Result, was, is headgate.Decision) {
	t.Helper()
	d := &r.Decision
	refused := s.refused(a, r)
	switch {
	case r.op == opReserved:
		if d.Verdict != headgate.Wait || was.Remaining != is.Remaining || is.ResetAfter > was.ResetAfter {
			t.Errorf("seed %d, request %d: %s takes a spare departure, and goes from %+v to %+v: %+v", s.seed, n, r.Policy, was, is, d)
		}
	case r.window.kind == kindBan || refused && r.window.countsRejected:
	case refused && (was.Remaining != is.Remaining || was.ResetAfter != is.ResetAfter || !d.Receipt.Empty()):
		t.Errorf("seed %d, request %d: %s is refused, and goes from %+v to %+v: %+v", s.seed, n, r.Policy, was, is, d)
	case !refused && was.Remaining >= r.cost && was.Remaining-is.Remaining != r.cost:
		t.Errorf("seed %d, request %d: %s passes %d, and goes from %+v to %+v: %+v", s.seed, n, r.Policy, r.cost, was, is, d)
	case a.Verdict == headgate.Wait && r.Enforced() && d.Verdict == headgate.Wait && d.Receipt.Empty():
		t.Errorf("seed %d, request %d: %s waits for a departure that is not booked: %+v", s.seed, n, r.Policy, d)
	}
}

// refused reports whether a limit may have counted nothing: its request is refused, or its rule
// degrades because of another limit.
func (s *story) refused(a *Answer, r *Result) bool {
	if r.Enforced() && !s.guard.current.Load().independent {
		if a.Verdict == headgate.Deny {
			return true
		}
	} else if a.refusedBy(r.Rule) {
		return true
	}
	return r.window.kind == kindLimit && degradedBy(a, r.Rule)
}

func degradedBy(a *Answer, limited *Rule) bool {
	for i := range a.Results {
		if r := &a.Results[i]; r.Rule == limited && r.Decision.Reason == headgate.Degraded {
			return true
		}
	}
	return false
}

func (s *story) cancel(t *testing.T, n int, req *headgate.Request, a *Answer, before map[*window]headgate.Decision) {
	t.Helper()
	if err := s.guard.Cancel(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.returned(t, n, req, a.Results, before)
}

// returned checks that the windows of a request that is not made have the units that they had before it.
func (s *story) returned(t *testing.T, n int, req *headgate.Request, results []Result, before map[*window]headgate.Decision) {
	t.Helper()
	after := s.left(t, req, s.store.down)
	for i := range results {
		r := &results[i]
		if was, is := before[r.window], after[r.window]; r.window.kind != kindBan && !r.window.countsRejected && was.Remaining != is.Remaining {
			if s.guard.current.Load().independent && is.Remaining > was.Remaining {
				continue // When another rule refuses, a booking of the request is returned too.
			}
			t.Errorf("seed %d, request %d: %s is cancelled, and goes from %+v to %+v", s.seed, n, r.Policy, was, is)
		}
	}
}
