package shared

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/servers"
)

// ceilingClients is the number of connections of redis-benchmark.
const ceilingClients = 64

// ceilingSide is one command that redis-benchmark measures.
type ceilingSide struct {
	name     string
	pipeline int
	words    []string
	requests int // per round

	wall, client, server []float64 // nanoseconds per operation, one value per round
}

// redisCeiling measures the maximum rate of the server on this machine with
// redis-benchmark. No Go client takes part.
func redisCeiling(ctx context.Context, p *place, e contest.Effort) ([]contest.Result, error) {
	server, err := servers.Redis(ctx, p.dir)
	if err != nil {
		return nil, err
	}
	p.started = append(p.started, server)
	digest, err := loadNothing(ctx, server)
	if err != nil {
		return nil, err
	}
	sides := ceilingSides(digest)
	for i := range sides {
		if err := sides[i].calibrate(ctx, server, e.Slice); err != nil {
			return nil, err
		}
	}
	order := rand.New(rand.NewPCG(1, uint64(len(sides))))
	for range e.Rounds {
		for _, i := range order.Perm(len(sides)) {
			if err := sides[i].round(ctx, server); err != nil {
				return nil, err
			}
		}
	}
	return []contest.Result{ceilingResult(e, sides)}, nil
}

// loadNothing loads nothingScript and returns its digest.
func loadNothing(ctx context.Context, server *servers.Server) (string, error) {
	client, err := newRueidis(server.Addr)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return client.Do(ctx, client.B().ScriptLoad().Script(nothingScript).Build()).ToString()
}

func ceilingSides(digest string) []ceilingSide {
	const key = "key:__rand_int__"
	var sides []ceilingSide
	for _, pipeline := range []int{1, 16} {
		for _, c := range []struct {
			name  string
			words []string
		}{
			{"SET", []string{"SET", key, "0"}},
			{"GET", []string{"GET", key}},
			{"INCR", []string{"INCR", key}},
			{"EVALSHA of nothing", []string{"EVALSHA", digest, "1", key}},
		} {
			sides = append(sides, ceilingSide{name: ceilingName(c.name, pipeline), pipeline: pipeline, words: c.words})
		}
	}
	return sides
}

func ceilingName(command string, pipeline int) string {
	if pipeline > 1 {
		return fmt.Sprintf("%s, %d in a pipeline", command, pipeline)
	}
	return command
}

// calibrate finds the number of requests that takes about want.
func (s *ceilingSide) calibrate(ctx context.Context, server *servers.Server, want time.Duration) error {
	s.requests = 5000
	rate, _, err := s.run(ctx, server)
	if err != nil {
		return err
	}
	s.requests = max(int(rate*want.Seconds()), 1000)
	return nil
}

// round appends one measurement to wall, client and server.
func (s *ceilingSide) round(ctx context.Context, server *servers.Server) error {
	before, err := server.CPU()
	if err != nil {
		return err
	}
	rate, client, err := s.run(ctx, server)
	if err != nil {
		return err
	}
	after, err := server.CPU()
	if err != nil {
		return err
	}
	n := float64(s.requests)
	s.wall = append(s.wall, 1e9/rate)
	s.client = append(s.client, float64(client)/n)
	s.server = append(s.server, float64(after-before)/n)
	return nil
}

// run returns the requests per second, and the processor time of redis-benchmark.
func (s *ceilingSide) run(ctx context.Context, server *servers.Server) (float64, time.Duration, error) {
	host, port, _ := strings.Cut(server.Addr, ":")
	words := append([]string{
		"-h", host, "-p", port, "-c", strconv.Itoa(ceilingClients), "-P", strconv.Itoa(s.pipeline),
		"-n", strconv.Itoa(s.requests), "-r", strconv.Itoa(keyCount), "--csv",
	}, s.words...)
	cmd := exec.CommandContext(ctx, "redis-benchmark", words...) //nolint:gosec // This package passes all words.
	text, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("redis-benchmark %s: %w\n%s", s.name, err, text)
	}
	rate, err := rateOf(text)
	if err != nil {
		return 0, 0, fmt.Errorf("redis-benchmark %s: %w", s.name, err)
	}
	return rate, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// rateOf parses the column rps, the second column, in the last line.
func rateOf(text []byte) (float64, error) {
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return 0, err
	}
	if len(lines) < 2 || len(lines[0]) < 2 || lines[0][1] != "rps" {
		return 0, fmt.Errorf("cannot parse the output %q: want a CSV table with the column rps", text)
	}
	rate, err := strconv.ParseFloat(lines[len(lines)-1][1], 64)
	if err == nil && rate <= 0 {
		err = errors.New("got a rate of 0 requests a second")
	}
	return rate, err
}

func ceilingResult(e contest.Effort, sides []ceilingSide) contest.Result {
	r := contest.Result{
		Name: "redis ceiling", Workers: ceilingClients,
		About: fmt.Sprintf("maximum rate of the server, by redis-benchmark with %d connections and %d keys",
			ceilingClients, keyCount) + roundsOf(e),
	}
	rounds := make(map[string][]float64)
	for _, s := range sides {
		rounds[s.name] = s.wall
		r.Rows = append(r.Rows, contest.Row{
			Name: s.name, Kind: contest.Floor, Exact: true, Median: contest.Median(s.wall), Rounds: s.wall,
			Meters: []contest.Metered{
				{Name: clientCPU, Median: contest.Median(s.client), Rounds: s.client},
				{Name: serverCPU, Median: contest.Median(s.server), Rounds: s.server},
			},
		})
	}
	for _, pipeline := range []int{1, 16} {
		of, against := ceilingName("EVALSHA of nothing", pipeline), ceilingName("INCR", pipeline)
		r.Ratios = append(r.Ratios, contest.Compare(of, against, rounds[of], rounds[against], 0))
	}
	return r
}
