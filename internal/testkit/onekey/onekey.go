// Package onekey has the tests of Guard.Peek, Reset, Ban and Unban against an exact account: 64 callers take units of
// one key meanwhile, through two guards with one store.
package onekey

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// callers is the number of goroutines that take.
const callers = 64

// long is a period in which no unit refills during a test.
const long = 300 * 24 * time.Hour

// Run runs all tests on stores of open. without are algorithms that the store cannot count.
func Run(t *testing.T, open func(t *testing.T) headgate.Store, without ...headgate.Algorithm) {
	t.Helper()
	for _, a := range []headgate.Algorithm{headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingLog, headgate.SlidingWindow} {
		if slices.Contains(without, a) {
			continue
		}
		t.Run("ResetOfAUsedLimit/"+a.String(), func(t *testing.T) { resetUsed(t, open(t), a) })
	}
	t.Run("ResetAtAnyTime", func(t *testing.T) { resetAnyTime(t, open(t)) })
	t.Run("BanAndUnban", func(t *testing.T) { banAndUnban(t, open(t), false) })
	t.Run("BansGrow", func(t *testing.T) { bansGrow(t, open(t)) })
	t.Run("BanUnderARuleWithABan", func(t *testing.T) { banAndUnban(t, open(t), true) })
}

// guards makes two guards of one rule and one store.
func guards(
	t *testing.T, store headgate.Store, policy headgate.Policy, own guard.Ban, count ...int,
) (all [2]*guard.Guard) {
	t.Helper()
	client, err := rule.ParsePart("header:X-Client")
	if err != nil {
		t.Fatal(err)
	}
	space := fmt.Sprint("test", rand.Uint64()) // Tests may have one server.
	for i := range all {
		all[i], err = guard.New(guard.Config{Store: store, Namespace: space, Rules: []guard.Rule{{
			Rule: rule.Rule{Name: "api", Key: []rule.Part{client}}, Policies: []headgate.Policy{policy}, Ban: own, Count: count,
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// of names the key of a client.
func of(client string) guard.KeyName { return guard.KeyName{Rule: "api", Values: []string{client}} }

// client is the header of a request.
type client string

// Lookup implements headgate.Values.
func (c client) Lookup(name string) (string, bool) { return string(c), name == "X-Client" }

// traffic is callers that take units of one key until they are stopped.
type traffic struct {
	t        *testing.T
	stopped  atomic.Bool
	ban      atomic.Int64 // the number of the ban that is in force in each guard; 0 for none
	admitted atomic.Int64
	refused  atomic.Int64
	wrong    atomic.Int64 // admitted during one ban
	left     []atomic.Int64
	wg       sync.WaitGroup
}

// start starts the callers. room is the highest Remaining of an admitted request.
func start(t *testing.T, all [2]*guard.Guard, key string, room int64) *traffic {
	t.Helper()
	tr := &traffic{t: t, left: make([]atomic.Int64, room+1)}
	for i := range callers {
		tr.wg.Go(func() { tr.call(all[i%len(all)], key) })
	}
	t.Cleanup(tr.stop)
	return tr
}

func (tr *traffic) stop() {
	tr.stopped.Store(true)
	tr.wg.Wait()
}

func (tr *traffic) call(g *guard.Guard, key string) {
	req, a := &headgate.Request{Header: client(key)}, new(guard.Answer)
	for ; !tr.stopped.Load(); runtime.Gosched() { // The operator gets its turn.
		ban := tr.ban.Load()
		err := g.Decide(context.Background(), req, a) // The context of a failed test has ended.
		if err = errors.Join(err, a.StoreError); err != nil {
			tr.t.Errorf("a decision: %v", err)
			return
		}
		if a.Verdict != headgate.Allow {
			tr.refused.Add(1)
			continue
		}
		tr.admitted.Add(1)
		tr.left[a.Results[0].Decision.Remaining].Add(1)
		if ban != 0 && ban == tr.ban.Load() {
			tr.wrong.Add(1)
		}
	}
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const patience = time.Minute
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) || t.Failed() {
			t.Fatal("waited in vain until " + what)
		}
		runtime.Gosched()
	}
}

func peek(t *testing.T, g *guard.Guard, key string) *guard.KeyState {
	t.Helper()
	state, err := g.Peek(t.Context(), of(key))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// resetUsed: each time the limit is used up, a reset gives exactly the limit once more.
func resetUsed(t *testing.T, store headgate.Store, a headgate.Algorithm) {
	t.Helper()
	const limit, resets = 100, 5
	policy := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: limit, Per: long}}
	if a == headgate.SlidingWindow {
		policy.SubWindows = 2
	}
	all := guards(t, store, policy, guard.Ban{})
	tr := start(t, all, "a", limit)
	for n := int64(0); ; n++ {
		await(t, "the limit is used up", func() bool { return peek(t, all[0], "a").Limits[0].Remaining == 0 })
		await(t, "its last unit is counted", func() bool { return tr.admitted.Load() == limit*(n+1) })
		if n == resets {
			break
		}
		before, err := all[n%2].Reset(t.Context(), of("a"))
		if err != nil || before.Limits[0].Used != limit {
			t.Fatalf("reset %d: %+v, %v", n, before, err)
		}
	}
	tr.stop()
	if got := tr.admitted.Load(); got != limit*(resets+1) {
		t.Errorf("admitted %d units, want %d of each of %d resets", got, limit, resets)
	}
	if s := peek(t, all[1], "a").Limits[0]; s.Used != limit || s.Remaining != 0 || s.Next <= 0 || s.Full < s.Next {
		t.Errorf("afterwards the key has %+v", s)
	}
}

// resetAnyTime: resets come in the middle. Between two of them, each admitted request has a Remaining of its own, from
// the limit less one downwards: a lost or doubled unit would make a lower number more frequent than a higher one.
func resetAnyTime(t *testing.T, store headgate.Store) {
	t.Helper()
	const limit, resets = 100_000, 30
	all := guards(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: limit, Per: long}}, guard.Ban{})
	tr := start(t, all, "a", limit)
	for n := range int64(resets) {
		seen := tr.admitted.Load()
		await(t, "more units are taken", func() bool { return tr.admitted.Load() > seen+50 })
		if _, err := all[n%2].Reset(t.Context(), of("a")); err != nil {
			t.Fatal(err)
		}
	}
	tr.stop()
	spans, total := tr.left[limit-1].Load(), int64(0)
	for left := limit - 1; left >= 0; left-- {
		n, higher := tr.left[left].Load(), spans
		if left < limit-1 {
			higher = tr.left[left+1].Load()
		}
		if n > higher {
			t.Errorf("%d requests had %d remaining, and %d had one more: a unit was lost or doubled", n, left, higher)
		}
		total += n
	}
	if spans > resets+1 || spans < 2 || total != tr.admitted.Load() {
		t.Errorf("%d resets made %d spans of %d units, %d were admitted", resets, spans, total, tr.admitted.Load())
	}
	if used := peek(t, all[0], "a").Limits[0].Used; used > 0 && tr.left[limit-used].Load() == 0 {
		t.Errorf("the key has %d used units, and no request was the last of them", used)
	}
}

// banAndUnban: no request that begins after a ban passes, in either guard, and none of them is counted. Another key passes.
func banAndUnban(t *testing.T, store headgate.Store, own bool) {
	t.Helper()
	const limit = 10_000_000
	ban := guard.Ban{}
	if own {
		ban = guard.Ban{After: headgate.Limit{Count: 2 * limit, Per: time.Hour}, For: time.Minute}
	}
	all := guards(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: limit, Per: long}}, ban)
	tr, other := start(t, all, "a", limit), start(t, all, "b", limit)
	for n := range 4 {
		seen := tr.admitted.Load()
		await(t, "the key passes", func() bool { return tr.admitted.Load() > seen+callers })
		entry := banFor(t, all, n)
		tr.ban.Store(int64(n + 1))
		seen, passed := tr.refused.Load(), other.admitted.Load()
		await(t, "the key is refused and the other passes", func() bool {
			return tr.refused.Load() > seen+callers && other.admitted.Load() > passed+callers
		})
		wantBan(t, all, entry, n)
		tr.ban.Store(0)
		end := func() (bool, error) { return all[1].Unban(t.Context(), of("a")) }
		if n%2 == 1 {
			end = func() (bool, error) { return all[0].Lift(t.Context(), entry.ID) }
		}
		if was, err := end(); err != nil || !was {
			t.Fatalf("the end of ban %d: %v, %v", n, was, err)
		}
	}
	tr.stop()
	other.stop()
	if n := tr.wrong.Load(); n > 0 {
		t.Errorf("%d requests passed during a ban", n)
	}
	for key, tr := range map[string]*traffic{"a": tr, "b": other} {
		if used := peek(t, all[0], key).Limits[0].Used; used != tr.admitted.Load() {
			t.Errorf("key %s has %d used units, and %d were admitted", key, used, tr.admitted.Load())
		}
	}
}

// banFor bans the key through guard n%2, and lets both guards know.
func banFor(t *testing.T, all [2]*guard.Guard, n int) *guard.BanEntry {
	t.Helper()
	entry, err := all[n%2].Ban(t.Context(), of("a"), time.Hour, fmt.Sprint("reason ", n))
	if err != nil || entry.Until.IsZero() || !entry.Operator {
		t.Fatalf("ban %d: %+v, %v", n, entry, err)
	}
	for _, g := range all {
		if err := g.FollowBans(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return entry
}

// wantBan checks that both guards read the ban. The one that has banned the key knows why.
func wantBan(t *testing.T, all [2]*guard.Guard, want *guard.BanEntry, n int) {
	t.Helper()
	for i, g := range all {
		got := peek(t, g, "a").Ban
		if got == nil || got.ID != want.ID || got.Until.Sub(want.Until).Abs() > time.Second || i == n%2 && got.Reason != want.Reason {
			t.Errorf("guard %d reads the ban %+v, want %+v", i, got, want)
		}
	}
}
