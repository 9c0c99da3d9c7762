package prefetch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	"github.com/headgate/headgate/internal/testkit/race"
)

// desk is one Store in front of a source, with clocks that the test moves.
type desk struct {
	*prefetch.Store

	t      *testing.T
	clock  *manual
	source *source
}

func newDesk(t *testing.T, c prefetch.Config) *desk {
	t.Helper()
	clock := &manual{now: time.Hour}
	far := newSmallSource(t, clock.theirs)
	c.Clock = clock.ours
	return &desk{Store: behind(t, far, c), t: t, clock: clock, source: far}
}

// ask makes one request, and gives the number of calls of the source.
func (d *desk) ask(ops ...headgate.Op) ([]headgate.Decision, int64) {
	d.t.Helper()
	before := d.source.calls.Load()
	decisions := make([]headgate.Decision, len(ops))
	if err := d.Apply(d.t.Context(), ops, decisions); err != nil {
		d.t.Fatal(err)
	}
	return decisions, d.source.calls.Load() - before
}

// want checks the verdict of a request, and whether the source was called.
func (d *desk) want(what string, verdict headgate.Verdict, asked bool, ops ...headgate.Op) []headgate.Decision {
	d.t.Helper()
	decisions, calls := d.ask(ops...)
	got := headgate.Allow
	for _, one := range decisions {
		got = max(got, one.Verdict)
	}
	if got != verdict || calls > 0 != asked {
		d.t.Errorf("%s: %v after %d calls, want %v, asked %v: %+v", what, got, calls, verdict, asked, decisions)
	}
	return decisions
}

var hundred = headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: 10 * time.Second}}

// TestRefusals: a request that is known to be over its limit is refused here until it can pass.
func TestRefusals(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: time.Minute})
	id := prepare(t, d, hundred)
	op := func(cost int64) headgate.Op { return headgate.Op{Key: "k", Policy: id, Cost: cost} }
	d.want("all at once", headgate.Allow, true, op(97))
	first := d.want("too much", headgate.Deny, true, op(5))[0]
	d.clock.advance(4 * time.Second)
	again := d.want("again", headgate.Deny, false, op(5))[0]
	if again.RetryAfter != 6*time.Second || again.At != first.At.Add(4*time.Second) || again.Reason != headgate.OverLimit ||
		again.Limit != 100 || again.Remaining != 3 || again.ResetAfter != 6*time.Second || !again.Receipt.Empty() {
		t.Errorf("four seconds later: %+v", again)
	}
	d.want("more", headgate.Deny, false, op(50))
	d.want("less", headgate.Allow, true, op(3))
	d.want("another key", headgate.Allow, true, headgate.Op{Key: "l", Policy: id, Cost: 5})
	d.want("another window", headgate.Allow, true, headgate.Op{Key: "k", Policy: id, Cost: 5, Window: 1})
	look := op(5)
	look.Kind = headgate.Peek
	d.want("a look", headgate.Deny, true, look)
	d.clock.advance(6*time.Second - time.Microsecond)
	d.want("a request just before that", headgate.Deny, false, op(5))
	d.clock.advance(time.Microsecond)
	d.want("the request can pass", headgate.Allow, true, op(5))
}

// TestRefusalsAreAskedForAgain: the source is called again after DenyFor, after a Return, and
// after Forget.
func TestRefusalsAreAskedForAgain(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: 2 * time.Second})
	id := prepare(t, d, hundred)
	one := headgate.Op{Key: "k", Policy: id, Cost: 50}
	first := d.want("half", headgate.Allow, true, one)
	d.want("all", headgate.Allow, true, one)
	d.want("more", headgate.Deny, true, one)
	d.clock.advance(2*time.Second - 1)
	d.want("soon", headgate.Deny, false, one)
	d.clock.advance(1)
	d.want("after DenyFor", headgate.Deny, true, one)
	d.want("at once", headgate.Deny, false, one)
	if err := d.Return(t.Context(), []headgate.Receipt{first[0].Receipt}); err != nil {
		t.Fatal(err)
	}
	d.want("after a return", headgate.Allow, true, one)
	d.want("more again", headgate.Deny, true, one)
	d.want("and again", headgate.Deny, false, one)
	if err := d.Forget(t.Context(), []headgate.Op{{Key: "k"}}); err != nil {
		t.Fatal(err)
	}
	d.want("forgotten", headgate.Allow, true, one)
}

