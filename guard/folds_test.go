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
