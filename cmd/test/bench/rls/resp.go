package rls

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/headgate/headgate/cmd/test/bench/contest"
)

// Bars of CL.THROTTLE: the processor time of the server / that of Redis for INCR, by commands in a pipeline.
const (
	barThrottle1  = 1.65
	barThrottle32 = 2.2
)

const (
	sideThrottle = "CL.THROTTLE"
	sideIncrease = "INCR of Redis"
	// redisConnections is the number of connections of redis-benchmark.
	redisConnections = 50
)

// throttles compares CL.THROTTLE with INCR of a Redis server. redis-benchmark makes the load.
func throttles(name string, pipeline int, bar float64) func(context.Context, *place, contest.Effort) (contest.Result, error) {
	return func(ctx context.Context, p *place, e contest.Effort) (contest.Result, error) {
		var at string
		config := filepath.Join(p.dir, "resp.yaml")
		s, err := p.serve(ctx, func(addr, port string) []string {
			at = second(port)
			text := fmt.Sprintf("version: 1\nrules: []\nserver: {grpc: %q, http: \"off\", resp: %q}\n"+
				"admin: {listen: \"127.0.0.1:0\", health: \"off\"}\n", addr, at)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				return []string{"false"} // The server then ends at once, and its log says why.
			}
			return []string{p.programs.path("headgate"), "server", "--config", config}
		})
		if err != nil {
			return contest.Result{}, err
		}
		redis, err := p.redis(ctx)
		if err != nil {
			return contest.Result{}, err
		}
		load := func(addr string, words ...string) func(_, n int) contest.Tally {
			return func(_, n int) contest.Tally { return benchmark(ctx, addr, pipeline, n, words) }
		}
		const most = "1000000000"
		c := contest.Contest{
			Name: name, Workers: 1, Least: 100_000,
			About: fmt.Sprintf("processor time of the server for a command, beside that of Redis; redis-benchmark with %d connections and "+
				"%d commands in a pipeline, 1,000 keys, memory store, metrics on", redisConnections, pipeline),
			Sides: []contest.Side{
				{
					Name: sideThrottle, Kind: contest.Ours, Meters: meter(s),
					Run: load(at, "CL.THROTTLE", "key:__rand_int__", most, most, "86400"),
				},
				{Name: sideIncrease, Kind: contest.Peer, Meters: meter(redis), Run: load(redis.Addr, "INCR", "key:__rand_int__")},
			},
			Questions: []contest.Question{
				{Of: sideThrottle, Against: sideIncrease, Meter: serverCPU, Bar: bar}, {Of: sideThrottle, Against: sideIncrease},
			},
		}
		return c.Measure(ctx, e)
	}
}

// benchmark runs redis-benchmark with n commands.
func benchmark(ctx context.Context, addr string, pipeline, n int, words []string) contest.Tally {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return contest.Failure(err)
	}
	args := []string{
		"-h", host, "-p", port, "-c", strconv.Itoa(redisConnections), "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(n), "-r", "1000",
		"-q", "-e",
	}
	cmd := exec.CommandContext(ctx, "redis-benchmark", append(args, words...)...) //nolint:gosec // The arguments are those above.
	if text, err := cmd.CombinedOutput(); err != nil {
		return contest.Failure(fmt.Errorf("rls: redis-benchmark: %w\n%s", err, text))
	}
	return contest.Tally{Allowed: n}
}
