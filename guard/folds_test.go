package guard_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// A path in another spelling has the same key, and the request keeps its path as sent.
func TestFolds(t *testing.T) {
	key, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{
		Store: store, Folds: rule.Folds{Case: true, TrailingSlash: true, Parameters: true},
		Rules: []guard.Rule{{
			Rule:     rule.Rule{Name: "r", Match: rule.Match{Path: "/V1/product"}, Key: []rule.Part{key}},
			Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: 1e9 * 3600}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"/v1/product", "/V1/Product", "/v1/product/", "/v1/product;x=1"} {
		var a guard.Answer
		req := headgate.Request{Method: "GET", Path: path}
		if err := g.Decide(t.Context(), &req, &a); err != nil {
			t.Fatal(err)
		}
		if passes := a.Verdict == headgate.Allow; passes != (i == 0) || req.Path != path {
			t.Errorf("%s: passes %v; the service gets %s", path, passes, req.Path)
		}
	}
}

// TestFoldedValues: overrides and the names of keys mean the paths that requests have after folding.
func TestFoldedValues(t *testing.T) {
	for name, row := range map[string]struct{ key, override, value, path string }{
		"a path":                {"path", "/Files/A", "/Files/A", "/files/a"},
		"another end":           {"path", "/files/a/", "path=\"/files/a;x=1\"", "/FILES/A"},
		"a pattern":             {"path", "/Files/*", "/FILES/A/", "/files/a"},
		"a name":                {"path:{n}", "Acme", "ACME", "/files/acme"},
		"a pattern of a name":   {"path:{n}", "Ac*", "Acme", "/Files/acme"},
		"an expression":         {"path:{n}", "re:Ac.*", "Acme", "/Files/ACME"},
		"a literal with a mark": {"path:{n}", "=Ac", "Ac", "/Files/AC"},
	} {
		key, err := rule.ParsePart(row.key)
		if err != nil {
			t.Fatal(err)
		}
		store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		policy := func(count int64) []headgate.Policy {
			return []headgate.Policy{{Limit: headgate.Limit{Count: count, Per: 1e9 * 3600}}}
		}
		g, err := guard.New(guard.Config{
			Store: store, Folds: rule.Folds{Case: true, TrailingSlash: true, Parameters: true},
			Rules: []guard.Rule{{
				Rule:     rule.Rule{Name: "r", Match: rule.Match{Path: "/Files/{n}"}, Key: []rule.Part{key}},
				Policies: policy(1), Overrides: []guard.Override{{Value: row.override, Many: true, Policies: policy(5)}},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var a guard.Answer
		if err := g.Decide(t.Context(), &headgate.Request{Method: "GET", Path: row.path}, &a); err != nil {
			t.Fatal(err)
		}
		state, err := g.Peek(t.Context(), guard.KeyName{Rule: "r", Values: []string{row.value}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if state.Override != row.override || state.Limits[0].Used != 1 || state.Limits[0].Remaining != 4 {
			t.Errorf("%s: the key has %+v", name, state)
		}
	}
}
