package guard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/store/memory"
)

// of names the key of a client under a rule of byClient.
func of(ruleName, client string) guard.KeyName {
	return guard.KeyName{Rule: ruleName, Values: []string{client}}
}

func keyState(t *testing.T, g *guard.Guard, name guard.KeyName) *guard.KeyState {
	t.Helper()
	state, err := g.Peek(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestPeekAndReset: a peek says what requests would find, and takes nothing. A reset gives all units back, and neither
// slots nor a ban.
func TestPeekAndReset(t *testing.T) {
	r := byClient(t, "api", "/p", headgate.Limit{Count: 3, Per: time.Second}, perMinute(4))
	r.Overrides = []guard.Override{{Value: "gold", Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: perMinute(100)}}}}
	r.InFlight, r.Ban = 7, guard.Ban{After: perMinute(20), For: time.Hour}
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{r}, Namespace: "shop"})
	for range 2 {
		ticket := &guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), request("/p", "a"), ticket); err != nil || ticket.Answer.Verdict != headgate.Allow {
			t.Fatalf("%v, %v", ticket.Answer.Verdict, err)
		}
	}
	check := func(what string, second, minute int64) *guard.KeyState {
		t.Helper()
		s := keyState(t, g, of("api", "a"))
		if l := s.Limits; len(l) != 2 || l[0].Used != second || l[0].Remaining != 3-second || l[1].Used != minute || l[1].Remaining != 4-minute {
			t.Errorf("%s: %+v", what, s)
		}
		return s
	}
	s := check("two requests", 2, 2)
	if s.Key != `api header:X-Client-Id="a"` || s.Rule != "api" || s.Override != "" || s.Ban != nil || *s.InFlight != (guard.SlotState{Used: 2, Limit: 7}) {
		t.Errorf("two requests: %+v, %+v", s, s.InFlight)
	}
	if l := s.Limits[0]; l.Policy != "api-1s" || l.Next != 0 || l.Full != time.Second || l.Limit.Count != 3 {
		t.Errorf("the first limit: %+v", l)
	}
	clock.Advance(time.Second)
	check("the next second", 0, 2)
	check("read again", 0, 2)
	if s := keyState(t, g, of("api", "gold")); s.Override != "gold" || len(s.Limits) != 1 || s.Limits[0].Remaining != 100 {
		t.Errorf("an override: %+v", s)
	}
	before, err := g.Reset(t.Context(), of("api", "a"))
	if err != nil || before.Limits[1].Used != 2 {
		t.Errorf("before the reset: %+v, %v", before, err)
	}
	if s := check("reset", 0, 0); s.InFlight.Used != 2 {
		t.Errorf("after a reset %d slots are taken, want 2", s.InFlight.Used)
	}
	for range 22 {
		ticket := &guard.Ticket{Answer: new(guard.Answer)}
		if err := g.Admit(t.Context(), request("/p", "a"), ticket); err != nil {
			t.Fatal(err)
		}
		ticket.Done(guard.Outcome{})
	}
	s = keyState(t, g, of("api", "a"))
	if s.Ban == nil || s.Ban.Operator || s.Limits[0].Used != 3 || s.Limits[0].Next != time.Second {
		t.Fatalf("too many attempts: %+v", s)
	}
	if _, err := g.Reset(t.Context(), of("api", "a")); err != nil || keyState(t, g, of("api", "a")).Ban == nil {
		t.Errorf("a reset has lifted a ban, or failed: %v", err)
	}
	if banned, err := g.Unban(t.Context(), of("api", "a")); err != nil || !banned || keyState(t, g, of("api", "a")).Ban != nil {
		t.Errorf("unban: %v, %v", banned, err)
	}
	if banned, err := g.Unban(t.Context(), of("api", "a")); err != nil || banned {
		t.Errorf("a second unban: %v, %v", banned, err)
	}
}

