package script_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/script"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// twoStores gives a store for batches and a store for single groups, with the same policies and
// clock, on two servers.
func twoStores(t *testing.T, policies []headgate.Policy) (batched, single *store, clock *storetest.Clock, ids []headgate.PolicyID) {
	t.Helper()
	clock = storetest.NewClock()
	batched = newStore(t, newClient(t, testserver.Start(t).Addr), 1, clock.Now)
	single = newStore(t, newClient(t, testserver.Start(t).Addr), 0, clock.Now)
	for _, p := range policies {
		id, err := batched.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := single.Prepare(p); err != nil || same != id {
			t.Fatalf("Prepare on the second store: got the id %v and error %v, want %v", same, err, id)
		}
		ids = append(ids, id)
	}
	return batched, single, clock, ids
}

// TestBatchIsItsGroups: groups in one call get the same decisions as the same groups in single
// calls, even if they repeat keys.
func TestBatchIsItsGroups(t *testing.T) {
	policies := append(everyPolicy(), headgate.Policy{Limit: headgate.Limit{Count: 100, Per: time.Second}})
	batched, single, clock, ids := twoStores(t, policies)
	r := rand.New(rand.NewPCG(9, 9))
	for round := range 60 {
		clock.Advance(time.Duration(r.IntN(300_000)) * time.Microsecond)
		var ops []headgate.Op
		few := 1 + r.IntN(len(policies))
		for group := range 1 + r.IntN(200) {
			kind, key := r.IntN(few), fmt.Sprint("key", r.IntN(1+r.IntN(60)))
			for w := range 1 + r.IntN(2)*r.IntN(3) {
				op := headgate.Op{Key: key, Policy: ids[kind], Window: uint8(kind + 20*w), Group: uint8(group % 2), Cost: 1}
				if r.IntN(5) == 0 {
					op.Cost, op.Kind = r.Int64N(6), headgate.OpKind(r.IntN(2))
				}
				ops = append(ops, op)
			}
		}
		got := apply(t, batched, ops...)
		at := 0
		for g, group := range groupsOf(ops) {
			want := apply(t, single, group...)
			for i := range group {
				a, b := got[at+i], want[i]
				// The server sets the version, and the store sets the nonce.
				for _, r := range []*headgate.Receipt{&a.Receipt, &b.Receipt} {
					r.Nonce, r.Returned, r.FromPart = 0, 0, r.FromPart&(1<<52-1)
				}
				if a != b {
					t.Fatalf("round %d, group %d, Op %+v:\nbatched %+v\nsingle  %+v", round, g, group[i], a, b)
				}
			}
			at += len(group)
		}
	}
}

// TestVeryManyGroups decides a batch with more groups than fit on a Lua stack.
func TestVeryManyGroups(t *testing.T) {
	s := newStore(t, newClient(t, testserver.Start(t).Addr), 1, nil)
	id, err := s.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 3, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	ops := make([]headgate.Op, 30_000)
	for i := range ops {
		ops[i] = headgate.Op{Key: fmt.Sprint(i % 9000), Policy: id, Cost: 1, Group: uint8(i % 2)}
	}
	for i, d := range apply(t, s, ops...) {
		if passes := d.Verdict == headgate.Allow; passes != (i < 27_000) || d.Limit != 3 {
			t.Fatalf("group %d: got %+v, want Allow before group 27000 and a Limit of 3", i, d)
		}
	}
}

// TestGrants: a grant has the largest n with which a Take passes. On a second server, the test tries
// each n.
func TestGrants(t *testing.T) {
	var policies []headgate.Policy
	for _, p := range everyPolicy() {
		if p.Algorithm != headgate.LeakyBucket && p.Algorithm != headgate.Ban {
			policies = append(policies, p)
		}
	}
	granting, trying, clock, ids := twoStores(t, policies)
	r := rand.New(rand.NewPCG(4, 4))
	partial, refused := 0, 0
	for step := range 600 {
		clock.Advance(time.Duration(r.IntN(2)*r.IntN(1_200_000)) * time.Microsecond)
		cost := 1 + r.Int64N(12)
		least := 1 + r.Int64N(cost)
		var ops []headgate.Op
		for range 1 + r.IntN(2)*r.IntN(3) {
			kind := r.IntN(len(ids))
			ops = append(ops, headgate.Op{Key: "k", Policy: ids[kind], Window: uint8(kind), Cost: cost})
		}
		ds := make([]headgate.Decision, len(ops))
		err := granting.grant(t.Context(), ops, ds, least)
		if errors.Is(err, script.ErrSameState) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		want, n := tryAll(t, trying, ops, least)
		for i := range ds {
			a, b := ds[i], want[i]
			for _, r := range []*headgate.Receipt{&a.Receipt, &b.Receipt} {
				r.Nonce, r.Returned, r.FromPart = 0, 0, r.FromPart&(1<<52-1)
			}
			if a != b {
				t.Fatalf("step %d, grant of %d to %d units, Op %+v:\n got %+v\nwant %+v with %d units", step, least, cost, ops[i], a, b, n)
			}
		}
		if n == 0 {
			refused++
		} else if n < cost {
			partial++
		}
	}
	if partial < 30 || refused < 30 {
		t.Errorf("got %d partial grants and %d refusals, want at least 30 of each", partial, refused)
	}
}

