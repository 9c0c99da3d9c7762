package prefetch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
)

// held is a log of a thousand a second, with ten prefetched units.
var held = headgate.Policy{
	Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 1000, Per: time.Second},
	Hold: 100 * time.Millisecond, Batch: 10,
}

// giveBack returns receipts.
func (d *desk) giveBack(decisions ...headgate.Decision) {
	d.t.Helper()
	var receipts []headgate.Receipt
	for _, one := range decisions {
		receipts = append(receipts, one.Receipt)
	}
	if err := d.Return(d.t.Context(), receipts); err != nil {
		d.t.Fatal(err)
	}
}

// TestReceiptsOfStashes: a unit returns to the stash that served it, once, while the stash is
// valid. After that the unit stays counted.
func TestReceiptsOfStashes(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, held)
	one := headgate.Op{Key: "k", Policy: id, Cost: 1}
	leader := d.want("the first request calls the source", headgate.Allow, true, one)
	if leader[0].Remaining != 999 {
		t.Errorf("one of 1000 is taken, and 10 are held: %d remain", leader[0].Remaining)
	}
	unit := d.want("the next request does not", headgate.Allow, false, one)
	if left := stashLeft(d.Store); left != 9 {
		t.Errorf("%d of 10 are left", left)
	}
	for range 3 {
		d.giveBack(unit[0], unit[0])
	}
	if left := stashLeft(d.Store); left != 10 {
		t.Errorf("a unit is returned six times: %d left", left)
	}
	d.giveBack(leader[0], headgate.Decision{})
	if left := stashLeft(d.Store); left != 11 || d.Stats().Returned != 2 {
		t.Errorf("two units are returned: %d left, %+v", left, d.Stats())
	}
	late := d.want("again", headgate.Allow, false, one)
	d.clock.advance(100 * time.Millisecond)
	d.giveBack(late[0])
	d.want("the stash is void", headgate.Allow, true, one)
	d.giveBack(late[0])
	d.clock.advance(2 * time.Second)
	d.want("the next stash is void too", headgate.Allow, true, headgate.Op{Key: "k", Policy: id, Cost: 1000})
}

// TestForgedReceipts: forged receipts return nothing.
func TestForgedReceipts(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, held)
	one := headgate.Op{Key: "k", Policy: id, Cost: 1}
	d.want("the first request calls the source", headgate.Allow, true, one)
	r := d.want("the next request does not", headgate.Allow, false, one)[0].Receipt
	for name, change := range map[string]func(r *headgate.Receipt){
		"a cost below 0":       func(r *headgate.Receipt) { r.Cost = -5 },
		"more than was taken":  func(r *headgate.Receipt) { r.Cost = 1 << 40; r.Nonce += 100 },
		"another stash":        func(r *headgate.Receipt) { r.Nonce += 1 << 20 },
		"no op":                func(r *headgate.Receipt) { r.Returned = 0; r.Nonce += 101 },
		"an op beyond its own": func(r *headgate.Receipt) { r.Returned = 1<<8 | 3; r.Nonce += 102 },
		"half of a group":      func(r *headgate.Receipt) { r.Returned = 2 << 8; r.Nonce += 103 },
	} {
		forged := r
		change(&forged)
		before := stashLeft(d.Store)
		d.giveBack(headgate.Decision{Receipt: forged})
		if after := stashLeft(d.Store); after != before {
			t.Errorf("%s: %d left, and then %d", name, before, after)
		}
	}
}

// TestReceiptsOfGroups: the unit of a key is returned when the receipts of all its windows
// are.
func TestReceiptsOfGroups(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, held)
	ops := []headgate.Op{{Key: "k", Policy: id, Cost: 2}, {Key: "k", Policy: id, Cost: 2, Window: 1}, {Key: "l", Policy: id, Cost: 2}}
	d.want("the first request calls the source", headgate.Allow, true, ops...)
	got := d.want("the next request does not", headgate.Allow, false, ops...)
	before := stashLeft(d.Store)
	d.giveBack(got[1], got[1])
	if left := stashLeft(d.Store); left != before {
		t.Errorf("one window of two is returned: %d left, and then %d", before, left)
	}
	d.giveBack(got[2])
	d.giveBack(got[0])
	if left := stashLeft(d.Store); left != before+4 {
		t.Errorf("all windows are returned: %d left, and then %d", before, left)
	}
}

