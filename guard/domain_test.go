package guard

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/errortype"
)

func TestDomainIndex(t *testing.T) {
	below, second := &Leaf{Name: "below"}, &Leaf{Name: "second"}
	d := Domain{Name: "shop", Descriptors: []Descriptor{
		{Key: "path", Value: "/a*", ShareThreshold: true, Descriptors: []Descriptor{{Key: "user", Leaf: below}}},
		{Key: "path", Leaf: second},
	}}
	x, leaves, err := d.Index()
	if err != nil || len(leaves) != 2 {
		t.Fatalf("got %d leaves and the error %v, want 2 leaves", len(leaves), err)
	}
	for _, row := range []struct {
		entries headgate.Descriptors
		want    *Leaf
	}{
		{headgate.Descriptors{{Name: "path", Value: "/ab"}, {Name: "user", Value: "u"}}, below},
		{headgate.Descriptors{{Name: "path", Value: "/b"}}, second},
		{headgate.Descriptors{{Name: "path", Value: "/ab"}}, nil},
	} {
		var m domain.Match
		if !x.Find(row.entries, &m) {
			t.Errorf("%v has no node", row.entries)
			continue
		}
		var got *Leaf
		if m.Leaf() != domain.NoLeaf {
			got = leaves[m.Leaf()]
		}
		if got != row.want {
			t.Errorf("%v has the leaf %v, want %v", row.entries, got, row.want)
		}
	}
}

// TestDomainIndexRefuses checks that a tree without an end is refused and not followed.
func TestDomainIndexRefuses(t *testing.T) {
	endless := []Descriptor{{Key: "a"}}
	endless[0].Descriptors = endless
	_, _, err := (&Domain{Descriptors: endless}).Index()
	if bad, found := errortype.As[*domain.NodeError](err); !found || bad.Field != "descriptors" {
		t.Errorf("got the error %v, want one of the depth", err)
	}
}

func TestLeafPolicy(t *testing.T) {
	l := headgate.Limit{Count: 5, Per: time.Second}
	for a, want := range map[headgate.Algorithm]headgate.Policy{
		headgate.FixedWindow:   {Algorithm: headgate.FixedWindow, Limit: l, CountRejected: true, CountAll: true},
		headgate.SlidingWindow: {Algorithm: headgate.SlidingWindow, Limit: l, SubWindows: 4},
		headgate.SlidingLog:    {Algorithm: headgate.SlidingLog, Limit: l},
		headgate.TokenBucket:   {Algorithm: headgate.TokenBucket, Limit: l},
	} {
		if got := LeafPolicy(a, l); got != want {
			t.Errorf("%s: got %+v, want %+v", a, got, want)
		}
	}
}
