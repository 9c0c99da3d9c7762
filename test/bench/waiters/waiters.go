// Package waiters measures what a pacer's waiters take of the heap, when they wait with
// a callback and no goroutine.
package waiters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/schedule"
	"github.com/headgate/headgate/test/bench/contest"
)

// Name is the scene's.
const Name = "pace, a million waiters"

// Effort says how much is measured.
type Effort struct {
	Rounds  int
	Waiters int
}

// BarBytes is what each may take: 250 MB for a million.
const BarBytes = 250

// day is a window so long that none ends while waiters come.
const day = 24 * time.Hour

// round is what one round has seen.
type round struct {
	bytes float64 // of the heap for each who waits
	came  float64 // nanoseconds for each who came
}

// Measure lets waiters come, in rounds of a pacer each.
func Measure(ctx context.Context, e Effort) (contest.Result, error) {
	r := contest.Result{
		Name: Name, Workers: 1,
		About: fmt.Sprintf("%d who wait, each with a callback of its own and a deadline, until hardly any has been served: "+
			"the time that each takes to come, and the heap that is in use then", e.Waiters),
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
	// The last of a million is served in a day, and few while they come.
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
	told := make([]bool, waiters)
	before := heap()
	began := time.Now()
	for i := range waiters {
		p.AcquireFunc(1, day, func(headgate.Instant, error) { told[i] = true })
	}
	took := time.Since(began)
	used := heap() - before
	n := p.Stats().Waiters
	if n < waiters/2 {
		return round{}, errors.New("waiters: most were served or refused, and did not wait")
	}
	return round{float64(used) / float64(n), float64(took.Nanoseconds()) / float64(waiters)}, nil
}

// heap gives the bytes of the heap that are in use, the free parts of spans among them,
// once garbage is collected: what is in pools goes with the third collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