// TestRefusedGroupsPutBack: one key of a group is refused. The units of the other keys return
// to their stashes.
func TestRefusedGroupsPutBack(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	small := held
	small.Limit.Count = 12
	id, few := prepare(t, d, held), prepare(t, d, small)
	ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "l", Policy: few, Cost: 1, Window: 1}}
	for i := range 30 {
		before := stashLeft(d.Store)
		got, _ := d.ask(ops...)
		refused := got[1].Verdict == headgate.Deny
		if refused != (i >= 12) || got[0].Verdict != headgate.Allow || refused != got[0].Receipt.Empty() {
			t.Errorf("request %d: %+v", i, got)
		}
		if refused && i > 12 && stashLeft(d.Store) != before {
			t.Errorf("request %d: %d were held, and now %d", i, before, stashLeft(d.Store))
		}
	}
}

// TestLedgerIsBounded: a full ledger refuses old receipts, which is safe.
func TestLedgerIsBounded(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	p := held
	p.Algorithm, p.Limit.Count, p.Limit.Per, p.Hold = headgate.FixedWindow, 1<<40, time.Hour, time.Hour
	p.Batch = 1 << 30
	id := prepare(t, d, p)
	one := headgate.Op{Key: "k", Policy: id, Cost: 1}
	d.want("the first request calls the source", headgate.Allow, true, one)
	first := d.want("the next request does not", headgate.Allow, false, one)
	d.giveBack(first...)
	for range 70_000 {
		got, _ := d.ask(one)
		d.giveBack(got...)
	}
	before := stashLeft(d.Store)
	d.giveBack(first...)
	if left := stashLeft(d.Store); left != before {
		t.Errorf("a receipt is returned twice: %d left, and then %d", before, left)
	}
}

// TestForgotten: Forget makes the stashes of a key void, also those in flight.
func TestForgotten(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, held)
	one := headgate.Op{Key: "k", Policy: id, Cost: 1}
	d.want("the first request calls the source", headgate.Allow, true, one)
	d.want("the next request does not", headgate.Allow, false, one)
	if err := d.Forget(t.Context(), []headgate.Op{{Key: "k", Window: 7}}); err != nil {
		t.Fatal(err)
	}
	d.want("another window is forgotten", headgate.Allow, false, one)
	if err := d.Forget(t.Context(), []headgate.Op{{Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	d.want("forgotten", headgate.Allow, true, one)
}

// TestSourceClockSteps: two stashes were granted before and after a step of the clock. They
// have no time in common, so the source decides a group that needs both.
func TestSourceClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		d := newDesk(t, prefetch.Config{})
		id := prepare(t, d, held)
		a, b := headgate.Op{Key: "a", Policy: id, Cost: 1}, headgate.Op{Key: "b", Policy: id, Cost: 1}
		d.want("a asks", headgate.Allow, true, a)
		d.clock.step(step)
		d.want("b asks", headgate.Allow, true, b)
		d.want("each key has its own stash", headgate.Allow, false, a)
		before := stashLeft(d.Store)
		both := d.want("together", headgate.Allow, true, a, b)
		if both[0].At != both[1].At || stashLeft(d.Store) != before {
			t.Errorf("decided at %v and %v, %d held, and then %d", both[0].At, both[1].At, before, stashLeft(d.Store))
		}
	}
}

// TestKeys: keys are any bytes, and no two keys collide.
func TestKeys(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	p := held
	p.Limit.Count, p.Batch = 16, 15
	id := prepare(t, d, p)
	for _, key := range []string{"", " ", "\x00", "\x00\x00", "{}", "{a}", "a", "a\r\n", "*", "\xff\xfe", strings.Repeat("x", 64<<10), strings.Repeat("x", 64<<10+1)} {
		passed := 0
		for range 20 {
			got, _ := d.ask(headgate.Op{Key: key, Policy: id, Cost: 1})
			if got[0].Verdict == headgate.Allow {
				passed++
			}
		}
		if passed != 16 {
			t.Errorf("%.20q: %d of 16 passed", key, passed)
		}
	}
}

// TestFloodOfKeys: a small table sees a flood of keys. No limit admits more. A hot key keeps
// its stash, because keys without a stash are evicted first.
func TestFloodOfKeys(t *testing.T) {
	d := newDesk(t, prefetch.Config{MaxKeys: 50})
	p := held
	p.Batch = 0
	flood := prepare(t, d, p)
	p.Batch = 50
	id := prepare(t, d, p)
	hot := headgate.Op{Key: "hot", Policy: id, Cost: 1}
	d.want("the first request calls the source", headgate.Allow, true, hot)
	asked := int64(0)
	for i := range 40 {
		for j := range race.Fewer(500, 100) {
			d.ask(headgate.Op{Key: fmt.Sprint(i, j), Policy: flood, Cost: 1})
		}
		_, calls := d.ask(hot)
		asked += calls
		d.clock.advance(100 * time.Microsecond)
	}
	if asked > 2 {
		t.Errorf("a hot key in a flood asked the source for %d of 40", asked)
	}
}

