package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// Guards with different namespaces share no counters on one store. Guards with one namespace share
// them. Without a namespace, keys have no prefix.
func TestNamespaces(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	rules := []guard.Rule{{
		Rule:     rule.Rule{Name: "product", Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
	}}
	for _, c := range []struct {
		namespace string
		want      headgate.Verdict
	}{
		{"shop", headgate.Allow},
		{"", headgate.Allow},
		{"shop", headgate.Deny},
		{"", headgate.Deny},
		{"shop2", headgate.Allow},
		{"product", headgate.Allow},
		{strings.Repeat("n", 64), headgate.Allow},
	} {
		g, err := guard.New(guard.Config{Rules: rules, Store: store, Namespace: c.namespace})
		if err != nil {
			t.Fatal(err)
		}
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, &a); err != nil || a.Verdict != c.want {
			t.Errorf("namespace %q: %v, %v, want %v", c.namespace, a.Verdict, err, c.want)
		}
	}
	key, _ := rules[0].AppendKey(nil, new(headgate.Request))
	id, err := store.Prepare(rules[0].Policies[0])
	if err != nil {
		t.Fatal(err)
	}
	var limited bool
	for window := range uint8(255) {
		var d headgate.Decision
		if err := store.Take(&headgate.Op{Key: string(key), Policy: id, Window: window, Cost: 1, Kind: headgate.Peek}, &d); err != nil {
			t.Fatal(err)
		}
		limited = limited || d.Verdict == headgate.Deny
	}
	if !limited {
		t.Error("the key without a namespace is not that of rule.AppendKey")
	}
	for _, bad := range []string{"our shop", "ü", strings.Repeat("n", 65), "a\x00"} {
		if _, err := guard.New(guard.Config{Namespace: bad}); err == nil || !strings.Contains(err.Error(), "use up to 64 letters") {
			t.Errorf("namespace %q: %v", bad, err)
		}
	}
}
