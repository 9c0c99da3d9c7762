// Package scenes sets up the work that Headgate and its peers are compared at,
// and the bars that Headgate is held to.
package scenes

import (
	"context"
	"runtime"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
)

// The bars: the greatest ratio of times that is good enough, or for barShare and
// barPacePaced the greatest difference in nanoseconds. docs and README.md
// say where they come from.
const (
	barLone       = 1.3  // Single.Take against time.Since
	barKeyed      = 2.2  // Keyed.Take on one key against time.Since
	barPeers      = 1.0  // Keyed.Take on one key against every keyed peer
	barMillion    = 0.5  // Keyed.Take against the fastest exact peer
	barBatching   = 0.2  // Keyed.TakeMany, per decision, against the same
	barMiddleware = 0.5  // what httplimit adds to a handler, against the fastest peer
	barTogether   = 0.85 // Guard.DecideAll of 100 requests against 100 times Guard.Decide
	barShare      = 60   // ns of a fairshare.Limiter.Take, less those of time.Since
	barPace       = 1.6  // pace.Acquire while open against time.Since
	barPacePaced  = 166  // ns of a pace.Acquire, less those of the generator: 5 % of a core at paceRate
)

// Size says how many keys the scenes of many keys have.
type Size struct {
	// Keys and Sequence, the number of drawn keys that are walked over and over, are
	// powers of two.
	Keys     int `json:"keys"`
	Sequence int `json:"sequence"`
}

// Scene is a contest that holds nothing until it is measured.
type Scene struct {
	Name  string
	ready func(Size) (*contest.Contest, error)
}

// Measure makes the contest ready, measures it, and lets go of it.
func (s Scene) Measure(ctx context.Context, size Size, e contest.Effort) (contest.Result, error) {
	c, err := s.ready(size)
	if err != nil {
		return contest.Result{}, err
	}
	if c.Close != nil {
		defer c.Close()
	}
	c.Name = s.Name
	runtime.GC() // What the scene before it held is gone before the clock starts.
	return c.Measure(ctx, e)
}

// All lists the scenes in the order of the report.
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
		{"pace, open", func(Size) (*contest.Contest, error) { return paceOpen(1) }},
		{"pace, open, two goroutines", func(Size) (*contest.Contest, error) { return paceOpen(2) }},
		{"pace, 300,000 a second, open", func(Size) (*contest.Contest, error) { return pacePaced() }},
		{"pace, 300,000 a second, all wait", func(Size) (*contest.Contest, error) { return paceWait() }},
	}
}

func processors() int { return runtime.GOMAXPROCS(0) }
