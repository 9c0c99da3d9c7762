package guard

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// asking is a Decider that asks another Guard for the same Answer.
type asking struct{ guard *Guard }

func (d asking) Decide(ctx context.Context, req *headgate.Request, a *Answer) error {
	return d.guard.Decide(ctx, req, a)
}

func (asking) Reads() Reading { return Reading{} }

// TestDeciderAsksAnotherGuard: what the other Guard has asked its store is not asked again.
func TestDeciderAsksAnotherGuard(t *testing.T) {
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	two := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 2, Per: time.Hour}}
	inner, err := New(Config{Store: store, Rules: []Rule{{Rule: rule.Rule{Name: "a", Key: []rule.Part{all}}, Policies: []headgate.Policy{two}}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{"without a store": {Decider: asking{inner}}, "with a store": {Decider: asking{inner}, Store: store}} {
		outer, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		var a Answer
		if err := outer.Decide(t.Context(), new(headgate.Request), &a); err != nil || a.Verdict != headgate.Allow {
			t.Errorf("%s: %v, %v", name, a.Verdict, err)
		}
	}
	var a Answer
	if err := inner.Decide(t.Context(), new(headgate.Request), &a); err != nil || a.Verdict != headgate.Deny {
		t.Errorf("after two requests: %v, %v", a.Verdict, err)
	}
}