// tryAll takes the largest cost that passes and gives it. If none passes, tryAll decides a Take of
// least and gives 0.
func tryAll(t *testing.T, s *store, ops []headgate.Op, least int64) ([]headgate.Decision, int64) {
	t.Helper()
	try := func(n int64, kind headgate.OpKind) ([]headgate.Decision, bool) {
		group := make([]headgate.Op, len(ops))
		for i := range ops {
			group[i] = ops[i]
			group[i].Cost, group[i].Kind = n, kind
		}
		ds, passes := apply(t, s, group...), true
		for _, d := range ds {
			passes = passes && d.Verdict != headgate.Deny
		}
		return ds, passes
	}
	for n := ops[0].Cost; n >= least; n-- {
		if _, passes := try(n, headgate.Peek); passes {
			ds, _ := try(n, headgate.Take)
			return ds, n
		}
	}
	ds, _ := try(least, headgate.Take)
	return ds, 0
}

// TestAddRefuses: Add refuses an invalid group with an error, and adds nothing.
func TestAddRefuses(t *testing.T) {
	compile := func(p headgate.Policy) *script.Plan {
		plan, err := script.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	second := headgate.Limit{Count: 5, Per: time.Second}
	tokens, fixed := compile(headgate.Policy{Limit: second}), compile(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: second})
	leaky := compile(headgate.Policy{Algorithm: headgate.LeakyBucket, Limit: second})
	ban := compile(headgate.Policy{Algorithm: headgate.Ban, Limit: second, BanFor: time.Second})
	names, _ := script.NewNames(1)
	x, y := script.PlaceOf("x", 0), script.PlaceOf("y", 0)
	for _, c := range []struct {
		name   string
		ops    []headgate.Op
		plans  []*script.Plan
		places []script.Place
		least  int64
		want   error
	}{
		{"no Ops", nil, nil, nil, 0, nil},
		{"fewer plans", []headgate.Op{{Cost: 1}, {Cost: 1}}, []*script.Plan{tokens}, []script.Place{x, y}, 0, nil},
		{"no plan", []headgate.Op{{Cost: 1}}, []*script.Plan{nil}, []script.Place{x}, 0, headgate.ErrUnknownPolicy},
		{"a negative cost", []headgate.Op{{Cost: -1}}, []*script.Plan{tokens}, []script.Place{x}, 0, headgate.ErrBadCost},
		{"a cost that is too large", []headgate.Op{{Cost: headgate.MaxUnits + 1}}, []*script.Plan{tokens}, []script.Place{x}, 0, headgate.ErrBadCost},
		{"an invalid Kind", []headgate.Op{{Kind: headgate.Charge + 1}}, []*script.Plan{tokens}, []script.Place{x}, 0, headgate.ErrUnknownKind},
		{"a refund of a leaky bucket", []headgate.Op{{Kind: headgate.Refund}}, []*script.Plan{leaky}, []script.Place{x}, 0, headgate.ErrNotRefundable},
		{"a refund and a take", []headgate.Op{{Kind: headgate.Refund}, {}}, []*script.Plan{fixed, fixed}, []script.Place{x, y}, 0, headgate.ErrBadGroup},
		{"a grant of TakeIfAll", []headgate.Op{{Cost: 2, Kind: headgate.TakeIfAll}}, []*script.Plan{fixed}, []script.Place{x}, 1, script.ErrNoGrant},
		{"a departure in a window", []headgate.Op{{Kind: headgate.Book}}, []*script.Plan{fixed}, []script.Place{x}, 0, headgate.ErrNotBookable},
		{"the same state twice", []headgate.Op{{}, {}}, []*script.Plan{fixed, tokens}, []script.Place{x, x}, 0, script.ErrSameState},
		{"a grant of a leaky bucket", []headgate.Op{{Cost: 2}}, []*script.Plan{leaky}, []script.Place{x}, 1, script.ErrNoGrant},
		{"a grant of a ban", []headgate.Op{{Cost: 2}}, []*script.Plan{ban}, []script.Place{x}, 1, script.ErrNoGrant},
		{"a grant of two costs", []headgate.Op{{Cost: 2}, {Cost: 3}}, []*script.Plan{fixed, fixed}, []script.Place{x, y}, 1, script.ErrNoGrant},
		{"a least above the cost", []headgate.Op{{Cost: 2}}, []*script.Plan{fixed}, []script.Place{x}, 3, script.ErrNoGrant},
		{"a negative least", []headgate.Op{{Cost: 2}}, []*script.Plan{fixed}, []script.Place{x}, -1, script.ErrNoGrant},
		{"a grant with Peek", []headgate.Op{{Cost: 2, Kind: headgate.Peek}}, []*script.Plan{fixed}, []script.Place{x}, 1, script.ErrNoGrant},
	} {
		var b script.Batch
		b.Reset(names)
		err := b.Add(c.ops, c.plans, c.places, c.least)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), ":") {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.want)
		}
		if b.Len() != 0 || len(b.Keys()) != 0 {
			t.Errorf("%s: the invalid group was added: %d groups, keys %q", c.name, b.Len(), b.Keys())
		}
	}
}

