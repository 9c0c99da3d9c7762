package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

// shaky is a store that fails on command.
type shaky struct {
	headgate.Store

	down  bool
	hangs bool // the store answers after the caller has stopped waiting
	calls int
}

// Apply implements headgate.Store.
func (s *shaky) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	s.calls++
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.down {
		return errDeaf
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// Return implements headgate.Store.
func (s *shaky) Return(ctx context.Context, receipts []headgate.Receipt) error {
	s.calls++
	if s.down {
		return errDeaf
	}
	return s.Store.Return(ctx, receipts)
}

func inMemory(t *testing.T, clock *storetest.Clock) *memory.Store {
	t.Helper()
	config := memory.Config{MaxMemory: 1 << 20}
	if clock != nil {
		config.Clock = clock.Now
	}
	store, err := memory.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// local sets FallbackLocal for a rule.
func local(r guard.Rule) guard.Rule {
	r.Fallback = guard.FallbackLocal
	return r
}

// alone is a guard with an unreachable store, and a quarter of each limit in Local.
func alone(t *testing.T, rules ...guard.Rule) (*guard.Guard, *shaky, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock()
	store := &shaky{Store: inMemory(t, clock), down: true}
	g, _ := newGuard(t, guard.Config{Store: store, Local: inMemory(t, clock), LocalShare: 25, Rules: rules})
	return g, store, clock
}

// TestLocal: while the store is unreachable, an instance admits its part, and the answer says so.
// Afterwards the store continues with its own counts.
func TestLocal(t *testing.T) {
	g, store, clock := alone(t, local(byClient(t, "product", "/p", perMinute(8))))
	store.down = false
	for i, want := range []struct {
		down      bool
		after     time.Duration
		verdict   headgate.Verdict
		reason    headgate.Reason
		remaining int64
		retry     time.Duration
	}{
		{false, 0, headgate.Allow, headgate.WithinLimit, 7, 0},
		{true, 0, headgate.Allow, headgate.StoreUnavailable, 1, 0},
		{true, 0, headgate.Allow, headgate.StoreUnavailable, 0, 0},
		{true, 0, headgate.Deny, headgate.StoreUnavailable, 0, time.Minute},
		{false, 0, headgate.Allow, headgate.WithinLimit, 6, 0}, // What Local counted is not the store's.
		{true, 20 * time.Second, headgate.Deny, headgate.StoreUnavailable, 0, 40 * time.Second},
		{true, 40 * time.Second, headgate.Allow, headgate.StoreUnavailable, 1, 0}, // The counts in Local expire as usual.
	} {
		clock.Advance(want.after)
		store.down = want.down
		a := decide(t, g, request("/p", "a"))
		r := a.Closest()
		d := &r.Decision
		if a.Verdict != want.verdict || d.Reason != want.reason || d.Remaining != want.remaining || a.RetryAfter() != want.retry {
			t.Errorf("request %d: %v %+v, want %+v", i, a.Verdict, d, want)
		}
		limit := perMinute(8)
		if want.down {
			limit = perMinute(2)
		}
		if r.Fallback != want.down || errors.Is(a.StoreError, errDeaf) != want.down || r.Limit != limit || d.Limit != limit.Count {
			t.Errorf("request %d: fallback %v (%v) by %v", i, r.Fallback, a.StoreError, r.Limit)
		}
		if a.Verdict == headgate.Deny && fields.Status(a) != 503 {
			t.Errorf("request %d: its status is %d: who was refused by a part is not over the limit", i, fields.Status(a))
		}
	}
}

// TestInstancesTogether: four instances without their store admit no more than the limit, at once and
// in the long run, for every algorithm.
func TestInstancesTogether(t *testing.T) {
	for _, algorithm := range headgate.Algorithms() {
		t.Run(algorithm.String(), func(t *testing.T) {
			r := local(byClient(t, "product", "/p", headgate.Limit{Count: 11, Per: 11 * time.Second}))
			r.Policies[0].Algorithm = algorithm
			if algorithm == headgate.SlidingWindow {
				r.Policies[0].SubWindows = 4
			}
			var instances []*guard.Guard
			var clocks []*storetest.Clock
			for range 4 {
				g, _, clock := alone(t, r)
				instances, clocks = append(instances, g), append(clocks, clock)
			}
			const seconds = 110
			atOnce, admitted := 0, 0
			for second := range seconds {
				for i, g := range instances {
					for range 5 {
						if decide(t, g, request("/p", "a")).Verdict != headgate.Deny {
							admitted++
						}
					}
					clocks[i].Advance(time.Second)
				}
				if second == 0 {
					atOnce = admitted
				}
			}
			// A bucket has its burst in addition to its rate.
			if atOnce == 0 || atOnce > 11 || admitted > seconds+11 || admitted < seconds/2 {
				t.Errorf("%d at once and %d in %ds, of 11 in 11s", atOnce, admitted, seconds)
			}
		})
	}
}

// TestFallbacksBesideEachOther: several rules match, and each uses its own fallback. A refusal by one
// takes nothing in Local.
func TestFallbacksBesideEachOther(t *testing.T) {
	wide, narrow := local(byClient(t, "wide", "/*", perMinute(40))), local(byClient(t, "narrow", "/n", perMinute(4)))
	open, closed := byClient(t, "open", "/o", perMinute(1)), byClient(t, "closed", "/c", perMinute(1))
	open.Fallback = guard.FallbackAllow
	g, _, _ := alone(t, open, wide, narrow, closed)
	for i, want := range []struct {
		path    string
		verdict headgate.Verdict
		by      string
		left    int64 // of the rule wide
	}{
		{"/n", headgate.Allow, "narrow", 9},
		{"/n", headgate.Deny, "narrow", 9}, // One group, all or nothing.
		{"/c", headgate.Deny, "closed", 8}, // The answer is made before the unit is returned.
		{"/c", headgate.Deny, "closed", 8},
		{"/o", headgate.Allow, "wide", 8}, // The rule open does not know what remains.
		{"/w", headgate.Allow, "wide", 7},
	} {
		a := decide(t, g, request(want.path, "a"))
		if a.Verdict != want.verdict || a.Closest().Policy != want.by {
			t.Errorf("request %d: %v by %s, want %v by %s", i, a.Verdict, a.Closest().Policy, want.verdict, want.by)
		}
		for r := range a.Results {
			if d := &a.Results[r].Decision; a.Results[r].Policy == "wide" && d.Remaining != want.left || !a.Results[r].Fallback {
				t.Errorf("request %d: %s has %d left, want %d", i, a.Results[r].Policy, d.Remaining, want.left)
			}
		}
	}
}

// TestActionsOnLocal: soft limits, actions, bans, overrides and hard limits apply to the decisions of
// Local, and keep their reasons.
func TestActionsOnLocal(t *testing.T) {
	pass := step{verdict: headgate.Allow, reason: headgate.StoreUnavailable}
	refuse := step{verdict: headgate.Deny, reason: headgate.StoreUnavailable}
	over := guard.Override{Value: "a", Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(12)}}}
	for name, story := range map[string]struct {
		change func(*guard.Rule)
		steps  []step
	}{
		"soft": {func(r *guard.Rule) { r.Soft = 50 }, []step{pass, {verdict: headgate.Allow, reason: headgate.SoftLimit}, refuse}},
		"redirect": {
			func(r *guard.Rule) { r.Exceed = guard.Exceed{Action: guard.Redirect, Location: "/busy"} },
			[]step{pass, pass, refuse},
		},
		"degrade": {
			func(r *guard.Rule) { r.Exceed = degrade() },
			[]step{pass, pass, {verdict: headgate.Allow, reason: headgate.Degraded}},
		},
		"degrade, hard": {
			func(r *guard.Rule) {
				r.Exceed = degrade()
				r.Exceed.Hard = headgate.Policy{Algorithm: headgate.FixedWindow, Limit: perMinute(12)}
			},
			[]step{pass, pass, {verdict: headgate.Allow, reason: headgate.Degraded}, {verdict: headgate.Deny, reason: headgate.StoreUnavailable, policy: "r-hard"}},
		},
		"ban": {
			func(r *guard.Rule) { r.Ban = guard.Ban{After: perMinute(12), For: time.Hour} },
			[]step{pass, pass, refuse, {verdict: headgate.Deny, reason: headgate.Banned, policy: "r-ban"}},
		},
		"delay": {
			func(r *guard.Rule) {
				r.Policies[0].Algorithm = headgate.TokenBucket
				r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: 45 * time.Second}
			},
			[]step{pass, pass, {verdict: headgate.Wait, reason: headgate.Scheduled, retry: 30 * time.Second}, refuse},
		},
		"override": {func(r *guard.Rule) { r.Overrides = []guard.Override{over} }, []step{pass, pass, pass, refuse}},
	} {
		t.Run(name, func(t *testing.T) {
			r := local(byClient(t, "r", "/p", perMinute(8)))
			story.change(&r)
			g, _, clock := alone(t, r)
			tell(t, g, clock.Advance, "/p", story.steps)
			r.Mode = guard.Shadow
			g, _, _ = alone(t, r)
			for i, want := range story.steps {
				a := decide(t, g, request("/p", "a"))
				if reason := strictest(a); a.Verdict != headgate.Allow || reason != want.reason {
					t.Errorf("in shadow, request %d: %v %v, want %v", i, a.Verdict, reason, want.reason)
				}
			}
		})
	}
}

