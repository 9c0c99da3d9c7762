package shared

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// scriptName is the name of the side that only runs the script of store/redis.
const scriptName = "its script alone"

// redisLone measures the latency of a decision without concurrent decisions. It compares
// the latency with the script alone, with the same client, settings and server.
func redisLone(ctx context.Context, p *place, e contest.Effort) ([]contest.Result, error) {
	server, err := servers.Redis(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	p.started = append(p.started, server)
	makers := []maker{
		headgateRedis(),
		{Name: scriptName, Kind: contest.Floor, New: newBareScript},
		nothing(),
	}
	makers = append(makers, redisPeers()...)
	var sides []*loneSide
	for _, m := range makers {
		made, err := m.New(ctx, []string{server.Addr}, perKey())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		p.opened = append(p.opened, made)
		sides = append(sides, &loneSide{name: m.Name, kind: m.Kind, take: made.Caller(), keys: keysOf(keyCount)})
	}
	if err := loneRounds(ctx, e, sides); err != nil {
		return nil, err
	}
	return []contest.Result{loneResult(e, sides)}, nil
}

// loneSide is one side with its measurements.
type loneSide struct {
	name string
	kind contest.Kind
	take take
	keys []string
	at   int
	took []time.Duration

	p50, p99 []float64 // nanoseconds, one value per round
}

func loneRounds(ctx context.Context, e contest.Effort, sides []*loneSide) error {
	order := rand.New(rand.NewPCG(1, uint64(len(sides))))
	for round := -1; round < e.Rounds; round++ { // The first round warms up.
		for _, i := range order.Perm(len(sides)) {
			if err := sides[i].slice(ctx, e.Slice); err != nil {
				return err
			}
			if round >= 0 {
				sides[i].sum()
			}
		}
	}
	return nil
}

// slice makes sequential decisions for about d.
func (s *loneSide) slice(ctx context.Context, d time.Duration) error {
	// The deadline is short, as for a decision of a server. With a distant deadline,
	// store/redis would send the call from another goroutine.
	ctx, cancel := context.WithTimeout(ctx, d+500*time.Millisecond)
	defer cancel()
	s.took = s.took[:0]
	for end := time.Now().Add(d); len(s.took) < 100 || time.Now().Before(end); {
		began := time.Now()
		allowed, err := s.take(ctx, s.keys[s.at])
		s.took = append(s.took, time.Since(began))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if !allowed {
			return fmt.Errorf("%s: a request was denied, want all allowed", s.name)
		}
		s.at = (s.at + 1) % len(s.keys)
	}
	return nil
}

// sum appends the percentiles of the slice.
func (s *loneSide) sum() {
	slices.Sort(s.took)
	s.p50 = append(s.p50, float64(s.took[len(s.took)/2]))
	s.p99 = append(s.p99, float64(s.took[len(s.took)*99/100]))
}

func loneResult(e contest.Effort, sides []*loneSide) contest.Result {
	r := contest.Result{
		Name: "redis lone", Workers: 1,
		About: "latency of a decision without concurrent decisions; all sides use one server" + roundsOf(e),
	}
	var bare *loneSide
	for _, s := range sides {
		r.Rows = append(r.Rows,
			contest.Row{Name: "p50, " + s.name, Kind: s.kind, Exact: true, Median: contest.Median(s.p50), Rounds: s.p50},
			contest.Row{Name: "p99, " + s.name, Kind: s.kind, Exact: true, Median: contest.Median(s.p99), Rounds: s.p99})
		if s.name == scriptName {
			bare = s
		}
	}
	ours := sides[0]
	r.Ratios = append(r.Ratios,
		contest.Compare("p50, "+ours.name, "p50, "+scriptName, ours.p50, bare.p50, barLone),
		contest.Compare("p99, "+ours.name, "p99, "+scriptName, ours.p99, bare.p99, 0))
	for _, s := range sides {
		if s.kind == contest.Peer {
			r.Ratios = append(r.Ratios, contest.Compare("p50, "+ours.name, "p50, "+s.name, ours.p50, s.p50, 0))
		}
	}
	return r
}