// TestRefundLiftsRefusals: refunded units can be used at once in this process.
func TestRefundLiftsRefusals(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: time.Minute})
	id := prepare(t, d, hundred)
	one := headgate.Op{Key: "k", Policy: id, Cost: 50}
	refund := headgate.Op{Key: "k", Policy: id, Cost: 50, Kind: headgate.Refund}
	for range 2 {
		d.want("within", headgate.Allow, true, one)
	}
	for _, group := range [][]headgate.Op{{refund}, {{Key: "other", Policy: id, Cost: 1, Group: 1}, refund}} {
		d.want("more", headgate.Deny, true, one)
		d.want("more again", headgate.Deny, false, one)
		back := d.want("a refund", headgate.Allow, true, group...)
		if got := back[len(back)-1]; got.Remaining != 50 || !got.Receipt.Empty() {
			t.Errorf("a refund of 50 of 100: %+v", got)
		}
		d.want("the refunded units", headgate.Allow, true, one)
	}
}

// TestTakeIfAllReachesTheSource: a group of TakeIfAll may have to count, so the source decides it.
func TestTakeIfAllReachesTheSource(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: time.Minute})
	p := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 2, Per: time.Minute}, CountRejected: true}
	id := prepare(t, d, p)
	group := []headgate.Op{{Key: "a", Policy: id, Cost: 1, Kind: headgate.TakeIfAll}, {Key: "b", Policy: id, Cost: 2, Kind: headgate.TakeIfAll}}
	d.want("within", headgate.Allow, true, group...)
	for range 3 {
		d.want("over the limit", headgate.Deny, true, group...)
	}
	d.want("the key that passes alone", headgate.Allow, true, headgate.Op{Key: "a", Policy: id, Cost: 1})
}

// TestNoRefusals: with a negative DenyFor, no refusal is repeated.
func TestNoRefusals(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: -1})
	id := prepare(t, d, hundred)
	for i := range 3 {
		d.want("all, and then too much", headgate.Verdict(2*min(i, 1)), true, headgate.Op{Key: "k", Policy: id, Cost: 100})
	}
}

// TestAttemptsThatCount: counted attempts reach the source: those of a ban until it bans, and
// those of a limit that counts refused attempts.
func TestAttemptsThatCount(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: time.Minute})
	l := headgate.Limit{Count: 2, Per: 10 * time.Second}
	id := prepare(t, d, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: l})
	attempts := prepare(t, d, headgate.Policy{Algorithm: headgate.SlidingLog, Limit: l, CountRejected: true})
	ban := prepare(t, d, headgate.Policy{Algorithm: headgate.Ban, Limit: headgate.Limit{Count: 4, Per: 10 * time.Second}, BanFor: time.Minute})
	ops := []headgate.Op{{Key: "k", Policy: id, Cost: 1}, {Key: "k", Policy: ban, Cost: 1, Window: 1}}
	for range 2 {
		d.want("within", headgate.Allow, true, ops...)
	}
	for range 2 {
		d.want("over the limit", headgate.Deny, true, ops...)
	}
	d.want("banned", headgate.Deny, true, ops...)
	d.clock.advance(20 * time.Second)
	banned := d.want("banned for long", headgate.Deny, false, ops...)
	if w := banned[1]; w.Reason != headgate.Banned || w.RetryAfter != 50*time.Second || banned[0].Verdict != headgate.Allow {
		t.Errorf("20 s into a ban: %+v", banned)
	}
	for i := range 6 {
		decisions, calls := d.ask(headgate.Op{Key: "c", Policy: attempts, Cost: 1})
		if calls != 1 || (decisions[0].Verdict == headgate.Deny) != (i >= 2) {
			t.Errorf("attempt %d: %v after %d calls", i, decisions[0].Verdict, calls)
		}
	}
}

