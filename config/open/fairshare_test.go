package open

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// TestGuardOfFairShare: a guard divides the capacity of its file, without rules and without an
// upstream.
func TestGuardOfFairShare(t *testing.T) {
	c := parsed(t, "version: 1\nfair_share: {client: method, capacity: 40, cycle: 1h, weights: {GET: 3, PUT: 1}}\n")
	g, err := Guard(c)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := g.Shares(); !ok || s.Capacity != 40 || len(s.Clients) != 2 || s.Clients[0].Default != 30 || s.Clients[1].Default != 10 {
		t.Errorf("the shares are %+v, %t", s, ok)
	}
	var a guard.Answer
	passed := 0
	for range 50 {
		if err := g.Decide(t.Context(), &headgate.Request{Method: "PUT", Path: "/"}, &a); err != nil {
			t.Fatal(err)
		}
		if a.Verdict == headgate.Allow {
			passed++
		}
	}
	if passed < 10 || passed > 40 || a.Closest().Policy != guard.FairShareName || a.Closest().Decision.Reason != headgate.OverShare {
		t.Errorf("%d of 50 pass, and the last has %+v", passed, a.Closest())
	}
}

// TestModesOfFairShare: mode off divides no capacity. Mode shadow refuses no request.
func TestModesOfFairShare(t *testing.T) {
	for mode, want := range map[string]headgate.Verdict{"enforce": headgate.Deny, "shadow": headgate.Allow, "off": headgate.Allow} {
		c := parsed(t, "version: 1\nfair_share: {client: method, capacity: 0, mode: "+mode+"}\n")
		g, err := Guard(c)
		if err != nil {
			t.Fatal(err)
		}
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, &a); err != nil || a.Verdict != want {
			t.Errorf("%s: got %v, %v", mode, a.Verdict, err)
		}
		if _, divided := g.Shares(); divided != (mode != "off") {
			t.Errorf("%s: there are shares: %t", mode, divided)
		}
	}
}

// TestFollowFairShare: a changed file changes the capacity. Known clients stay known, also
// through shadow and back.
func TestFollowFairShare(t *testing.T) {
	text := func(capacity int, mode string) string {
		return fmt.Sprintf("version: 1\nfair_share: {client: method, capacity: %d, cycle: 1h, mode: %s}\n", capacity, mode)
	}
	path := filepath.Join(folder(t, map[string]string{"headgate.yaml": text(0, "enforce")}), "headgate.yaml")
	g, notified := follow(t, path)
	var a guard.Answer
	ask := func() headgate.Verdict {
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, &a); err != nil {
			t.Fatal(err)
		}
		return a.Verdict
	}
	if got := ask(); got != headgate.Deny {
		t.Fatalf("of no capacity: %v", got)
	}
	for _, step := range []struct {
		capacity int
		mode     string
		want     headgate.Verdict
	}{{0, "shadow", headgate.Allow}, {80, "enforce", headgate.Allow}, {0, "enforce", headgate.Deny}} {
		replace(t, path, text(step.capacity, step.mode))
		if one := next(t, notified); one.err != nil {
			t.Fatal(one.err)
		}
		if got := ask(); got != step.want {
			t.Errorf("capacity %d, mode %s: %v", step.capacity, step.mode, got)
		}
		if s, ok := g.Shares(); !ok || s.Capacity != int64(step.capacity) || len(s.Clients) != 1 || s.Clients[0].RefusedTotal == 0 {
			t.Errorf("capacity %d, mode %s: the shares are %+v", step.capacity, step.mode, s)
		}
	}
}
