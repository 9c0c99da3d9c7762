package guard_test

import (
	"regexp"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// TestDecisionID: everyone who names a decision gets the same name, and the next decision has another one. A decision that no one
// names has none.
func TestDecisionID(t *testing.T) {
	g, err := guard.New(guard.Config{Rules: []guard.Rule{{Rule: rule.Rule{Name: "off"}, Mode: guard.Off}}})
	if err != nil {
		t.Fatal(err)
	}
	var a guard.Answer
	seen := map[guard.DecisionID]bool{}
	for range 1000 {
		if err := g.Decide(t.Context(), &headgate.Request{Path: "/"}, &a); err != nil || a.Named() {
			t.Fatalf("error %v, named %v before the first use", err, a.Named())
		}
		id := a.DecisionID()
		if id == 0 || seen[id] || a.DecisionID() != id || !a.Named() {
			t.Fatalf("ID %x is 0, is not new, or changes", id)
		}
		seen[id] = true
	}
	if text := string(a.DecisionID().AppendTo(nil, "eu-1")); !regexp.MustCompile(`^eu-1/[0-9a-f]{16}$`).MatchString(text) {
		t.Errorf("the name is %q", text)
	}
	if text := string(guard.DecisionID(10).AppendTo(nil, "")); text != "000000000000000a" {
		t.Errorf("without an instance, the name is %q", text)
	}
	buffer := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(1000, func() { buffer = a.DecisionID().AppendTo(buffer[:0], "eu-1") }); n != 0 {
		t.Errorf("a name costs %v allocations", n)
	}
}