// TestKeyNames: an error says why there is no such key, and what to do.
func TestKeyNames(t *testing.T) {
	off := byClient(t, "old", "/o", perMinute(1))
	off.Mode = guard.Off
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{byClient(t, "search", "/p", perMinute(1)), off}, Domains: []guard.Domain{userShop()}})
	for _, c := range []struct {
		name    guard.KeyName
		want    string
		unknown bool
	}{
		{of("serch", "a"), `no rule has the name "serch": did you mean search?`, true},
		{of("old", "a"), "rule old is off", true},
		{guard.KeyName{Rule: "search"}, "write a value for each of its parts: header:X-Client-Id", false},
		{of("search", ""), "part header:X-Client-Id: its value is empty", false},
		{guard.KeyName{Domain: "store"}, `no domain has limits under the name "store"`, true},
		{guard.KeyName{Domain: "shop", Entries: headgate.Descriptors{{Name: "x", Value: "1"}}}, "has no limit for this descriptor", true},
		{guard.KeyName{Domain: "shop", Rule: "search"}, "name one of them", false},
	} {
		_, err := g.Peek(t.Context(), c.name)
		fault := new(guard.KeyNameError)
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), c.want) || fault.Unknown != c.unknown {
			t.Errorf("%+v: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := g.Ban(t.Context(), of("search", "a"), 0, ""); err == nil {
		t.Error("a ban of no time is accepted")
	}
	if _, err := new(guard.Guard).Peek(t.Context(), of("search", "a")); !errors.Is(err, headgate.ErrNotMade) {
		t.Errorf("a guard that was not made: %v", err)
	}
}

// userShop is a domain that counts each user.
func userShop() guard.Domain {
	return guard.Domain{Name: "shop", Descriptors: []guard.Descriptor{{Key: "user", Leaf: &guard.Leaf{Policies: []headgate.Policy{
		guard.LeafPolicy(headgate.FixedWindow, perMinute(2)),
	}}}}}
}

// TestKeyOfADomain: the key of a descriptor is read, reset and banned like that of a rule. The memory of refusals
// forgets the key.
func TestKeyOfADomain(t *testing.T) {
	world := new(world)
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20, Clock: func() headgate.Instant { return started.Add(world.now) }})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Domains: []guard.Domain{userShop()}, Store: store, RefusalsMemory: 1 << 16, State: guard.NewStateAt(world)})
	if err != nil {
		t.Fatal(err)
	}
	entries := headgate.Descriptors{{Name: "user", Value: "a"}}
	name := guard.KeyName{Domain: "shop", Entries: entries}
	ask := func(user string, together bool) *guard.Answer {
		t.Helper()
		requests := []headgate.Request{{Domain: "shop", Descriptors: headgate.Descriptors{{Name: "user", Value: user}}, Cost: 1}}
		answers := make([]guard.Answer, 1)
		g.DecideDescriptors(t.Context(), requests, answers, together)
		return &answers[0]
	}
	for range 4 {
		ask("a", false)
	}
	if a := ask("a", false); a.Verdict != headgate.Deny || !a.Results[0].Recalled {
		t.Fatalf("the refusal is not remembered: %+v", a.Results)
	}
	if s := keyState(t, g, name); s.Key != `shop user="a"` || s.Rule != "shop.user" || s.Limits[0].Remaining != 0 || s.Limits[0].Next != 50*time.Second {
		t.Errorf("used up: %+v", s)
	}
	if _, err := g.Reset(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if a := ask("a", false); a.Verdict != headgate.Allow {
		t.Errorf("reset: %+v", a.Results)
	}
	entry, err := g.Ban(t.Context(), name, time.Hour, "abuse")
	if err != nil {
		t.Fatal(err)
	}
	for _, together := range []bool{false, true} {
		if a := ask("a", together); a.Verdict != headgate.Deny || a.Closest().Decision.Reason != headgate.Banned {
			t.Errorf("banned, together %v: %+v", together, a.Results)
		}
		if a := ask("b", together); a.Verdict != headgate.Allow || len(a.Results) != 1 {
			t.Errorf("another key, together %v: %+v", together, a.Results)
		}
	}
	bans, _ := g.Bans(store.Now().Time())
	if len(bans) != 1 || bans[0].ID != entry.ID || bans[0].Key != `shop user="a"` || bans[0].Reason != "abuse" {
		t.Errorf("bans: %+v", bans)
	}
	if lifted, err := g.Lift(t.Context(), entry.ID); err != nil || !lifted {
		t.Errorf("lifted %v, %v", lifted, err)
	}
	if a := ask("a", false); a.Closest().Decision.Reason != headgate.OverLimit { // The limit counts the attempts during the ban.
		t.Errorf("lifted: %+v", a.Results)
	}
}

