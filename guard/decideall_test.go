package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/memory"
	"github.com/headgate/headgate/store/storetest"
)

var errStoreGone = errors.New("the store is gone")

// tallied is a store that counts its calls.
type tallied struct {
	headgate.Store

	applied, returned int
	fails             error
}

func (c *tallied) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	c.applied++
	if c.fails != nil {
		return c.fails
	}
	return c.Store.Apply(ctx, ops, decisions)
}

func (c *tallied) Return(ctx context.Context, receipts []headgate.Receipt) error {
	c.returned++
	return c.Store.Return(ctx, receipts)
}

// mixed makes a guard with rules of many kinds and a stopped clock. With a capacity, it has fair
// share, and its rules refuse nothing.
func mixed(t *testing.T, independent bool, capacity int64) (*guard.Guard, *tallied) {
	t.Helper()
	clock := storetest.NewClock()
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	var share *guard.FairShare
	if capacity > 0 {
		if share, err = guard.NewFairShare(capacity, "header:X-Client-Id"); err != nil {
			t.Fatal(err)
		}
	}
	bucket := byClient(t, "bucket", "/a")
	bucket.Policies = []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 9, Per: time.Minute, Burst: 9}}}
	banned := byClient(t, "banned", "/b", perMinute(4), headgate.Limit{Count: 6, Per: time.Hour})
	banned.Ban = guard.Ban{For: time.Hour}
	shadow := byClient(t, "shadow", "", perMinute(3))
	shadow.Mode = guard.Shadow
	degraded := byClient(t, "degraded", "/a", perMinute(2))
	degraded.Exceed = guard.Exceed{Action: guard.Degrade, Header: "X-Level", Value: "low"}
	rules := []guard.Rule{bucket, banned, shadow, degraded}
	if capacity > 0 {
		rules = rules[2:]
	}
	all := &tallied{Store: store}
	g, err := guard.New(guard.Config{
		FairShare: share, Rules: rules, Store: all, Independent: independent, Clock: clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, all
}

// TestDecideAllIsDecide: DecideAll gives the answers of Decide for each request in order. There are
// repeated keys, bans, costs above the limit and invalid costs, and fair share with rules that
// refuse nothing.
func TestDecideAllIsDecide(t *testing.T) {
	for seed := range uint64(race.Fewer(300, 60)) {
		random := rand.New(rand.NewPCG(seed, 0))
		capacity := int64(0)
		if seed%3 == 0 {
			capacity = 40
		}
		single, _ := mixed(t, seed%2 == 0, capacity)
		together, store := mixed(t, seed%2 == 0, capacity)
		for range 4 {
			requests := make([]headgate.Request, 1+random.IntN(20))
			for i := range requests {
				requests[i] = *request([]string{"/a", "/b", "/c"}[random.IntN(3)], strconv.Itoa(random.IntN(3)))
				requests[i].Cost = []int64{0, 1, 1, 2, 5, 20, -1}[random.IntN(7)]
			}
			answers := make([]guard.Answer, len(requests))
			store.applied, store.returned = 0, 0
			together.DecideAll(t.Context(), requests, answers)
			if store.applied > 1 || store.returned > 1 {
				t.Fatalf("seed %d: the store was asked %d times, and %d times to take back", seed, store.applied, store.returned)
			}
			for i := range requests {
				var want guard.Answer
				err := single.Decide(t.Context(), &requests[i], &want)
				if got := &answers[i]; !errors.Is(got.Error, err) || describe(got) != describe(&want) {
					t.Fatalf("seed %d, request %d of %d: %v\n%s\nand one by one %v\n%s", seed, i, len(requests), got.Error, describe(got), err, describe(&want))
				}
			}
		}
	}
}

// describe formats an answer, without the fields that only the store reads.
func describe(a *guard.Answer) string {
	text := fmt.Sprint(a.Verdict, reflect.ValueOf(a.Closest()).IsNil())
	for i := range a.Results {
		r := &a.Results[i]
		d := r.Decision
		text += fmt.Sprintf("\n%s %d %v %v taken %v", r.Policy, r.Window, r.Fallback, headgate.Decision{
			Verdict: d.Verdict, Reason: d.Reason, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, At: d.At,
		}, !d.Receipt.Empty())
	}
	return text
}

// TestDecideAllWithoutStore: each request gets the fallback of its rule.
func TestDecideAllWithoutStore(t *testing.T) {
	g, store := mixed(t, false, 0)
	store.fails = errStoreGone
	answers := make([]guard.Answer, 3)
	requests := []headgate.Request{*request("/a", "x"), *request("/none", "x"), {Cost: -1}}
	g.DecideAll(t.Context(), requests, answers)
	if answers[0].Verdict != headgate.Deny || !errors.Is(answers[0].StoreError, errStoreGone) || !answers[0].Results[0].Fallback {
		t.Errorf("%v, %v", answers[0].Verdict, answers[0].StoreError)
	}
	if answers[2].Verdict != headgate.Deny || !errors.Is(answers[2].Error, headgate.ErrBadCost) {
		t.Errorf("%v, %v", answers[2].Verdict, answers[2].Error)
	}
	(*guard.Guard)(nil).DecideAll(t.Context(), requests, answers)
	if !errors.Is(answers[0].Error, headgate.ErrNotMade) || answers[0].Verdict != headgate.Deny {
		t.Errorf("%v, %v", answers[0].Verdict, answers[0].Error)
	}
}
