package guard

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// keyed is a store that keeps the keys of its Ops.
type keyed struct {
	headgate.Store

	keys []string
}

// Apply implements headgate.Store.
func (s *keyed) Apply(ctx context.Context, ops []headgate.Op, decisions []headgate.Decision) error {
	for i := range ops {
		s.keys = append(s.keys, strings.Clone(ops[i].Key))
	}
	return s.Store.Apply(ctx, ops, decisions)
}

// TestSentBucketsMeetNoRule: a client chooses each byte of the key of a limit that it sends. None of its keys is that of a rule
// with the same limit: not the rule's key in the store, and no end of it.
func TestSentBucketsMeetNoRule(t *testing.T) {
	behind, err := memory.New(memory.Config{MaxMemory: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	path, err := rule.ParsePart("path")
	if err != nil {
		t.Fatal(err)
	}
	store, same := &keyed{Store: behind}, sentBucketOf(5, 5, sharedPeriod)
	for _, space := range []string{"", "one"} {
		g, err := New(Config{Store: store, Namespace: space, Rules: []Rule{{
			Rule:     rule.Rule{Name: "own", Key: []rule.Part{path}},
			Policies: []headgate.Policy{{Algorithm: headgate.TokenBucket, Limit: same}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		left := func() int64 {
			var a Answer
			if err := g.Decide(t.Context(), &headgate.Request{Path: "/a"}, &a); err != nil {
				t.Fatal(err)
			}
			return a.Results[0].Decision.Remaining
		}
		store.keys = nil
		if got := left(); got != 4 {
			t.Fatalf("the first request leaves %d units", got)
		}
		own := store.keys[0]
		for from := range len(own) {
			if _, err := take(t, g, own[from:], same, 5); err != nil {
				t.Fatal(err)
			}
		}
		if slices.Contains(store.keys[1:], own) {
			t.Errorf("a client that sends a limit has chosen the key %q of a rule", own)
		}
		if got := left(); got != 3 {
			t.Errorf("with keys that are parts of %q, clients leave %d units of the rule, want 3", own, got)
		}
	}
}