// TestBanByAnOperator: a ban lasts until its end, over a reload. Requests of other keys show nothing of it.
func TestBanByAnOperator(t *testing.T) {
	c := guard.Config{Rules: []guard.Rule{byClient(t, "api", "/p", perMinute(5)), byClient(t, "other", "/p", perMinute(9))}}
	g, clock := newGuard(t, c)
	if _, err := g.Ban(t.Context(), of("api", "a"), time.Hour, "abuse"); err != nil {
		t.Fatal(err)
	}
	c.Store = g.Store()
	if err := g.Reload(c); err != nil {
		t.Fatal(err)
	}
	a := decide(t, g, request("/p", "a"))
	r := a.Closest()
	if a.Verdict != headgate.Deny || r.Decision.Reason != headgate.Banned || r.Decision.RetryAfter != time.Hour || r.Policy != "api-ban" ||
		r.Decision.Limit != 0 || r.Decision.Remaining != 0 {
		t.Errorf("banned: %v %+v", a.Verdict, r)
	}
	if s := keyState(t, g, of("api", "a")); s.Ban == nil || !s.Ban.Operator || s.Ban.Reason != "abuse" || s.Limits[0].Used != 0 {
		t.Errorf("banned: %+v", s)
	}
	if s := keyState(t, g, of("other", "a")); s.Limits[0].Used != 0 {
		t.Errorf("a refused request has used %d units of another rule", s.Limits[0].Used)
	}
	if a := decide(t, g, request("/p", "b")); a.Verdict != headgate.Allow || len(a.Results) != 2 || a.Results[1].Policy != "other" {
		t.Errorf("another key: %v %+v", a.Verdict, a.Results)
	}
	if entry, err := g.Ban(t.Context(), of("api", "a"), time.Minute, "shorter"); err != nil || entry.Until != clock.Now().Add(time.Minute).Time() {
		t.Errorf("a second ban: %+v, %v", entry, err)
	}
	clock.Advance(time.Minute)
	if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow {
		t.Errorf("after the ban: %+v", a.Closest())
	}
	if bans, _ := g.Bans(clock.Now().Time()); len(bans) != 0 {
		t.Errorf("after the ban: %+v", bans)
	}
	clock.Advance(2 * time.Hour) // The marker has ended too.
	for range 2 {
		if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow || len(a.Results) != 2 {
			t.Errorf("later: %v %+v", a.Verdict, a.Results)
		}
	}
}

// TestFollowBans: an instance refuses the keys that another one has banned, of rules with and without a ban of their own.
func TestFollowBans(t *testing.T) {
	own := byClient(t, "own", "/q", perMinute(5))
	own.Ban = guard.Ban{After: perMinute(9), For: time.Minute}
	c := guard.Config{Rules: []guard.Rule{byClient(t, "api", "/p", perMinute(5)), own}, Namespace: "shop"}
	first, clock := newGuard(t, c)
	c.Store = first.Store()
	second, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"api", "own"} {
		if _, err := first.Ban(t.Context(), of(name, "a"), time.Hour, "abuse"); err != nil {
			t.Fatal(err)
		}
	}
	if a := decide(t, second, request("/q", "a")); a.Verdict != headgate.Deny {
		t.Errorf("a rule with a ban: %v", a.Verdict)
	}
	if err := second.FollowBans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := decide(t, second, request("/p", "a")); a.Verdict != headgate.Deny || a.Closest().Decision.Reason != headgate.Banned {
		t.Errorf("a rule without a ban: %v", a.Verdict)
	}
	met, _ := second.Bans(clock.Now().Time())
	bans, _ := first.Bans(clock.Now().Time())
	if len(met) != 2 || len(bans) != 2 || met[0].ID != bans[0].ID || !met[0].Operator || bans[1].Reason != "abuse" || met[1].Reason != "" {
		t.Errorf("the instances list %+v and %+v", bans, met)
	}
	if err := first.FollowBans(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ban := range bans {
		if lifted, err := second.Lift(t.Context(), ban.ID); err != nil || !lifted {
			t.Errorf("lift %s: %v, %v", ban.Rule, lifted, err)
		}
	}
	for path, g := range map[string]*guard.Guard{"/p": first, "/q": second} {
		if a := decide(t, g, request(path, "a")); a.Verdict != headgate.Allow {
			t.Errorf("lifted, %s: %+v", path, a.Closest())
		}
	}
}

