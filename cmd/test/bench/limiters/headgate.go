package limiters

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/limiter"
)

// Names of Headgate's sides.
const (
	HeadgateSingle = "headgate Single.Take"
	HeadgateKeyed  = "headgate Keyed.Take"
	HeadgateMany   = "headgate Keyed.TakeMany, 16 keys"
)

// placeBytes is the memory of one key. The table has twice as many places as keys.
const placeBytes = 32

type headgateSingle struct{ limiter *limiter.Single }

func newHeadgateSingle(l Limit) (Lone, error) {
	s, err := limiter.NewSingle(ours(l), limiter.Config{})
	return headgateSingle{s}, err
}

func (h headgateSingle) Take(n int) (t contest.Tally) {
	var d headgate.Decision
	for range n {
		err := h.limiter.Take(1, &d)
		count(&t, d.Verdict, err)
	}
	return t
}

type headgateKeyed struct {
	noGoroutines

	limiter *limiter.Keyed
}

func newHeadgateKeyed(l Limit, r Room) (Keyed, error) {
	k, err := newKeyed(l, r)
	return headgateKeyed{limiter: k}, err
}

func newKeyed(l Limit, r Room) (*limiter.Keyed, error) {
	return limiter.New(ours(l), limiter.Config{MaxMemory: max(int64(r.Keys)*2*placeBytes, 1<<20)})
}

func ours(l Limit) headgate.Limit {
	return headgate.Limit{Count: int64(l.Count), Per: l.Per, Burst: int64(l.Burst)}
}

func (h headgateKeyed) Take(keys []string, from, n int) (t contest.Tally) {
	ctx := context.Background()
	mask := len(keys) - 1
	var d headgate.Decision
	for i := range n {
		err := h.limiter.Take(ctx, keys[(from+i)&mask], 1, &d)
		count(&t, d.Verdict, err)
	}
	return t
}

type headgateMany struct {
	noGoroutines

	limiter *limiter.Keyed
}

func newHeadgateMany(l Limit, r Room) (Keyed, error) {
	k, err := newKeyed(l, r)
	return headgateMany{limiter: k}, err
}

// Take decides contest.Batch keys in each call. from, n and the number of keys are
// multiples of contest.Batch.
func (h headgateMany) Take(keys []string, from, n int) (t contest.Tally) {
	ctx := context.Background()
	mask := len(keys) - 1
	var decisions [contest.Batch]headgate.Decision
	for i := 0; i < n; i += contest.Batch {
		at := (from + i) & mask
		err := h.limiter.TakeMany(ctx, keys[at:at+contest.Batch], 1, decisions[:])
		for j := range decisions {
			count(&t, decisions[j].Verdict, err)
		}
	}
	return t
}

func count(t *contest.Tally, v headgate.Verdict, err error) {
	switch {
	case err != nil:
		t.Failed++
	case v == headgate.Allow:
		t.Allowed++
	default:
		t.Denied++
	}
}