// TestFullBatch: Add refuses more groups than the script can number.
func TestFullBatch(t *testing.T) {
	plan, err := script.Compile(headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	names, _ := script.NewNames(1)
	var b script.Batch
	b.Reset(names)
	added := 0
	for added < 1<<16 {
		if err = b.Add([]headgate.Op{{Cost: 1}}, []*script.Plan{plan}, []script.Place{script.PlaceOf(fmt.Sprint(added), 0)}, 0); err != nil {
			break
		}
		added++
	}
	if !errors.Is(err, script.ErrFull) || added != b.Len() || added < 30_000 {
		t.Errorf("added %d groups, then got error %v; want at least 30000 groups, then ErrFull", added, err)
	}
	b.Reset(names)
	if err := b.Add([]headgate.Op{{Cost: 1}}, []*script.Plan{plan}, []script.Place{{}}, 0); err != nil || len(b.Keys()) != 1 {
		t.Errorf("Add after Reset: got error %v and %d keys, want 1 key", err, len(b.Keys()))
	}
}

// TestBatchAllocates: a reused batch allocates only the strings of its call, and nothing for each
// group, whatever its kind.
func TestBatchAllocates(t *testing.T) {
	for _, kind := range []headgate.OpKind{headgate.Take, headgate.Peek, headgate.Refund, headgate.TakeIfAll} {
		if allocs := allocsOf(t, kind); allocs > 5 {
			t.Errorf("kind %d: %v allocations for a batch of 64, want at most 5", kind, allocs)
		}
	}
}

// allocsOf counts the allocations of a batch of 64 groups of one Op.
func allocsOf(t *testing.T, kind headgate.OpKind) float64 {
	t.Helper()
	plan, err := script.Compile(headgate.Policy{Limit: headgate.Limit{Count: 5, Per: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	names, _ := script.NewNames(256)
	ops, plans, places := []headgate.Op{{Cost: 1, Kind: kind}}, []*script.Plan{plan}, make([][]script.Place, 64)
	for i := range places {
		places[i] = []script.Place{script.PlaceOf(fmt.Sprint(i), 0)}
	}
	var b script.Batch
	decisions := make([]headgate.Decision, 1)
	reply := make([]byte, 8*129)
	copy(reply, "\x00\x00\x00\x00\x00\x00\xf0\x3f") // the time 1; all other numbers are 0
	text := string(reply)
	return testing.AllocsPerRun(100, func() {
		b.Reset(names)
		for i := range places {
			if err := b.Add(ops, plans, places[i], 0); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = b.Keys(), b.Args(0, time.Second)
		if err := b.Read(text); err != nil {
			t.Fatal(err)
		}
		for i := range places {
			if err := b.Explain(i, ops, plans, places[i], decisions); err != nil {
				t.Fatal(err)
			}
		}
	})
}
