package guard_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit"
)

func limitOf(count int64, per time.Duration, burst int64) headgate.Limit {
	return headgate.Limit{Count: count, Per: per, Burst: burst}
}

func TestLocalPolicy(t *testing.T) {
	for _, c := range []struct {
		algorithm headgate.Algorithm
		limit     headgate.Limit
		share     int
		want      headgate.Limit
	}{
		{headgate.FixedWindow, limitOf(100, time.Minute, 0), 25, limitOf(25, time.Minute, 0)},
		{headgate.SlidingLog, limitOf(7, time.Minute, 0), 50, limitOf(3, time.Minute, 0)}, // Twice 3 is not above 7.
		{headgate.SlidingWindow, limitOf(headgate.MaxUnits, time.Minute, 0), 99, limitOf(8917127262193581, time.Minute, 0)},
		{headgate.Ban, limitOf(10, time.Minute, 0), 25, limitOf(2, time.Minute, 0)},
		{headgate.FixedWindow, limitOf(3, time.Minute, 0), 100, limitOf(3, time.Minute, 0)},
		{headgate.FixedWindow, limitOf(0, time.Minute, 0), 25, limitOf(0, time.Minute, 0)}, // A limit of 0 admits nothing.
		{headgate.TokenBucket, limitOf(0, time.Minute, 0), 25, limitOf(0, time.Minute, 0)},

		{headgate.TokenBucket, limitOf(100, time.Second, 0), 25, limitOf(25, time.Second, 25)},
		{headgate.TokenBucket, limitOf(3, time.Second, 10), 25, limitOf(3, 4*time.Second, 2)}, // The rate is exact, and the burst is rounded down.
		{headgate.TokenBucket, limitOf(10, time.Second, 0), 33, limitOf(33, 10*time.Second, 3)},
		{headgate.LeakyBucket, limitOf(1, time.Second, 50), 10, limitOf(1, 10*time.Second, 5)},
		// The exact part would exceed the largest period or count.
		{headgate.TokenBucket, limitOf(15, 300*24*time.Hour, 0), 25, limitOf(3, 300*24*time.Hour, 3)},
		{headgate.TokenBucket, limitOf(headgate.MaxUnits, time.Second, 8), 33, limitOf(2972375754064527, time.Second, 2)},
	} {
		policy := headgate.Policy{Algorithm: c.algorithm, Limit: c.limit, Hold: time.Second, Batch: 10}
		got, err := guard.LocalPolicy(policy, c.share)
		if c.share == 100 {
			c.want = c.limit
		}
		if want := (headgate.Policy{Algorithm: c.algorithm, Limit: c.want}); err != nil || got != want {
			t.Errorf("%v %v x %d%%: %+v (%v), want %+v", c.algorithm, c.limit, c.share, got, err, want)
		}
	}
}

func TestLessThanOneRequest(t *testing.T) {
	for want, c := range map[string]struct {
		algorithm headgate.Algorithm
		limit     headgate.Limit
		share     int
	}{
		"limit 3/1s x 25% is less than one request: raise local_share to 34% or use deny":                     {headgate.FixedWindow, limitOf(3, time.Second, 0), 25},
		"limit 1/1s x 99% is less than one request: raise local_share to 100% or use deny":                    {headgate.Ban, limitOf(1, time.Second, 0), 99},
		"limit 100/1s with a burst of 2 x 25% is less than one request: raise local_share to 50% or use deny": {headgate.TokenBucket, limitOf(100, time.Second, 2), 25},
		"limit 3/300d with a burst of 9 x 25% is less than one request: raise local_share to 34% or use deny": {headgate.TokenBucket, limitOf(3, 300*24*time.Hour, 9), 25},
	} {
		policy := headgate.Policy{Algorithm: c.algorithm, Limit: c.limit}
		_, err := guard.LocalPolicy(policy, c.share)
		found, is := errortype.As[*guard.ShareError](err)
		if !is || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
			continue
		}
		if _, err := guard.LocalPolicy(policy, found.Least); err != nil {
			t.Errorf("with the share that it names: %v", err)
		}
		if _, err := guard.LocalPolicy(policy, found.Least-1); err == nil {
			t.Errorf("%v: %d%% would do", c.limit, found.Least-1)
		}
	}
	for _, share := range []int{-1, 0, 101} {
		if _, err := guard.LocalPolicy(headgate.Policy{Limit: perMinute(100)}, share); !errors.Is(err, guard.ErrLocalShare) {
			t.Errorf("a share of %d%%: %v", share, err)
		}
	}
}

// TestPartsStayWithinTheWhole: for random limits and shares, all instances together have at most the
// burst and the rate of the limit. If New accepts the limit, New accepts its part.
func TestPartsStayWithinTheWhole(t *testing.T) {
	algorithms := append(headgate.Algorithms(), headgate.Ban)
	for _, algorithm := range algorithms {
		for _, count := range []int64{1, 2, 3, 7, 10, 99, 100, 101, 12345, 1 << 24} {
			for share := 1; share <= 100; share++ {
				checkPart(t, wholePolicy(algorithm, count), share)
			}
		}
	}
}

func wholePolicy(algorithm headgate.Algorithm, count int64) headgate.Policy {
	policy := headgate.Policy{Algorithm: algorithm, Limit: headgate.Limit{Count: count, Per: time.Minute}}
	switch algorithm {
	case headgate.SlidingWindow:
		policy.SubWindows = 4
	case headgate.Ban:
		policy.BanFor = time.Minute
	case headgate.TokenBucket:
		policy.Limit.Burst = 3 * count
	default:
	}
	return policy
}

func checkPart(t *testing.T, policy headgate.Policy, share int) {
	t.Helper()
	part, err := guard.LocalPolicy(policy, share)
	if err != nil {
		if _, is := errortype.As[*guard.ShareError](err); !is {
			t.Errorf("%+v x %d%%: %v", policy, share, err)
		}
		return
	}
	if _, err := limit.Compile(part); err != nil {
		t.Errorf("%+v x %d%% is %+v: %v", policy, share, part, err)
	}
	whole, room := limit.Room(policy), limit.Room(part)
	periods := int64(part.Limit.Per / policy.Limit.Per)
	if room*100 > whole*int64(share) || part.Limit.Count*100 > policy.Limit.Count*int64(share)*periods || room < 1 {
		t.Errorf("%+v x %d%% is %+v: more than its part", policy, share, part)
	}
}

func ExampleLocalPolicy() {
	policy := headgate.Policy{Algorithm: headgate.TokenBucket, Limit: headgate.Limit{Count: 3, Per: time.Second, Burst: 8}}
	part, err := guard.LocalPolicy(policy, 25)
	fmt.Println(part.Limit, part.Limit.Burst, err)
	policy.Limit.Burst = 2
	_, err = guard.LocalPolicy(policy, 25)
	fmt.Println(err)
	// Output:
	// 3/4s 2 <nil>
	// limit 3/1s with a burst of 2 x 25% is less than one request: raise local_share to 50% or use deny
}
