package merge

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// TestTopIsTheSum compares with a slow twin, which adds up the refusals of each key.
func TestTopIsTheSum(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		var answers []admin.From[admin.Top]
		for n := range random.IntN(6) {
			a := admin.From[admin.Top]{Instance: fmt.Sprint("hg-", n)}
			for key := range 8 {
				if random.IntN(2) == 0 {
					a.Answer.Keys = append(a.Answer.Keys, report.TopKey{
						Rule: "r", Key: fmt.Sprint(key), Refusals: random.Uint64N(100), Error: random.Uint64N(5),
					})
				}
			}
			answers = append(answers, a)
		}
		got := OfTop(answers, 100)
		for i, k := range got.Keys {
			refusals, errors, listed := uint64(0), uint64(0), 0
			for _, a := range answers {
				for _, one := range a.Answer.Keys {
					if one.Key == k.Key {
						refusals, errors, listed = refusals+one.Refusals, errors+one.Error, listed+1
					}
				}
			}
			if k.Refusals != refusals || k.Error != errors || len(k.By) != listed || i > 0 && got.Keys[i-1].Refusals < k.Refusals {
				t.Fatalf("got %+v, want %d and %d in %d", k, refusals, errors, listed)
			}
		}
		if cut := OfTop(answers, 3); len(cut.Keys) != min(3, len(got.Keys)) {
			t.Fatalf("got %d keys", len(cut.Keys))
		}
	}
}

// TestBans: a ban of a shared store is one entry; bans of instances with memory of their own end with the last.
func TestBans(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	ban := func(id string, seconds int, shadow bool, reason string) guard.BanEntry {
		return guard.BanEntry{ID: id, Rule: "login", Key: id, Until: now.Add(time.Duration(seconds) * time.Second), Shadow: shadow, Operator: reason != "", Reason: reason}
	}
	got := OfBans([]admin.From[admin.Bans]{
		{Instance: "hg-2", Answer: admin.Bans{Now: now.Add(time.Second), Bans: []guard.BanEntry{ban("a", 9, true, ""), ban("b", 5, true, "")}}},
		{Instance: "hg-1", Answer: admin.Bans{Now: now, More: true, Bans: []guard.BanEntry{ban("a", 7, false, "abuse")}}},
	})
	if len(got.Bans) != 2 || !got.More || !got.Now.Equal(now.Add(time.Second)) || got.Bans[0].ID != "b" || !got.Bans[0].Shadow {
		t.Errorf("got %+v", got)
	}
	if a := got.Bans[1]; a.Shadow || a.Reason != "abuse" || !a.Until.Equal(now.Add(9*time.Second)) || fmt.Sprint(a.Instances) != "[hg-1 hg-2]" {
		t.Errorf("got %+v", a)
	}
}
