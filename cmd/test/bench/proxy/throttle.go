package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/openloop"
)

// ThrottleName is the name of the scene that MeasureThrottle measures.
const ThrottleName = "throttle, proxied"

// barThrottle is the largest p99 latency, in nanoseconds, that a throttle without a queue may
// add to a request.
const barThrottle = 50_000

// The load of the scene: far below what two cores can serve, so that no request waits.
const (
	throttleRate        = 2000
	throttleConnections = 64
)

// ThrottleEffort is the amount of measurement of MeasureThrottle.
type ThrottleEffort struct {
	Rounds int
	// Warmups is the number of rounds before the measured rounds.
	Warmups int
	// Turns is the number of times that each side is loaded in a round. A disturbance longer
	// than a turn affects both sides.
	Turns int
	// Requests is the number of requests in a turn.
	Requests int
}

// MeasureThrottle compares the latency of a proxy that has a throttle with that of one that
// has none, at a constant rate that overloads neither.
func MeasureThrottle(ctx context.Context, e ThrottleEffort) (r contest.Result, err error) {
	programs, err := Build(ctx, "")
	if err != nil {
		return r, err
	}
	defer programs.Remove()
	err = programs.withSides(ctx, load{}, throttleSides(), func(started []*process) error {
		r, err = throttleRounds(ctx, e, started)
		return err
	})
	return r, err
}

// throttleSides count by address, because the requests have no header for a key. The throttle
// has a limit that the load cannot reach.
func throttleSides() []side {
	rule := settings{Rules: 1, Key: "ip"}
	throttled := rule
	throttled.Throttle = true
	return []side{
		{"with throttle", contest.Ours, headgate(), throttled},
		{"without throttle", contest.Ours, headgate(), rule},
	}
}

// throttleRounds measures both sides: the first has the throttle.
func throttleRounds(ctx context.Context, e ThrottleEffort, started []*process) (contest.Result, error) {
	var sides []*latencies
	defer func() {
		for _, s := range sides {
			s.load.Close()
		}
	}()
	for _, p := range started {
		if err := p.answers(ctx, load{}); err != nil {
			return contest.Result{}, err
		}
		load, err := openloop.Dial(ctx, openloop.Target{URL: p.url, Connections: throttleConnections})
		if err != nil {
			return contest.Result{}, err
		}
		sides = append(sides, &latencies{process: p, load: load})
	}
	// A collection of this process would delay requests. It collects between the turns.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	order := rand.New(rand.NewPCG(1, uint64(len(sides))))
	for round := -e.Warmups; round < e.Rounds; round++ {
		if err := throttleRound(ctx, e, sides, order); err != nil {
			return contest.Result{}, err
		}
		for _, s := range sides {
			s.sum(round >= 0)
		}
	}
	if err := sides[0].neverQueued(ctx); err != nil {
		return contest.Result{}, err
	}
	return throttleResult(e, sides[0], sides[1]), nil
}

// throttleRound loads the sides alternately, in random order.
func throttleRound(ctx context.Context, e ThrottleEffort, sides []*latencies, order *rand.Rand) error {
	for range e.Turns {
		for _, i := range order.Perm(len(sides)) {
			if err := sides[i].turn(ctx, e.Requests); err != nil {
				return err
			}
		}
	}
	return nil
}

// throttleResult makes the rows of the percentiles, and judges the p99.
func throttleResult(e ThrottleEffort, with, without *latencies) contest.Result {
	r := contest.Result{
		Name: ThrottleName, Workers: throttleConnections,
		About: fmt.Sprintf("latency of headgate proxy with one rule, with and without a throttle in which no request waits; "+
			"%d requests a second on %d connections, measured from their due times; %d rounds of %d requests per side, in %d turns",
			throttleRate, throttleConnections, e.Rounds, e.Turns*e.Requests, e.Turns),
	}
	for _, s := range []*latencies{with, without} {
		for _, row := range []contest.Row{
			{Name: "p50, " + s.name, Kind: s.kind, Rounds: s.p50},
			{Name: "p99, " + s.name, Kind: s.kind, Rounds: s.p99},
			{Name: "p99 of the generator's delay, " + s.name, Kind: contest.Floor, Rounds: s.delay},
		} {
			row.Exact, row.Median = true, contest.Median(row.Rounds)
			r.Rows = append(r.Rows, row)
		}
	}
	r.Ratios = []contest.Ratio{
		contest.Subtract("p50, "+with.name, "p50, "+without.name, with.p50, without.p50, 0),
		contest.Subtract("p99, "+with.name, "p99, "+without.name, with.p99, without.p99, barThrottle),
	}
	return r
}
