package guard_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// switchable returns rules whose limits admit one request of each client, in a list of their own.
func switchable(t *testing.T, names ...string) []guard.Rule {
	t.Helper()
	key, err := rule.ParsePart("header:X-Client-Id")
	if err != nil {
		t.Fatal(err)
	}
	rules := make([]guard.Rule, len(names))
	for i, name := range names {
		rules[i] = guard.Rule{
			Rule:     rule.Rule{Name: name, Key: []rule.Part{key}},
			Policies: []headgate.Policy{{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
		}
	}
	return rules
}

func guardOf(t *testing.T, c guard.Config) *guard.Guard {
	t.Helper()
	if c.Store == nil {
		c.Store = ninetySeconds(t)
	}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func ninetySeconds(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 4 << 20, Clock: func() headgate.Instant { return headgate.Instant(90 * time.Second) }})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// byHeader is the header of a client.
type byHeader string

func (b byHeader) Lookup(name string) (string, bool) { return string(b), name == "X-Client-Id" }

// verdictOf decides a request of a client.
func verdictOf(t *testing.T, g *guard.Guard, client string) headgate.Verdict {
	t.Helper()
	var a guard.Answer
	if err := g.Decide(t.Context(), &headgate.Request{Path: "/", Header: byHeader(client)}, &a); err != nil || a.StoreError != nil {
		t.Fatal(err, a.StoreError)
	}
	return a.Verdict
}

// refusedOf gives the clients that are refused at their second request.
func refusedOf(t *testing.T, g *guard.Guard, n int) map[string]bool {
	t.Helper()
	refused := map[string]bool{}
	for i := range n {
		client := fmt.Sprint("client-", i)
		if v := verdictOf(t, g, client); v != headgate.Allow {
			t.Fatalf("the first request of %s: %v", client, v)
		}
		if verdictOf(t, g, client) == headgate.Deny {
			refused[client] = true
		}
	}
	return refused
}

// TestSwitchForAPartOfTheKeys: two instances refuse the same clients, whatever the order of their rules, their namespace and other rules
// with the key. A higher percentage refuses these clients and others.
func TestSwitchForAPartOfTheKeys(t *testing.T) {
	const clients = 2000
	switched := func(percent int, c guard.Config, names ...string) map[string]bool {
		c.Rules = switchable(t, names...)
		for i := range c.Rules {
			c.Rules[i].Switch = &guard.Switch{Percent: percent}
		}
		return refusedOf(t, guardOf(t, c), clients)
	}
	ten := switched(10, guard.Config{}, "a")
	if n := len(ten); n < clients*7/100 || n > clients*13/100 {
		t.Errorf("10 %% of the keys are %d of %d", n, clients)
	}
	for name, other := range map[string]map[string]bool{
		"another instance":  switched(10, guard.Config{}, "a"),
		"another order":     switched(10, guard.Config{}, "b", "a"),
		"another namespace": switched(10, guard.Config{Namespace: "x"}, "a"),
	} {
		if len(other) != len(ten) {
			t.Errorf("%s: %d keys are enforced, want %d", name, len(other), len(ten))
		}
		for client := range ten {
			if !other[client] {
				t.Errorf("%s: %s is in shadow", name, client)
			}
		}
	}
	thirty := switched(30, guard.Config{}, "a")
	for client := range ten {
		if !thirty[client] {
			t.Errorf("%s is enforced at 10 %% and not at 30 %%", client)
		}
	}
	if n := len(thirty); n < clients*26/100 || n > clients*34/100 {
		t.Errorf("30 %% of the keys are %d of %d", n, clients)
	}
}

// TestSwitchInAGroup: for the keys that a switch leaves in shadow, the next rule of the group decides, as without the switch.
func TestSwitchInAGroup(t *testing.T) {
	first, next := inGroup(t, "first", "/p", "g", guard.Enforce), inGroup(t, "next", "/p", "g", guard.Enforce)
	first.Switch = &guard.Switch{From: guard.Shadow, Percent: 10}
	g := guardOf(t, guard.Config{Rules: []guard.Rule{first, next}})
	enforced := 0
	for n := range 500 {
		client := fmt.Sprint("client ", n)
		a := decide(t, g, request("/p", client))
		want := "first+ "
		if !guard.InShare(keyOf(t, &first, client), 10) {
			want = "next+ first- "
		} else {
			enforced++
		}
		got := ""
		for i := range a.Results {
			sign := "-"
			if a.Results[i].Enforced() {
				sign = "+"
			}
			got += a.Results[i].Rule.Name + sign + " "
		}
		if got != want {
			t.Fatalf("%s: %s decides, want %s", client, got, want)
		}
	}
	if enforced < 25 || enforced > 75 {
		t.Errorf("%d of 500 keys are enforced, want about 50", enforced)
	}
}

// keyOf gives the values of the key of a client.
func keyOf(t *testing.T, r *guard.Rule, client string) []byte {
	t.Helper()
	key, _ := r.AppendKey(nil, request("/p", client))
	return key[1+len(r.Name):]
}

// TestSwitchUnderLoad: 8 callers decide while the mode changes. No request fails, and the counter has exactly what was taken: after the
// last switch, the limit is where the number of requests has put it.
func TestSwitchUnderLoad(t *testing.T) {
	const callers, each = 8, 500
	const limit = callers*each + 3
	rules := switchable(t, "a")
	rules[0].Policies[0].Limit.Count = limit
	c := guard.Config{Store: ninetySeconds(t), Rules: rules}
	g := guardOf(t, c)
	var deciding sync.WaitGroup
	for range callers {
		deciding.Go(func() {
			for range each {
				if v := verdictOf(t, g, "one"); v != headgate.Allow {
					t.Errorf("verdict %v below the limit", v)
				}
			}
		})
	}
	for i := range 50 {
		next := c
		next.Rules = switchable(t, "a")
		next.Rules[0].Policies[0].Limit.Count = limit
		switch i % 3 {
		case 0:
			next.Rules[0].Mode, next.Rules[0].Switch = guard.Shadow, &guard.Switch{}
		case 1:
			next.Rules[0].Switch = &guard.Switch{Percent: 50}
		}
		if err := g.Reload(next); err != nil {
			t.Fatal(err)
		}
	}
	deciding.Wait()
	if err := g.Reload(c); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if v := verdictOf(t, g, "one"); (v == headgate.Deny) != (i == 3) {
			t.Errorf("request %d after the load: %v", i+1, v)
		}
	}
}

// TestBansOfASwitch: a ban that began in the other mode does not hold after a switch, and one of the present mode comes back with it.
func TestBansOfASwitch(t *testing.T) {
	for name, keeps := range map[string]bool{"apart": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			store := ninetySeconds(t)
			config := func(mode guard.Mode, s *guard.Switch) guard.Config {
				rules := switchable(t, "login")
				rules[0].Policies[0].Limit.Count = 100
				rules[0].Ban = guard.Ban{After: headgate.Limit{Count: 2, Per: time.Hour}, For: time.Hour}
				rules[0].Mode, rules[0].Switch = mode, s
				return guard.Config{Store: store, Rules: rules}
			}
			shadow := config(guard.Shadow, &guard.Switch{From: guard.Enforce, KeepBans: keeps})
			file := config(guard.Enforce, nil)
			g := guardOf(t, shadow)
			for range 4 {
				if v := verdictOf(t, g, "a"); v != headgate.Allow {
					t.Fatalf("in shadow: %v", v)
				}
			}
			if entries, _ := g.Bans(time.Unix(90, 0)); len(entries) != 1 || !entries[0].Shadow {
				t.Fatalf("the bans are %+v, want one in shadow", entries)
			}
			if err := g.Reload(file); err != nil {
				t.Fatal(err)
			}
			if v := verdictOf(t, g, "a"); (v == headgate.Deny) != keeps {
				t.Errorf("after the switch back, a client that was banned in shadow gets %v", v)
			}
			for range 4 {
				verdictOf(t, g, "b")
			}
			for _, step := range []guard.Config{shadow, file} {
				if err := g.Reload(step); err != nil {
					t.Fatal(err)
				}
				want := headgate.Deny
				if step.Rules[0].Mode == guard.Shadow {
					want = headgate.Allow
				}
				if v := verdictOf(t, g, "b"); v != want {
					t.Errorf("with mode %v, a client that was banned with enforce gets %v", step.Rules[0].Mode, v)
				}
			}
			for _, client := range []string{"a", "b"} {
				entries, _ := g.Bans(time.Unix(90, 0))
				for _, e := range entries {
					if lifted, err := g.Lift(t.Context(), e.ID); err != nil || !lifted {
						t.Errorf("a ban of %s is not lifted: %v", client, err)
					}
				}
				if v := verdictOf(t, g, client); v != headgate.Allow {
					t.Errorf("%s after its ban was lifted: %v", client, v)
				}
			}
		})
	}
}

// TestSwitchAllocations: a decision on a part of the keys allocates nothing.
func TestSwitchAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	rules := switchable(t, "a")
	rules[0].Policies[0].Limit.Count, rules[0].Switch = headgate.MaxUnits, &guard.Switch{Percent: 50}
	g := guardOf(t, guard.Config{Rules: rules})
	var a guard.Answer
	for _, client := range []byHeader{"client-1", "client-2", "client-3"} {
		req := &headgate.Request{Path: "/", Header: client}
		if n := testing.AllocsPerRun(200, func() { _ = g.Decide(t.Context(), req, &a) }); n != 0 {
			t.Errorf("a decision on %s allocates %v times", client, n)
		}
	}
}
