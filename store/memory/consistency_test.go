package memory

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/testkit/race"
)

// TestStructureSurvivesEverything runs all algorithms and limits under the same few keys at
// once, in little memory: groups, Peek, Book, batches, Return and Forget. Afterwards no key
// has two places, each key is found, and every word of the blocks is either free or lent
// once.
func TestStructureSurvivesEverything(t *testing.T) {
	for _, bytes := range []int64{64 << 10, 1 << 20} {
		s, err := New(Config{MaxMemory: bytes})
		if err != nil {
			t.Fatal(err)
		}
		ids := everyPolicy(t, s)
		var all sync.WaitGroup
		for g := range uint64(4) {
			all.Go(func() { hammer(t, s, ids, rand.New(rand.NewPCG(g, 1))) })
		}
		all.Wait()
		held := checkPlaces(t, s)
		checkFree(t, s.blocks, held)
	}
}

func everyPolicy(t *testing.T, s *Store) []headgate.PolicyID {
	t.Helper()
	var ids []headgate.PolicyID
	add := func(p headgate.Policy) {
		id, err := s.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, per := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, time.Hour} {
		for _, count := range []int64{1, 7, 30, 100} {
			l := headgate.Limit{Count: count, Per: per}
			add(headgate.Policy{Limit: l, MaxWait: per})
			add(headgate.Policy{Algorithm: headgate.LeakyBucket, Limit: l, MaxWait: per})
			add(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: l, CountRejected: count > 10})
			add(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: l, CountRejected: count > 10})
			add(headgate.Policy{Algorithm: headgate.Ban, Limit: l, BanFor: per})
			for _, n := range []int{1, 9, 40} {
				add(headgate.Policy{Algorithm: headgate.SlidingWindow, SubWindows: n, Limit: l, CountRejected: n == 9})
			}
		}
	}
	return ids
}

func hammer(t *testing.T, s *Store, ids []headgate.PolicyID, r *rand.Rand) {
	t.Helper()
	var held []headgate.Receipt
	decisions := make([]headgate.Decision, 40)
	times := 4000
	if race.On {
		times /= 4
	}
	for range times {
		ops := randomOps(s, ids, r)
		if err := s.Apply(t.Context(), ops, decisions); err != nil {
			t.Error(err)
			return
		}
		for i := range ops {
			if !decisions[i].Receipt.Empty() && r.IntN(3) == 0 {
				held = append(held, decisions[i].Receipt)
			}
		}
		if len(held) > 50 {
			if err := s.Return(t.Context(), held); err != nil {
				t.Error(err)
			}
			held = held[:0]
		}
		if r.IntN(5) == 0 {
			if err := s.Forget(t.Context(), ops); err != nil {
				t.Error(err)
			}
		}
		if r.IntN(10) == 0 {
			keys := make([]string, 40)
			for i := range keys {
				keys[i] = fmt.Sprint(r.IntN(3000))
			}
			if err := s.TakeMany(keys, ids[r.IntN(len(ids))], 1, decisions); err != nil {
				t.Error(err)
			}
		}
	}
}

// randomOps gives up to three groups of up to six different states.
func randomOps(s *Store, ids []headgate.PolicyID, r *rand.Rand) []headgate.Op {
	var ops []headgate.Op
	for group := range uint8(1 + r.IntN(3)) {
		seen := map[string]bool{}
		for range 1 + r.IntN(6) {
			op := headgate.Op{
				Key: fmt.Sprint(r.IntN(3000)), Window: uint8(r.IntN(6)), Policy: ids[r.IntN(len(ids))],
				Group: group, Kind: headgate.OpKind(r.IntN(2)), Cost: int64(r.IntN(4)),
			}
			if s.policy(op.Policy).Plan.Policy.Algorithm <= headgate.LeakyBucket && r.IntN(2) == 0 {
				op.Kind = headgate.Book
			}
			if state := op.Key + "/" + fmt.Sprint(op.Window); !seen[state] {
				seen[state] = true
				ops = append(ops, op)
			}
		}
	}
	return ops
}

// checkPlaces checks the table, and gives the number of words lent to its places.
func checkPlaces(t *testing.T, s *Store) int64 {
	t.Helper()
	type state struct {
		tag    uint64
		family limit.Family
	}
	tags, owners, held := map[state]bool{}, map[uint64]bool{}, int64(0)
	for i := range s.table.places {
		p := &s.table.places[i]
		if p.tag == 0 {
			continue
		}
		plan := s.planOf(p)
		if tags[state{p.tag, plan.Family()}] {
			t.Errorf("key %x stands in two places of one family", p.tag)
		}
		tags[state{p.tag, plan.Family()}] = true
		if s.find(s.table.spotOf(p.tag&^0xff, uint8(p.tag)), headgate.PolicyID(p.cell.Policy), plan) != p {
			t.Errorf("key %x is not found", p.tag)
		}
		if !s.holdsBlock(p) {
			continue
		}
		if p.cell.Time == pinned {
			t.Errorf("key %x is left pinned", p.tag)
		}
		words := uint64(minBlock) << orderOf(s.lentWords(p))
		for at := p.cell.Units - 1; at < p.cell.Units-1+words; at += minBlock {
			if owners[at] {
				t.Errorf("the words at %d are held twice", at)
			}
			owners[at] = true
		}
		held += int64(words)
	}
	return held
}

// checkFree checks that every word that is not lent is in a free list.
func checkFree(t *testing.T, b *blocks, held int64) {
	t.Helper()
	if held != b.lent {
		t.Errorf("%d words are held, and %d are lent", held, b.lent)
	}
	free := int64(0)
	for order, head := range b.heads {
		for head != 0 {
			if b.orders[(head-1)/minBlock] != uint8(order)+1 {
				t.Errorf("the block at %d is in the list of another order", head-1)
			}
			free += minBlock << order
			head = uint64(b.words[head-1+wordNext])
		}
	}
	if free+held != int64(len(b.words)) {
		t.Errorf("%d words are free and %d held, of %d", free, held, len(b.words))
	}
}