// TestRefusedGroups: a group with one key over its limit is refused. Its other keys take
// nothing.
func TestRefusedGroups(t *testing.T) {
	d := newDesk(t, prefetch.Config{DenyFor: time.Minute})
	id := prepare(t, d, hundred)
	small := prepare(t, d, headgate.Policy{Limit: headgate.Limit{Count: 1, Per: time.Minute}})
	group := func(key string) []headgate.Op {
		return []headgate.Op{{Key: key, Policy: id, Cost: 1}, {Key: "all", Policy: small, Cost: 1}}
	}
	d.want("first", headgate.Allow, true, group("a")...)
	d.want("second", headgate.Deny, true, group("a")...)
	known := d.want("third", headgate.Deny, false, group("a")...)
	strange := d.want("a new key", headgate.Deny, false, group("b")...)
	if known[0].Verdict != headgate.Allow || known[0].Remaining != 99 || strange[0].Verdict != headgate.Allow || strange[0].Limit != 100 {
		t.Errorf("beside a refused one: %+v, %+v", known[0], strange[0])
	}
	both := append(group("a"), headgate.Op{Key: "c", Policy: id, Cost: 1, Group: 1})
	decisions, calls := d.ask(both...)
	if calls != 1 || decisions[0].Verdict != headgate.Allow || decisions[1].Verdict != headgate.Deny || decisions[2].Verdict != headgate.Allow {
		t.Errorf("a refused group beside one that passes: %d calls, %+v", calls, decisions)
	}
}

// TestRefusalsAreTrue: with one instance and no network delay, repeated refusals change no
// verdict of any algorithm, ban or group.
func TestRefusalsAreTrue(t *testing.T) {
	stories := uint64(40)
	if race.On {
		stories /= 4
	}
	for seed := range stories {
		r := rand.New(rand.NewPCG(seed, 9))
		repeats, forwards := newDesk(t, prefetch.Config{DenyFor: 10 * time.Second}), newDesk(t, prefetch.Config{DenyFor: -1})
		var ids [][2]headgate.PolicyID
		for _, a := range append(headgate.Algorithms(), headgate.Ban) {
			for _, l := range []headgate.Limit{{Count: 5, Per: time.Second}, {Count: 3, Per: 4 * time.Second}} {
				p := headgate.Policy{Algorithm: a, Limit: l, CountRejected: a == headgate.FixedWindow && l.Count == 3}
				switch a {
				case headgate.SlidingWindow:
					p.SubWindows = 4
				case headgate.Ban:
					p.BanFor = time.Second
				default:
				}
				ids = append(ids, [2]headgate.PolicyID{prepare(t, repeats, p), prepare(t, forwards, p)})
			}
		}
		for step := range 400 {
			ops, others := randomGroups(r, ids)
			got, _ := repeats.ask(ops...)
			want, _ := forwards.ask(others...)
			for g := range want {
				if groupDenied(ops, got, g) != groupDenied(ops, want, g) {
					t.Fatalf("seed %d, step %d, op %d of %+v:\n%+v\nwant %+v", seed, step, g, ops, got, want)
				}
			}
			pass := time.Duration(r.Int64N(int64(300 * time.Millisecond)))
			repeats.clock.advance(pass)
			forwards.clock.advance(pass)
		}
		if repeats.Stats().Denied == 0 {
			t.Fatal("nothing was refused here")
		}
	}
}

// groupDenied reports whether an op of the group of op i is refused.
func groupDenied(ops []headgate.Op, decisions []headgate.Decision, i int) bool {
	for j := range ops {
		if ops[j].Group == ops[i].Group && decisions[j].Verdict == headgate.Deny {
			return true
		}
	}
	return false
}

// randomGroups makes up to two groups of up to three ops, for two stores.
func randomGroups(r *rand.Rand, ids [][2]headgate.PolicyID) (ops, others []headgate.Op) {
	for g := range uint8(1 + r.IntN(2)) {
		cost := 1 + r.Int64N(3)
		key := r.IntN(2)
		for w := range uint8(1 + r.IntN(3)) {
			n := r.IntN(len(ids))
			if r.IntN(3) == 0 {
				key = 1 - key
			}
			// A window has one policy, as in a rule: a second policy would be another limit.
			op := headgate.Op{Key: fmt.Sprint(key), Policy: ids[n][0], Window: uint8(n)<<2 | w, Group: g, Cost: cost}
			ops = append(ops, op)
			op.Policy = ids[n][1]
			others = append(others, op)
		}
	}
	return ops, others
}
