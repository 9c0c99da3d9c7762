package shared

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/test/bench/contest"
)

// manyKeys gives the contest of so many callers, each of which asks for one unit of
// one key after the other, from a start of its own.
func manyKeys(ctx context.Context, name string, callers int, entrants []*entrant) *contest.Contest {
	c := &contest.Contest{
		Name: name,
		About: fmt.Sprintf("decisions on %d keys, 100/s each; %d in flight, each waits for its answer; every side with servers of its own",
			keyCount, callers),
		Workers: callers, Want: contest.Allow, Least: contest.Batch,
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

// roundsOf tells the effort: it is not that of the other scenes.
func roundsOf(e contest.Effort) string {
	return fmt.Sprintf("; %d rounds of %v a side", e.Rounds, e.Slice)
}

// asker is one caller: what it asks with, and which key is next.
type asker struct {
	take take
	at   int
	_    [6]uint64 // Nobody else's on its cache line.
}

// runOf lets the callers ask.
func runOf(ctx context.Context, l limiter, keys []string, callers int) func(worker, n int) contest.Tally {
	askers := make([]asker, callers)
	for i := range askers {
		askers[i] = asker{take: l.Caller(), at: len(keys) * i / callers}
	}
	return func(worker, n int) (t contest.Tally) {
		a := &askers[worker]
		for range n {
			allowed, err := a.take(ctx, keys[a.at])
			switch {
			case err != nil:
				t = t.Add(contest.Failure(err))
			case allowed:
				t.Allowed++
			default:
				t.Denied++
			}
			if a.at++; a.at == len(keys) {
				a.at = 0
			}
		}
		return t
	}
}

// each measures the contest of each number of callers, over the same servers.
func each(
	ctx context.Context, scene string, callers []int, e contest.Effort, entrants []*entrant, ask func(callers int) []contest.Question,
) ([]contest.Result, error) {
	var results []contest.Result
	for _, n := range callers {
		c := manyKeys(ctx, nameOf(scene, n), n, entrants)
		c.About += roundsOf(e)
		c.Questions = ask(n)
		r, err := c.Measure(ctx, e)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}