// strictest gives the reason of the shadow rule's strictest result.
func strictest(a *guard.Answer) headgate.Reason {
	last := &a.Results[0].Decision
	for i := range a.Results {
		d := &a.Results[i].Decision
		if d.Verdict > last.Verdict || d.Verdict == last.Verdict && d.Reason > last.Reason {
			last = d
		}
	}
	return last.Reason
}

// A cost above this instance's part is never admitted by it.
func TestCostAboveThePart(t *testing.T) {
	r := local(byClient(t, "r", "/p", perMinute(8)))
	r.Cost = 3
	g, _, _ := alone(t, r)
	if a := decide(t, g, request("/p", "a")); a.Closest().Decision.Reason != headgate.Never || a.RetryAfter() != 0 {
		t.Errorf("%+v", a.Closest().Decision)
	}
}

// TestWaitsOfLocal: a request waits for a departure in Local and is cancelled. The departure is
// returned to Local, also when the store answers again and the rules were reloaded meanwhile.
func TestWaitsOfLocal(t *testing.T) {
	r := local(bucket(t, "slow", "/p", headgate.Limit{Count: 4, Per: time.Minute}))
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Hour, MaxWaiters: 1}
	g, store, clock := alone(t, r)
	decide(t, g, request("/p", "a"))
	a := decide(t, g, request("/p", "a"))
	if a.Verdict != headgate.Wait || a.RetryAfter() != time.Minute || g.Waiting("slow") != 1 {
		t.Fatalf("%v for %v, %d wait", a.Verdict, a.RetryAfter(), g.Waiting("slow"))
	}
	if full := decide(t, g, request("/p", "a")); full.Closest().Decision.Reason != headgate.TooManyWaiters {
		t.Errorf("the second to wait: %+v", full.Closest().Decision)
	}
	store.down = false
	if err := g.Reload(guard.Config{Rules: []guard.Rule{r}, Store: store, Local: inMemory(t, clock), LocalShare: 50}); err != nil {
		t.Fatal(err)
	}
	calls := store.calls
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := g.Wait(ctx, a); !errors.Is(err, context.Canceled) || store.calls != calls || g.Waiting("slow") != 0 {
		t.Errorf("Wait gives %v; the store was called %d times", err, store.calls-calls)
	}
}

