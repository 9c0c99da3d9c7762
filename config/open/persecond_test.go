package open

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

const perSecondRules = "store_timeout: 10s\ndeny_cache: 0s\nrules:\n" +
	"- {name: second, match: {path: /second}, key: [all], algorithm: fixed_window, limits: [1000000/1s]}\n" +
	"- {name: day, match: {path: /day}, key: [all], limits: [5/1d]}\n" +
	"- {name: both, match: {path: /both}, key: [all], limits: [5/1d]}\n" +
	"- {name: both-second, match: {path: /both}, key: [all], algorithm: fixed_window, limits: [1000000/1s]}\n"

// openPair opens a guard on two servers, and waits until both have answered.
func openPair(t *testing.T, main, second string) (*Opened, *guard.Guard) {
	t.Helper()
	c, err := config.Parse("f", []byte("version: 1\nstore: "+main+"\nstore_per_second: "+second+"\n"+perSecondRules))
	if err != nil {
		t.Fatal(err)
	}
	s, g := opened(t, c, Options{})
	until(t, func() bool { return s.Redis().Stats().Connected && s.PerSecond().Stats().Connected })
	return s, g
}

// decisions gives the number of decisions by each server, by its address.
func decisions(s *Opened) map[string]uint64 {
	nodes := map[string]uint64{}
	for _, n := range s.State().Nodes {
		nodes[n.Name] = n.Decisions
	}
	return nodes
}

// TestPerSecond: the limits of a second count on the second server, and all others on the first. A request with
// both is exact.
func TestPerSecond(t *testing.T) {
	main, second := testredis.Start(t), testredis.StartACL(t, "app", "s@cret", "~*", "+@all")
	s, g := openPair(t, "redis://"+main.Addr, "redis://app:s%40cret@"+second.Addr)
	for _, step := range []struct {
		path         string
		main, second uint64
	}{{"/second", 0, 1}, {"/day", 1, 1}, {"/both", 2, 2}} {
		if d := decide(t, g, step.path); d.Verdict != headgate.Allow || d.StoreError != nil {
			t.Fatalf("%s: %+v", step.path, d)
		}
		if got := decisions(s); len(got) != 2 || got[main.Addr] != step.main || got[second.Addr] != step.second {
			t.Errorf("after %s, the servers have decided %v, want %d and %d", step.path, got, step.main, step.second)
		}
	}
	allowed := 1
	for range 9 {
		if decide(t, g, "/both").Verdict == headgate.Allow {
			allowed++
		}
	}
	if allowed != 5 {
		t.Errorf("%d of 10 requests are allowed, want 5", allowed)
	}
}

// TestPerSecondOfOneServer: with two databases of one server, the state has the server once, with the decisions
// of both.
func TestPerSecondOfOneServer(t *testing.T) {
	server := testredis.Start(t)
	s, g := openPair(t, "redis://"+server.Addr, "redis://"+server.Addr+"/1")
	decide(t, g, "/both")
	if nodes := s.State().Nodes; len(nodes) != 1 || nodes[0].Decisions != 2 {
		t.Errorf("got %+v, want one node with 2 decisions", nodes)
	}
}

// TestPerSecondGone: while the second server does not answer, only rules with a limit of a second fall back.
func TestPerSecondGone(t *testing.T) {
	main, second := testredis.Start(t), testredis.Start(t)
	_, g := openPair(t, "redis://"+main.Addr, "redis://"+second.Addr)
	second.Kill()
	for path, fails := range map[string]bool{"/second": true, "/day": false, "/both": true} {
		if d := decide(t, g, path); (d.StoreError != nil) != fails {
			t.Errorf("%s: the store's error is %v", path, d.StoreError)
		}
	}
	if d := decide(t, g, "/day"); d.Verdict != headgate.Allow {
		t.Errorf("/day: %+v", d)
	}
}

// TestPerSecondChanged: a reload cannot change store_per_second.
func TestPerSecondChanged(t *testing.T) {
	server := testredis.Start(t)
	s, _ := openPair(t, "redis://"+server.Addr, "redis://"+server.Addr+"/1")
	next, err := config.Parse("f", []byte("version: 1\nrules: []\nstore: redis://"+server.Addr+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = GuardConfig(next, s)
	if !errors.Is(err, config.ErrStoreChanged) || !strings.Contains(err.Error(), "store_per_second redis://"+server.Addr+"/1") {
		t.Errorf("got %v, want ErrStoreChanged with both addresses", err)
	}
}
