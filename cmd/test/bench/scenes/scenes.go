// Package scenes defines the work on which Headgate and its peers are compared, and the
// bars for Headgate.
package scenes

import (
	"context"
	"runtime"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// The bars. A bar is the largest ratio of times that passes, or for a bar in ns the largest
// difference. docs and README.md explain the values.
const (
	barLone       = 1.3  // Single.Take / time.Since
	barKeyed      = 2.2  // Keyed.Take on one key / time.Since
	barPeers      = 1.0  // Keyed.Take on one key / each keyed peer
	barMillion    = 0.5  // Keyed.Take / the fastest exact peer
	barBatching   = 0.2  // Keyed.TakeMany, per decision / the fastest exact peer
	barMiddleware = 0.5  // added time of httplimit / added time of the fastest peer
	barTogether   = 0.85 // Guard.DecideAll of 100 requests / 100 calls of Guard.Decide
	barThrottle   = 400  // Admit and Done with the throttle - without, in ns
	barShare      = 60   // fairshare.Limiter.Take - time.Since, in ns
	barPace       = 1.6  // pace.Acquire with available permits / time.Since
	barPacePaced  = 166  // pace.Acquire - the generator, in ns; this is 5 % of a core at paceRate
)

// Size is the number of keys in the scenes with many keys.
type Size struct {
	// Keys is the number of keys. Sequence is the length of the repeated random sequence
	// of keys. Both are powers of two.
	Keys     int `json:"keys"`
	Sequence int `json:"sequence"`
}

// Scene is a contest that allocates its resources only in Measure.
type Scene struct {
	Name  string
	ready func(Size) (*contest.Contest, error)
}

// Measure sets up the contest, measures it, and releases its resources.
func (s Scene) Measure(ctx context.Context, size Size, e contest.Effort) (contest.Result, error) {
	c, err := s.ready(size)
	if err != nil {
		return contest.Result{}, err
	}
	if c.Close != nil {
		defer c.Close()
	}
	c.Name = s.Name
	runtime.GC() // The garbage of the previous scene must not be collected during this scene.
	return c.Measure(ctx, e)
}

// All returns the scenes in the order of the report.
func All() []Scene {
	return []Scene{
		{"lone, allowed", func(Size) (*contest.Contest, error) { return lone(limiters.Ample(), contest.Allow) }},
		{"lone, denied", func(Size) (*contest.Contest, error) { return lone(limiters.Spent(), contest.Deny) }},
		{"one key, allowed", func(Size) (*contest.Contest, error) { return oneKey(limiters.Ample(), contest.Allow, 1) }},
		{"one key, denied", func(Size) (*contest.Contest, error) { return oneKey(limiters.Spent(), contest.Deny, 1) }},
		{"one key, parallel", func(Size) (*contest.Contest, error) { return oneKey(limiters.Ample(), contest.Allow, processors()) }},
		{"million keys, uniform", func(s Size) (*contest.Contest, error) { return manyKeys(s, uniform) }},
		{"million keys, Zipf 1.1", func(s Size) (*contest.Contest, error) { return manyKeys(s, zipf) }},
		{"fair share, allowed", func(Size) (*contest.Contest, error) { return fairShare(limiters.Ample(), contest.Allow) }},
		{"fair share, denied", func(Size) (*contest.Contest, error) { return fairShare(limiters.Spent(), contest.Deny) }},
		{"middleware, allowed", func(Size) (*contest.Contest, error) { return middleware(limiters.Ample(), contest.Allow) }},
		{"middleware, denied", func(Size) (*contest.Contest, error) { return middleware(limiters.Spent(), contest.Deny) }},
		{"middleware, with a stage", func(Size) (*contest.Contest, error) { return stagedMiddleware(limiters.Ample()) }},
		{"100 requests together", func(Size) (*contest.Contest, error) { return decideTogether(limiters.Ample()) }},
		{"throttle, in process", func(Size) (*contest.Contest, error) { return throttled(limiters.Ample()) }},
		{"pace, open", func(Size) (*contest.Contest, error) { return paceOpen(1) }},
		{"pace, open, two goroutines", func(Size) (*contest.Contest, error) { return paceOpen(2) }},
		{"pace, 300,000 a second, open", func(Size) (*contest.Contest, error) { return pacePaced() }},
		{"pace, 300,000 a second, all wait", func(Size) (*contest.Contest, error) { return paceWait() }},
	}
}

func processors() int { return runtime.GOMAXPROCS(0) }
