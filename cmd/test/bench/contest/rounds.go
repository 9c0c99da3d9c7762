package contest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// Effort is the amount of measurement.
type Effort struct {
	Rounds int `json:"rounds"`
	// Slice is the approximate time for which a side is measured in a round.
	Slice time.Duration `json:"slice_ns"`
}

// sample is the measurement of one slice of one side.
type sample struct {
	ns     float64   // nanoseconds per operation
	allocs float64   // heap objects per operation
	failed float64   // fraction of the operations
	meters []float64 // nanoseconds per operation, in the order of Side.Meters
}

// Measure runs the rounds and answers the questions. It checks ctx between rounds.
func (c *Contest) Measure(ctx context.Context, e Effort) (Result, error) {
	sizes := make([]int, len(c.Sides))
	for i := range c.Sides {
		n, err := c.calibrate(&c.Sides[i], e.Slice)
		if err != nil {
			return Result{}, err
		}
		sizes[i] = n
	}
	samples := make([][]sample, len(c.Sides))
	// A new order in each round prevents that one side always follows the same other side.
	order := rand.New(rand.NewPCG(1, uint64(len(c.Sides))))
	for range e.Rounds {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		for _, i := range order.Perm(len(c.Sides)) {
			s, err := c.slice(&c.Sides[i], sizes[i])
			if err != nil {
				return Result{}, err
			}
			samples[i] = append(samples[i], s)
		}
	}
	return c.result(samples)
}

// least returns the smallest number of operations of a worker in a slice. The number is
// large enough to make the time to start the workers negligible.
func (c *Contest) least() int {
	if c.Least > 0 {
		return c.Least
	}
	return 64 * Batch
}

// calibrate finds the number of operations of each worker that takes about want.
func (c *Contest) calibrate(s *Side, want time.Duration) (int, error) {
	for n := c.least(); ; n *= 2 {
		took, err := c.run(s, n)
		if err != nil {
			return 0, err
		}
		if took >= want/4 {
			scaled := float64(n) * float64(want) / float64(took)
			return max(int(scaled)/Batch*Batch, c.least()), nil
		}
	}
}

// slice measures one side once. A shorter run comes first, to warm the caches.
func (c *Contest) slice(s *Side, n int) (sample, error) {
	if _, err := c.run(s, max(n/8/Batch, 1)*Batch); err != nil {
		return sample{}, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from, err := s.readMeters()
	if err != nil {
		return sample{}, err
	}
	took, tally, err := c.timed(s, n)
	if err != nil {
		return sample{}, err
	}
	to, err := s.readMeters()
	if err != nil {
		return sample{}, err
	}
	runtime.ReadMemStats(&after)
	operations := float64(n * c.Workers)
	allocs := float64(after.Mallocs-before.Mallocs) / operations
	if allocs > 0.01 {
		runtime.GC() // Otherwise the collection could fall into the slice of the next side.
	}
	return sample{
		float64(took.Nanoseconds()) / operations, allocs, float64(tally.Failed) / operations, used(from, to, operations),
	}, nil
}

func (c *Contest) run(s *Side, n int) (time.Duration, error) {
	took, _, err := c.timed(s, n)
	return took, err
}

// timed runs n operations on each worker, measures the elapsed time, and checks the
// answers.
func (c *Contest) timed(s *Side, n int) (time.Duration, Tally, error) {
	tallies := make([]Tally, c.Workers)
	var took time.Duration
	if c.Workers == 1 {
		start := time.Now()
		tallies[0] = s.Run(0, n)
		took = time.Since(start)
	} else {
		took = together(c.Workers, func(worker int) { tallies[worker] = s.Run(worker, n) })
	}
	var sum Tally
	for _, t := range tallies {
		sum = sum.Add(t)
	}
	return took, sum, c.check(s, sum, n*c.Workers)
}

// together starts all workers at the same time, and returns the time until the last
// worker ends.
func together(workers int, work func(worker int)) time.Duration {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for w := range workers {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			work(w)
		})
	}
	ready.Wait()
	from := time.Now()
	close(start)
	done.Wait()
	return time.Since(from)
}

// side returns the index of the named side.
func (c *Contest) side(name string) (int, error) {
	for i := range c.Sides {
		if c.Sides[i].Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: the contest has no side %q", c.Name, name)
}