// TestCancelReturnsToLocal: Cancel returns the units that a request took in Local.
func TestCancelReturnsToLocal(t *testing.T) {
	g, store, _ := alone(t, local(byClient(t, "a", "/p", perMinute(4))))
	for range 3 {
		a := decide(t, g, request("/p", "x"))
		calls := store.calls
		if err := g.Cancel(t.Context(), a); a.Verdict != headgate.Allow || err != nil || store.calls != calls {
			t.Errorf("%v, and cancelled: %v; the store was called %d times", a.Verdict, err, store.calls-calls)
		}
	}
}

// TestLiftInLocal: Lift ends a ban in Local too.
func TestLiftInLocal(t *testing.T) {
	r := local(byClient(t, "login", "/p", perMinute(40)))
	r.Ban = guard.Ban{After: perMinute(4), For: time.Hour}
	g, _, clock := alone(t, r)
	tell(t, g, clock.Advance, "/p", []step{
		{verdict: headgate.Allow, reason: headgate.StoreUnavailable},
		{verdict: headgate.Deny, reason: headgate.Banned},
	})
	bans, _ := g.Bans(clock.Now().Time())
	if len(bans) != 1 {
		t.Fatalf("%d bans are listed", len(bans))
	}
	if lifted, err := g.Lift(t.Context(), bans[0].ID); !lifted || err != nil {
		t.Errorf("lifted %v: %v", lifted, err)
	}
	tell(t, g, clock.Advance, "/p", []step{{verdict: headgate.Allow, reason: headgate.StoreUnavailable}})
}

