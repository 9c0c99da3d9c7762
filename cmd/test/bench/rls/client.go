package rls

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/guard"
)

// Bars of package client, beside unary calls of Envoy's service by as many callers on 8 connections.
const (
	barClientTime64, barClientTime512 = 1.0 / 3, 1.0 / 5 // Time of a decision.
	barClientCPU64, barClientCPU512   = 0.3, 0.15        // Processor time of the server.
	barClientP99                      = 0.5              // p99 latency.
	barClientPaced                    = 1.1              // p99 latency at a constant rate.
)

// Names of the sides and of the meter of latencies.
const (
	sideClient = "package client"
	p99        = "p99 latency"
)

// latencies are those of the operations since they were read.
type latencies struct {
	workers [][]time.Duration // of each worker
	total   time.Duration
}

// meter reads the p99 latency as a counter: the sum over the operations, if each had taken that long.
func (l *latencies) meter() contest.Meter {
	return contest.Meter{Name: p99, Read: func() (time.Duration, error) {
		all := slices.Concat(l.workers...)
		for i := range l.workers {
			l.workers[i] = l.workers[i][:0]
		}
		if len(all) > 0 {
			l.total += percentile99(all) * time.Duration(len(all))
		}
		return l.total, nil
	}}
}

func percentile99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)*99/100]
}

// timed runs operations one by one, and notes how long each takes.
func (l *latencies) timed(run func(worker, n int) contest.Tally) func(worker, n int) contest.Tally {
	return func(worker, n int) (t contest.Tally) {
		for range n {
			began := time.Now()
			t = t.Add(run(worker, 1))
			l.workers[worker] = append(l.workers[worker], time.Since(began))
		}
		return t
	}
}

// connect opens a client, whose fallback gives an error.
func (p *place) connect(addr string) (*client.Client, error) {
	k, err := client.New(client.Config{Servers: []string{addr}, Timeout: 10 * time.Second, Fallback: guard.FallbackError})
	if err == nil {
		p.closes = append(p.closes, func() { _ = k.Close() })
	}
	return k, err
}

// decide decides a request of one user.
func decide(ctx context.Context, k *client.Client, n int) error {
	a, err := k.Decide(ctx, &client.Request{Method: "GET", Path: "/a", Headers: map[string]string{"x-user": customer(n % users)}})
	if err == nil && a.Policy != "user" {
		err = fmt.Errorf("rls: the answer is %+v", a)
	}
	return err
}

// bothOfClient starts a server for the client, and one for unary calls.
func (p *place) bothOfClient(ctx context.Context, workers int) (ours, unary contest.Side, err error) {
	s, _, err := p.decides(ctx)
	if err != nil {
		return ours, unary, err
	}
	k, err := p.connect(s.Addr)
	if err != nil {
		return ours, unary, err
	}
	next := make([]int, workers)
	took := &latencies{workers: make([][]time.Duration, workers)}
	ours = contest.Side{Name: sideClient, Kind: contest.Ours, Meters: append(meter(s), took.meter())}
	ours.Run = took.timed(func(worker, _ int) contest.Tally {
		next[worker]++
		if err := decide(ctx, k, worker*31+next[worker]); err != nil {
			return contest.Failure(err)
		}
		return contest.Tally{Allowed: 1}
	})
	other, _, err := p.decides(ctx)
	if err != nil {
		return ours, unary, err
	}
	if unary, err = p.side(sideOurs, contest.Peer, other); err != nil {
		return ours, unary, err
	}
	theirs := &latencies{workers: make([][]time.Duration, workers)}
	unary.Run, unary.Meters = theirs.timed(unary.Run), append(unary.Meters, theirs.meter())
	return ours, unary, nil
}

// clients compares package client on one connection with unary calls by as many callers on 8 connections.
func clients(name string, workers int, barTime, barCPU float64) func(context.Context, *place, contest.Effort) (contest.Result, error) {
	return func(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
		ours, unary, err := p.bothOfClient(ctx, workers)
		if err != nil {
			return contest.Result{}, err
		}
		c := contest.Contest{
			Name: name, Workers: workers, Least: contest.Batch, Sides: []contest.Side{ours, unary},
			About: fmt.Sprintf("a decision through package client on one connection, beside a unary call of Envoy's service on %d; "+
				"memory store, metrics on, %d callers", connections, workers),
			Questions: []contest.Question{
				{Of: sideClient, Against: sideOurs, Bar: barTime},
				{Of: sideClient, Against: sideOurs, Meter: serverCPU, Bar: barCPU},
				{Of: sideClient, Against: sideOurs, Meter: p99, Bar: barClientP99},
			},
		}
		return c.Measure(ctx, e)
	}
}

// pacedCallers is the number of callers at a constant rate.
const pacedCallers = 64

// paced compares the p99 latency of both at a constant rate.
func paced(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	s, _, err := p.decides(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	k, err := p.connect(s.Addr)
	if err != nil {
		return contest.Result{}, err
	}
	other, _, err := p.decides(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	unary, err := p.dial(other.Addr)
	if err != nil {
		return contest.Result{}, err
	}
	calls := []func(i int) error{
		func(i int) error { return decide(ctx, k, i) },
		func(i int) error { return unary.call(ctx, i, time.Now().Add(10*time.Second)) },
	}
	rows := []contest.Row{{Name: sideClient, Kind: contest.Ours, Exact: true}, {Name: sideOurs, Kind: contest.Peer, Exact: true}}
	for round := -1; round < min(e.Rounds, lateRounds); round++ {
		for i, call := range calls {
			took, err := pace(8*e.Slice, call)
			if err != nil {
				return contest.Result{}, err
			}
			if round >= 0 { // The round before warms up.
				rows[i].Rounds = append(rows[i].Rounds, float64(took))
			}
		}
	}
	for i := range rows {
		rows[i].Median = contest.Median(rows[i].Rounds)
	}
	return contest.Result{
		Name: "client, constant rate", Workers: pacedCallers, Rows: rows,
		About: fmt.Sprintf("p99 latency of %d callers with %d decisions a second in all, from their due times", pacedCallers, lateRate),
		Ratios: []contest.Ratio{
			contest.Compare("p99, "+sideClient, "p99, "+sideOurs, rows[0].Rounds, rows[1].Rounds, barClientPaced),
		},
	}, nil
}

// pace makes calls at the rate, and gives the p99 latency from their due times.
func pace(during time.Duration, call func(i int) error) (time.Duration, error) {
	n := int(during.Seconds() * lateRate)
	all, failures := make([]time.Duration, n), make([]error, pacedCallers)
	var callers sync.WaitGroup
	began := time.Now()
	for w := range pacedCallers {
		callers.Go(func() {
			for i := w; i < n; i += pacedCallers {
				at := began.Add(time.Duration(i) * time.Second / lateRate)
				<-time.After(time.Until(at))
				if err := call(i); err != nil {
					failures[w] = err
					return
				}
				all[i] = time.Since(at)
			}
		})
	}
	callers.Wait()
	for _, err := range failures {
		if err != nil {
			return 0, err
		}
	}
	return percentile99(all), nil
}
