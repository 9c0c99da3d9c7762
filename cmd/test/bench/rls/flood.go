package rls

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// barFlood is the p99 latency of the other callers / that when the flood goes to a bare server.
const barFlood = 1.5

const (
	// floodLimit is server.limits.caller, in a second and at once: a tenth of the flood. It is above the rate of each
	// of the other callers.
	floodLimit = floodRate / 10
	// floodLead is the time from the begin of the flood to that of the other callers. The flood uses up its limit in
	// 111 ms. floodTail is the time of the flood after the due time of the last other call.
	floodLead, floodTail = 200 * time.Millisecond, 20 * time.Millisecond
	// others is the number of the other callers, and othersRate the number of their calls in a second.
	others, othersRate = 4, 1000
	floodRounds        = 10
)

const (
	sideFlooded   = "flood to headgate server"
	sideFloodAway = "flood to a bare server"
)

// limited is headgate server with Envoy's domain, whose callers have a limit and need a token.
func (p *place) limited(ctx context.Context) (*servers.Server, error) {
	var callers []string
	for i := range 1 + others {
		digest := sha256.Sum256([]byte(tokenOf(i)))
		callers = append(callers, fmt.Sprintf("{name: caller-%d, tokens: [\"sha256:%x\"], scopes: [decide]}", i, digest))
	}
	config := filepath.Join(p.dir, "limited.yaml")
	return p.serve(ctx, func(addr, _ string) []string {
		text := fmt.Sprintf("version: 1\nrules: []\nserver: {grpc: {address: %q, auth: token, max_streams: %d}, http: \"off\", "+
			"limits: {caller: %d/s}, callers: [%s]}\nadmin: {listen: \"127.0.0.1:0\", health: \"off\"}\n"+
			"domains: {bench: {descriptors: [{key: user, limits: %d/1d}]}}\n",
			addr, floodStreams, floodLimit, strings.Join(callers, ", "), limit)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return []string{"false"} // The server then ends at once, and its log says why.
		}
		return []string{p.programs.path("headgate"), "server", "--config", config}
	})
}

// floods compares the p99 latency of callers within their limits while one caller floods headgate server, and
// while the same flood goes to a bare server on the same machine.
func floods(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
	s, err := p.limited(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	measured, err := p.dial(s.Addr)
	if err != nil {
		return contest.Result{}, err
	}
	bare, err := p.empty(ctx)
	if err != nil {
		return contest.Result{}, err
	}
	ours := &floodSide{row: contest.Row{Name: sideFlooded, Kind: contest.Ours, Exact: true}, check: (*flooded).limited}
	away := &floodSide{row: contest.Row{Name: sideFloodAway, Kind: contest.Floor, Exact: true}, check: (*flooded).unlimited}
	if ours.flooder, err = p.startFlood(ctx, s.Addr); err != nil {
		return contest.Result{}, err
	}
	if away.flooder, err = p.startFlood(ctx, bare.Addr); err != nil {
		return contest.Result{}, err
	}
	// A collection of this process would delay calls. It collects between the turns.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	sides, order := []*floodSide{ours, away}, rand.New(rand.NewPCG(1, 2))
	for round := -1; round < min(e.Rounds, floodRounds); round++ { // The round before warms up.
		for _, i := range order.Perm(len(sides)) {
			if err := sides[i].measure(ctx, measured, 8*e.Slice, round >= 0); err != nil {
				return contest.Result{}, err
			}
		}
	}
	return floodResult(ours, away, 8*e.Slice), nil
}

func floodResult(ours, away *floodSide, during time.Duration) contest.Result {
	ours.row.Median, away.row.Median = contest.Median(ours.row.Rounds), contest.Median(away.row.Rounds)
	return contest.Result{
		Name: "server, flood", Workers: others, Rows: []contest.Row{ours.row, away.row},
		About: fmt.Sprintf("p99 latency of %d callers within their limits, from the due times of their calls, with %d calls a second in "+
			"all for %v in each round. Another process floods headgate server as one caller with %d calls a second, of which its limit "+
			"permits %d, and does not wait for answers; beside the same flood to a server that decides nothing on the same machine. In "+
			"the turns with the smallest figures, %.1f %% of the flood were refused, and %.0f and %.0f of its calls ended in a second. "+
			"The p99 of the delay with which the measured calls began was at most %v and %v",
			others, othersRate, during, floodRate, floodLimit, 100*ours.refused, ours.slowest, away.slowest,
			ours.delay.Round(time.Microsecond), away.delay.Round(time.Microsecond)),
		Ratios: []contest.Ratio{contest.Compare("p99, "+sideFlooded, "p99, "+sideFloodAway, ours.row.Rounds, away.row.Rounds, barFlood)},
	}
}