// TestLocalCannotAnswerEither: when Local fails too, no request passes.
func TestLocalCannotAnswerEither(t *testing.T) {
	g, _ := newGuard(t, guard.Config{Store: deaf{}, Local: &shaky{Store: inMemory(t, nil), down: true}, LocalShare: 50, Rules: []guard.Rule{
		local(byClient(t, "a", "/p", perMinute(4))),
	}})
	a := decide(t, g, request("/p", "x"))
	if d := a.Closest(); a.Verdict != headgate.Deny || d.Decision.Reason != headgate.StoreUnavailable || !d.Fallback || !strings.Contains(a.StoreError.Error(), "Local") {
		t.Errorf("%+v: %v", d.Decision, a.StoreError)
	}
}

// TestManyLocalGroups: Local gets the same groups as the store, although rules with other fallbacks
// stood between them.
func TestManyLocalGroups(t *testing.T) {
	rules := []guard.Rule{local(byClient(t, "none", "/p", perMinute(0)))}
	for i := range 600 {
		r := byClient(t, fmt.Sprint("r", i), "/p", perMinute(20))
		if i%255 == 0 {
			r = local(r)
		}
		rules = append(rules, r)
	}
	for i := range rules {
		rules[i].Mode = guard.Shadow
	}
	g, _, _ := alone(t, rules...)
	a := decide(t, g, request("/p", "a"))
	seen := 0
	for i := range a.Results[1:] {
		if r := &a.Results[1+i]; r.Rule.Fallback == guard.FallbackLocal {
			seen++
			if r.Decision.Remaining != 4 {
				t.Errorf("%s has %d left, want 4: another rule's refusal is its own", r.Policy, r.Decision.Remaining)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d fell back to Local", seen)
	}
}

// TestCallerGone: a cancelled decision says nothing about the store, and is not counted in Local. A
// passed deadline of the caller is a fault of the store.
func TestCallerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &shaky{Store: inMemory(t, nil), hangs: true}
		g, _ := newGuard(t, guard.Config{
			Store: store, Local: inMemory(t, nil), LocalShare: 50, StoreTimeout: 20 * time.Millisecond,
			Rules: []guard.Rule{local(byClient(t, "a", "/p", perMinute(2)))},
		})
		for name, want := range map[string]struct {
			ctx     func() (context.Context, context.CancelFunc)
			after   time.Duration
			gone    bool
			verdict headgate.Verdict
		}{
			"gone": {func() (context.Context, context.CancelFunc) {
				ctx, leave := context.WithCancel(t.Context())
				time.AfterFunc(3*time.Millisecond, leave)
				return ctx, leave
			}, 3 * time.Millisecond, true, headgate.Deny},
			"its deadline": {func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 5*time.Millisecond)
			}, 5 * time.Millisecond, false, headgate.Allow},
			"store_timeout": {func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), time.Hour)
			}, 20 * time.Millisecond, false, headgate.Allow},
		} {
			ctx, end := want.ctx()
			began := time.Now()
			var a guard.Answer
			if err := g.Decide(ctx, request("/p", name), &a); err != nil {
				t.Fatal(err)
			}
			end()
			if elapsed := time.Since(began); elapsed != want.after || a.Verdict != want.verdict || a.StoreError == nil {
				t.Errorf("%s: %v after %v, %v", name, a.Verdict, elapsed, a.StoreError)
			}
			if errors.Is(a.StoreError, guard.ErrCallerGone) != want.gone || errors.Is(a.StoreError, context.Canceled) != want.gone {
				t.Errorf("%s: the store's error is %v", name, a.StoreError)
			}
		}
		// Local has counted nothing for the cancelled request.
		if a := decide(t, g, request("/p", "gone")); a.Verdict != headgate.Allow {
			t.Error("a caller that had gone was counted")
		}
	})
}

