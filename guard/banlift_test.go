package guard_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestLiftThroughAnotherInstance: an instance lifts a ban of the common store that only another one has met. It finds no ban where
// there is none, in force or any more, and none of another rule.
func TestLiftThroughAnotherInstance(t *testing.T) {
	login := byClient(t, "login", "/p", perMinute(1))
	login.Ban = guard.Ban{After: perMinute(2), For: time.Hour}
	other := byClient(t, "other", "/q", perMinute(1))
	c := guard.Config{Rules: []guard.Rule{login, other}, Namespace: "shop"}
	first, clock := newGuard(t, c)
	c.Store = first.Store()
	second, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		decide(t, first, request("/p", "a"))
	}
	bans, _ := first.Bans(clock.Now().Time())
	if met, _ := second.Bans(clock.Now().Time()); len(bans) != 1 || len(met) != 0 {
		t.Fatalf("bans are %+v and %+v", bans, met)
	}
	lift := func(id string, want bool) {
		t.Helper()
		if lifted, err := second.Lift(t.Context(), id); lifted != want || err != nil {
			t.Errorf("Lift gives %v, %v, want %v", lifted, err, want)
		}
	}
	decide(t, first, request("/p", "free"))
	lift(bans[0].ID[1:], false)
	lift(bans[0].ID, true)
	lift(bans[0].ID, false)
	clock.Advance(time.Minute) // The window of the limit has ended.
	if a := decide(t, first, request("/p", "a")); a.Verdict != headgate.Allow {
		t.Errorf("lifted: %v %v", a.Verdict, a.Closest().Decision.Reason)
	}
	// The rule bans no more, so nothing is in force.
	for range 3 {
		decide(t, first, request("/p", "a"))
	}
	login.Ban = guard.Ban{}
	if err := second.Reload(guard.Config{Rules: []guard.Rule{login, other}, Namespace: "shop", Store: c.Store}); err != nil {
		t.Fatal(err)
	}
	lift(bans[0].ID, false)
}

// TestPeekOfAnAttemptBeforeTheBan: a key one attempt before its ban is not banned.
func TestPeekOfAnAttemptBeforeTheBan(t *testing.T) {
	login := byClient(t, "login", "/p", perMinute(1))
	login.Ban = guard.Ban{After: perMinute(2), For: time.Hour}
	c := guard.Config{Rules: []guard.Rule{login}}
	first, clock := newGuard(t, c)
	c.Store = first.Store()
	second, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		decide(t, first, request("/p", "a"))
	}
	bans, _ := first.Bans(clock.Now().Time())
	if lifted, err := second.Lift(t.Context(), bans[0].ID); !lifted || err != nil {
		t.Fatalf("Lift gives %v, %v", lifted, err)
	}
	for range 2 {
		decide(t, first, request("/p", "a"))
	}
	if lifted, err := second.Lift(t.Context(), bans[0].ID); lifted || err != nil {
		t.Errorf("without a ban, Lift gives %v, %v", lifted, err)
	}
}

// TestCountsAs: each name under which decisions are reported is known, and no other.
func TestCountsAs(t *testing.T) {
	rule, off := byClient(t, "search", "/p", perMinute(1)), byClient(t, "old", "/q", perMinute(1))
	off.Mode = guard.Off
	leaf := &guard.Leaf{Policies: []headgate.Policy{{Limit: perMinute(1)}}}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{rule, off}, FairShare: among(t), Domains: []guard.Domain{{
		Name: "shop", Descriptors: []guard.Descriptor{{Key: "client", Leaf: leaf, Descriptors: []guard.Descriptor{{Key: "path", Value: "/a", Leaf: leaf}}}},
	}}})
	for name, want := range map[string]bool{
		"search": true, "old": true, "fair_share": true, "shop": true, "shop.client": true, "shop.client.path_/a": true,
		"": false, "nosuch": false, "shop.path": false, "shop.client.path": false, "throttle": false,
	} {
		if g.CountsAs(name) != want {
			t.Errorf("CountsAs(%q) = %v", name, !want)
		}
	}
}