// TestFaults: an Op that cannot be decided gives an error, and an error takes nothing.
func TestFaults(t *testing.T) {
	for name, c := range map[string]prefetch.Config{
		"no source":     {},
		"keys":          {Source: newSource(t, nil), MaxKeys: -1},
		"too many keys": {Source: newSource(t, nil), MaxKeys: 1 << 30},
		"timeout":       {Source: newSource(t, nil), Timeout: -1},
	} {
		if _, err := prefetch.New(c); err == nil {
			t.Errorf("%s: New accepts it", name)
		}
	}
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, held)
	for name, op := range map[string]headgate.Op{
		"no policy": {Key: "k"}, "an unknown policy": {Key: "k", Policy: id + 1}, "a negative cost": {Key: "k", Policy: id, Cost: -1},
		"a booking": {Key: "k", Policy: id, Cost: 1, Kind: headgate.Book},
	} {
		ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, op}
		ops[1].Window = 1
		if d.Apply(t.Context(), ops, make([]headgate.Decision, 2)) == nil {
			t.Errorf("%s: Apply accepts it in a group", name)
		}
		if d.Apply(t.Context(), ops[1:], make([]headgate.Decision, 2)) == nil {
			t.Errorf("%s: Apply accepts it", name)
		}
	}
	twice := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "k", Policy: id, Cost: 1}}
	if d.Apply(t.Context(), twice, make([]headgate.Decision, 2)) == nil {
		t.Error("one state twice in a group: Apply accepts it")
	}
	if d.source.grants.Load() != 0 {
		t.Errorf("faults cost %d grants", d.source.grants.Load())
	}
}

// TestEverythingAtOnce runs requests, groups, returns and Forget in many goroutines, on few
// keys in a small table. It serves the race detector. No unit is spent without a grant.
func TestEverythingAtOnce(t *testing.T) {
	near := newSource(t, nil)
	s := behind(t, near, prefetch.Config{MaxKeys: 21})
	p := held
	p.Hold = 20 * time.Millisecond
	many := prepare(t, s, p)
	p.Batch, p.Limit.Count = 0, 5000
	auto := prepare(t, s, p)
	plain := prepare(t, s, hundred)
	var all sync.WaitGroup
	for g := range uint64(6) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(g, 3))
			var receipts []headgate.Receipt
			for range 1500 {
				key := fmt.Sprint(r.IntN(12))
				ops := []headgate.Op{
					{Key: key, Policy: many, Cost: 1 + r.Int64N(3)},
					{Key: fmt.Sprint(r.IntN(12)), Policy: auto, Cost: 1, Window: 1},
					{Key: key, Policy: plain, Cost: 1, Window: 2, Group: uint8(r.IntN(2))},
				}[:1+r.IntN(3)]
				decisions := make([]headgate.Decision, len(ops))
				if err := s.Apply(t.Context(), ops, decisions); err != nil {
					t.Error(err)
				}
				for _, d := range decisions {
					receipts = append(receipts, d.Receipt)
				}
				switch r.IntN(40) {
				case 0:
					_ = s.Forget(t.Context(), ops[:1])
				case 1, 2, 3:
					_ = s.Return(t.Context(), receipts)
					receipts = receipts[:0]
				default:
				}
			}
		})
	}
	all.Wait()
	if st := s.Stats(); st.Spent+st.Expired > st.Granted || st.Spent == 0 {
		t.Errorf("%+v", st)
	}
}

// TestRefundVoidsReceipts: a caller spends a unit of a stash, refunds it, and also returns its
// receipt. One unit comes back. The unspent units of the stash stay usable.
func TestRefundVoidsReceipts(t *testing.T) {
	d := newDesk(t, prefetch.Config{})
	id := prepare(t, d, held)
	one := headgate.Op{Key: "k", Policy: id, Cost: 1}
	d.want("the first request calls the source", headgate.Allow, true, one)
	unit := d.want("the next request does not", headgate.Allow, false, one)
	refund := one
	refund.Kind = headgate.Refund
	back := d.want("a refund", headgate.Allow, true, refund)
	if back[0].Remaining != 990 {
		t.Errorf("one unit of 11 is refunded: %d of 1000 remain", back[0].Remaining)
	}
	d.giveBack(unit[0])
	if left := stashLeft(d.Store); left != 9 {
		t.Errorf("a receipt after the refund: %d of 10 are left, want 9", left)
	}
	again := d.want("a unit of the stash", headgate.Allow, false, one)
	d.giveBack(again[0])
	if left := stashLeft(d.Store); left != 9 {
		t.Errorf("a receipt of a unit after the refund: %d of 10 are left, want 9", left)
	}
}