// TestResetDropsSpareDepartures: after a reset, a request goes at once, and does not wait for a departure that a cancelled
// request has left.
func TestResetDropsSpareDepartures(t *testing.T) {
	r := byClient(t, "api", "/p")
	r.Policies = []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Minute}}}
	r.Exceed = guard.Exceed{Action: guard.Delay, MaxWait: time.Hour}
	g, _ := newGuard(t, guard.Config{Rules: []guard.Rule{r}})
	var waiting [2]*guard.Answer
	if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow {
		t.Fatal(a.Verdict)
	}
	for i := range waiting {
		if waiting[i] = decide(t, g, request("/p", "a")); waiting[i].Verdict != headgate.Wait {
			t.Fatal(waiting[i].Verdict)
		}
	}
	for _, a := range waiting {
		if err := g.Cancel(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Reset(t.Context(), of("api", "a")); err != nil {
		t.Fatal(err)
	}
	if a := decide(t, g, request("/p", "a")); a.Verdict != headgate.Allow {
		t.Errorf("reset: %v %+v", a.Verdict, a.Closest().Decision)
	}
}

// seen counts what an Observer gets.
type seen struct{ n int }

// Observe implements guard.Observer.
func (s *seen) Observe(*headgate.Request, *guard.Answer) { s.n++ }

// TestRequestThatPeeks: a request with Peek gets the decision that it would get, at the cost of its rule. It takes nothing, counts for
// no ban, is not reported, and never waits.
func TestRequestThatPeeks(t *testing.T) {
	plain, leaky := byClient(t, "plain", "/p", perMinute(5)), byClient(t, "leaky", "/q")
	plain.Cost, plain.Ban = 2, guard.Ban{After: perMinute(7), For: time.Hour}
	leaky.Policies = []headgate.Policy{{Algorithm: headgate.LeakyBucket, Limit: headgate.Limit{Count: 2, Per: time.Minute}}}
	observer := new(seen)
	g, clock := newGuard(t, guard.Config{Rules: []guard.Rule{plain, leaky}, Observer: observer})
	ask := func(path string, peeks bool) *guard.Answer {
		t.Helper()
		req := request(path, "a")
		req.Peek = peeks
		return decide(t, g, req)
	}
	for n, want := range []headgate.Verdict{headgate.Allow, headgate.Allow, headgate.Deny} {
		for range 9 {
			if a := ask("/p", true); a.Verdict != want {
				t.Errorf("%d requests, then a peek: %v %+v", n, a.Verdict, a.Closest())
			}
		}
		if a := ask("/p", false); a.Verdict != want {
			t.Errorf("request %d after peeks: %v %+v", n, a.Verdict, a.Closest())
		}
	}
	if observer.n != 3 {
		t.Errorf("%d decisions are reported, want those of 3 requests", observer.n)
	}
	if a := ask("/p", true); a.Closest().Decision.Reason != headgate.Banned { // The next attempt would begin a ban.
		t.Errorf("before a ban: %+v", a.Closest())
	}
	if bans, _ := g.Bans(clock.Now().Time()); len(bans) != 0 {
		t.Errorf("peeks have begun the bans %+v", bans)
	}
	if a := ask("/q", true); a.Verdict != headgate.Allow {
		t.Errorf("an empty queue: %+v", a.Closest())
	}
	ask("/q", false)
	if a := ask("/q", true); a.Verdict != headgate.Deny || a.Closest().Decision.RetryAfter != 30*time.Second {
		t.Errorf("a request that would wait: %v %+v", a.Verdict, a.Closest().Decision)
	}
}
