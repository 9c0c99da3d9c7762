package shared

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// manyKeys returns a contest with the given number of callers. Each caller takes one unit
// from each key in turn, and the callers begin at different keys.
func manyKeys(ctx context.Context, name string, callers int, entrants []*entrant) *contest.Contest {
	c := &contest.Contest{
		Name: name,
		About: fmt.Sprintf("decisions on %d keys with 100/s each; %d concurrent callers; each side has its own servers",
			keyCount, callers),
		// One caller makes enough decisions that the allocations of the runtime do not count as its own.
		Workers: callers, Want: contest.Allow, Least: max(16/callers, 1) * contest.Batch,
	}
	keys := keysOf(keyCount)
	for _, e := range entrants {
		c.Sides = append(c.Sides, contest.Side{
			Name: e.Name, Kind: e.Kind, MayFail: e.MayFail, Meters: e.meters,
			Run: runOf(ctx, e.limiter, keys, callers),
		})
	}
	return c
}

func keysOf(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%07d", i)
	}
	return keys
}

// roundsOf describes the effort, which differs from the effort of the other scenes.
func roundsOf(e contest.Effort) string {
	return fmt.Sprintf("; %d rounds of %v per side", e.Rounds, e.Slice)
}

// caller is one caller and the index of its next key.
type caller struct {
	take take
	at   int
	_    [6]uint64 // The padding fills a cache line, to prevent false sharing.
}

// runOf returns the Run function of a side. Worker i uses caller i.
func runOf(ctx context.Context, l limiter, keys []string, callers int) func(worker, n int) contest.Tally {
	all := make([]caller, callers)
	for i := range all {
		all[i] = caller{take: l.Caller(), at: len(keys) * i / callers}
	}
	return func(worker, n int) (t contest.Tally) {
		c := &all[worker]
		for range n {
			allowed, err := c.take(ctx, keys[c.at])
			switch {
			case err != nil:
				t = t.Add(contest.Failure(err))
			case allowed:
				t.Allowed++
			default:
				t.Denied++
			}
			if c.at++; c.at == len(keys) {
				c.at = 0
			}
		}
		return t
	}
}

// each measures one contest for each number of callers, on the same servers.
func each(
	ctx context.Context, scene string, callers []int, e contest.Effort, entrants []*entrant, questions func(callers int) []contest.Question,
) ([]contest.Result, error) {
	var results []contest.Result
	for _, n := range callers {
		c := manyKeys(ctx, nameOf(scene, n), n, entrants)
		c.About += roundsOf(e)
		c.Questions = questions(n)
		r, err := c.Measure(ctx, e)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}
