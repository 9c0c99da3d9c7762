// Package waiters measures the heap of a pacer's waiters. Each waiter has a callback
// instead of a goroutine.
package waiters

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/pace"
)

// Name is the name of the scene.
const Name = "pace, a million waiters"

// Effort is the amount of measurement.
type Effort struct {
	Rounds  int
	Waiters int
}

// BarBytes is the largest heap per waiter that passes: 250 MB for a million waiters.
const BarBytes = 250

// day is a window that does not end while waiters are added.
const day = 24 * time.Hour

// round holds the measurements of one round.
type round struct {
	bytes float64 // bytes of heap per waiter
	came  float64 // nanoseconds to add one waiter
}

// Measure adds waiters to a new pacer in each round.
func Measure(ctx context.Context, e Effort) (contest.Result, error) {
	r := contest.Result{
		Name: Name, Workers: 1,
		About: fmt.Sprintf("%d waiters, each with its own callback and a deadline; few are served during the measurement: "+
			"the time to add a waiter, and the heap in use with all waiters", e.Waiters),
		Rows: []contest.Row{{Name: "headgate pace.AcquireFunc", Kind: contest.Ours, Exact: true}},
	}
	var parts []float64
	for range e.Rounds {
		if err := ctx.Err(); err != nil {
			return contest.Result{}, err
		}
		one, err := measure(e.Waiters)
		if err != nil {
			return contest.Result{}, err
		}
		parts = append(parts, one.bytes/BarBytes)
		r.Rows[0].Rounds = append(r.Rows[0].Rounds, one.came)
	}
	r.Rows[0].Median = contest.Median(r.Rows[0].Rounds)
	known := contest.MedianInterval(parts)
	r.Ratios = []contest.Ratio{{
		Interval: known, Of: "heap of each who waits", Against: fmt.Sprint(BarBytes, " bytes"),
		Rounds: parts, Bar: 1, Verdict: contest.Judge(known, 1),
	}}
	return r, nil
}

func measure(waiters int) (round, error) {
	// The plan serves a million waiters within a day, and few while they are added.
	plan, err := schedule.Even(20*int64(waiters), day, 1, 0)
	if err != nil {
		return round{}, err
	}
	p, err := pace.New(pace.Config{
		Source: pace.Static(plan), Smoothing: pace.EvenSpread, MaxWaiters: waiters, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return round{}, err
	}
	defer p.Close()
	if err := p.Ready(context.Background()); err != nil {
		return round{}, err
	}
	called := make([]bool, waiters)
	before := heap()
	began := time.Now()
	for i := range waiters {
		p.AcquireFunc(1, day, func(headgate.Instant, error) { called[i] = true })
	}
	took := time.Since(began)
	used := heap() - before
	n := p.Stats().Waiters
	if n < waiters/2 {
		return round{}, fmt.Errorf("waiters: only %d of %d callers wait, want at least half: the others were served or refused", n, waiters)
	}
	return round{float64(used) / float64(n), float64(took.Nanoseconds()) / float64(waiters)}, nil
}

// heap returns the bytes of all heap spans in use, including their free space, after the
// garbage is collected. Pooled objects are freed only by the third collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