// TestGoneFromABrokenStore: the error of the store is kept beside ErrCallerGone.
func TestGoneFromABrokenStore(t *testing.T) {
	g, _, _ := alone(t, byClient(t, "a", "/p", perMinute(2)))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	var a guard.Answer
	if err := g.Decide(ctx, request("/p", "x"), &a); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(a.StoreError, guard.ErrCallerGone) || !errors.Is(a.StoreError, errDeaf) {
		t.Errorf("the store's error is %v", a.StoreError)
	}
}

// TestFallbackAllocatesNothing: with an unreachable store, a decision allocates only the error, and
// with StoreTimeout the budget.
func TestFallbackAllocatesNothing(t *testing.T) {
	trial := local(byClient(t, "b", "/p", perMinute(2)))
	trial.Mode = guard.Shadow // A group of one Op: the store in memory pools memory for larger groups.
	for timeout, want := range map[time.Duration]float64{0: 0, time.Minute: 1} {
		g, _ := newGuard(t, guard.Config{
			Store: &shaky{Store: inMemory(t, nil), down: true}, Local: inMemory(t, nil), LocalShare: 50, StoreTimeout: timeout,
			Rules: []guard.Rule{local(byClient(t, "a", "/p", perMinute(1e6))), trial},
		})
		req, a, ctx := request("/p", "client-1"), &guard.Answer{}, t.Context()
		if err := g.Decide(ctx, req, a); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(200, func() { _ = g.Decide(ctx, req, a) }); n > want {
			t.Errorf("with a timeout of %v a decision allocates %v times, want %v", timeout, n, want)
		}
	}
}

// keeps is a store with a failing Return.
type keeps struct{ headgate.Store }

var errKept = errors.New("kept")

// Return implements headgate.Store.
func (keeps) Return(context.Context, []headgate.Receipt) error { return errKept }

// TestWhatIsNotTakenBack: StoreError says why the store did not answer, and why the units of a refused
// request stay counted.
func TestWhatIsNotTakenBack(t *testing.T) {
	rules := []guard.Rule{local(byClient(t, "a", "/p", perMinute(4))), byClient(t, "closed", "/p", perMinute(4))}
	g, _ := newGuard(t, guard.Config{Store: deaf{}, Local: keeps{inMemory(t, nil)}, LocalShare: 50, Rules: rules})
	if a := decide(t, g, request("/p", "x")); !errors.Is(a.StoreError, errDeaf) || !errors.Is(a.StoreError, errKept) {
		t.Errorf("the answer tells of %v", a.StoreError)
	}
	g, _ = newGuard(t, guard.Config{Store: keeps{inMemory(t, nil)}, Rules: rules[1:]})
	a := decide(t, g, request("/p", "x"))
	if err := g.Cancel(t.Context(), a); !errors.Is(err, errKept) || a.StoreError != nil {
		t.Errorf("Cancel gives %v, and the answer %v", err, a.StoreError)
	}
}

// TestRefundInLocal: while the store is unreachable, a refund gives units of two limits back in Local.
func TestRefundInLocal(t *testing.T) {
	g, _, _ := alone(t, local(byClient(t, "a", "/a", perMinute(8), headgate.Limit{Count: 8, Per: time.Hour})))
	for step, kind := range []headgate.OpKind{headgate.Take, headgate.Refund, headgate.Take} {
		r := request("/a", "x")
		r.Kind, r.Cost = kind, 2
		a := decide(t, g, r)
		if a.Verdict != headgate.Allow || errors.Is(a.StoreError, headgate.ErrBadGroup) {
			t.Errorf("step %d: %s, %v", step, a.Verdict, a.StoreError)
		}
	}
}
