package rls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

const (
	// lateRate is the number of calls in a second, and lateDeadline the deadline of each, which Envoy sets.
	lateRate     = 10_000
	lateDeadline = 20 * time.Millisecond
	// lateTick is how often the calls that are due are begun.
	lateTick = time.Millisecond
	// lateRounds bounds the rounds: they take long.
	lateRounds = 10
	million    = 1e6
)

// late compares the share of calls that miss their deadline with that of empty calls, at a constant rate.
func late(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	rounds := min(e.Rounds, lateRounds)
	during := 8 * e.Slice // 2 s in a full run.
	ours, err := p.ours(ctx, "memory")
	if err != nil {
		return contest.Result{}, err
	}
	empty, err := p.empty(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	rows := []contest.Row{{Name: sideOurs, Kind: contest.Ours, Exact: true}, {Name: sideEmpty, Kind: contest.Floor, Exact: true}}
	var sides []*callers
	for _, s := range []*servers.Server{ours, empty} {
		c, err := p.dial(s.Addr)
		if err != nil {
			return contest.Result{}, err
		}
		sides = append(sides, c)
	}
	// A collection of this process would delay calls. It collects between the turns.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	shares, slowest := make([][]float64, len(sides)), float64(lateRate)
	order := rand.New(rand.NewPCG(1, 2))
	for round := -1; round < rounds; round++ {
		for _, i := range order.Perm(len(sides)) {
			turn, err := sides[i].lateCalls(ctx, during)
			if err != nil {
				return contest.Result{}, err
			}
			if round >= 0 { // The round before warms up.
				shares[i], rows[i].Rounds = append(shares[i], turn.late*million), append(rows[i].Rounds, float64(turn.p99))
				slowest = min(slowest, turn.rate)
			}
		}
	}
	for i := range rows {
		rows[i].Median, rows[i].Failed = contest.Median(rows[i].Rounds), contest.Median(shares[i])/million
	}
	difference := contest.Subtract("late calls, "+sideOurs, "late calls, "+sideEmpty, shares[0], shares[1], barLate)
	difference.Unit = "calls of a million"
	return contest.Result{
		Name: "server, late calls", Workers: connections, Rows: rows,
		About: fmt.Sprintf("p99 latency in the rows, and the calls that miss their deadline of %v in the difference; "+
			"%d calls a second for %v in each of %d rounds, measured from their due times; %.0f a second ended in the slowest turn",
			lateDeadline, lateRate, during, rounds, slowest),
		Ratios: []contest.Ratio{difference},
	}, nil
}

// turn is what one turn of calls has measured: the share that was late, the p99 latency, and the calls that
// ended in a second.
type turn struct {
	late float64
	p99  time.Duration
	rate float64
}

// lateCalls begins calls at the rate. The deadline counts from the time at which a call was due.
func (c *callers) lateCalls(ctx context.Context, during time.Duration) (turn, error) {
	n := int(during.Seconds() * lateRate)
	latencies := make([]time.Duration, n)
	var missed atomic.Int64
	var failure atomic.Pointer[error]
	var calls sync.WaitGroup
	tick := time.NewTicker(lateTick)
	defer tick.Stop()
	began := time.Now()
	for next := 0; next < n; {
		due := min(n, int(time.Since(began)*lateRate/time.Second)+1)
		for i := next; i < due; i++ {
			calls.Go(func() {
				at := began.Add(time.Duration(i) * time.Second / lateRate)
				err := c.call(ctx, i, at.Add(lateDeadline))
				latencies[i] = time.Since(at)
				switch {
				case err != nil && status.Code(err) != codes.DeadlineExceeded:
					failure.Store(&err)
				case err != nil || latencies[i] > lateDeadline:
					missed.Add(1)
				}
			})
		}
		next = max(next, due)
		<-tick.C
	}
	calls.Wait()
	took := time.Since(began)
	if failed := failure.Load(); failed != nil {
		return turn{}, *failed
	}
	slices.Sort(latencies)
	return turn{late: float64(missed.Load()) / float64(n), p99: latencies[n*99/100], rate: float64(n) / took.Seconds()}, nil
}

// call makes call number i.
func (c *callers) call(ctx context.Context, i int, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := c.clients[i%len(c.clients)].ShouldRateLimit(ctx, c.requests[i%len(c.requests)])
	return err
}
