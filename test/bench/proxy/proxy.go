// Package proxy compares the processor time per request of Headgate's proxy and of a bare
// httputil.ReverseProxy, and the latency of Headgate's proxy with a throttle and without. The
// proxies have the same upstream and the same load, in interleaved rounds.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
)

// Effort is the amount of measurement.
type Effort struct {
	Rounds int `json:"rounds"`
	// Warmups is the number of rounds before the measured rounds.
	Warmups int `json:"warmups"`
	// Load is the time for which a side is loaded in a round.
	Load time.Duration `json:"load_ns"`
}

// Result holds the processor time per request in nanoseconds, and the figures of the load
// generator.
type Result struct {
	contest.Result

	Seen []Seen `json:"seen"`
}

// Seen holds the medians of the figures that wrk reported for one side.
type Seen struct {
	Name string        `json:"name"`
	Rate float64       `json:"requests_per_second"`
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	// Resident is the resident memory of the process after the last round, in bytes.
	Resident uint64 `json:"resident"`
}

// bar is the largest ratio of Headgate's proxy to the bare proxy that passes.
const bar = 1.08

// ErrNotThere means that this checkout does not contain the subcommand proxy.
var ErrNotThere = errors.New("proxy: cmd/headgate/proxy.go does not exist in this checkout")

// Measure builds the programs, starts them on loopback, and loads one after the other.
func Measure(ctx context.Context, e Effort) (r Result, err error) {
	err = withSides(ctx, startSides, func(sides []*process) error {
		r, err = load(ctx, e, sides)
		return err
	})
	return r, err
}

// starter starts the sides before an upstream. After an error, it returns those that it has
// started.
type starter func(ctx context.Context, dir, upstream string) ([]*process, error)

// withSides builds the programs, starts an upstream and the sides on loopback, calls measure,
// and ends all processes.
func withSides(ctx context.Context, sides starter, measure func([]*process) error) error {
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // Files that cannot be removed stay in the system's temporary folder.
	if err := build(ctx, dir); err != nil {
		return err
	}
	upstream, err := start(ctx, "upstream", "", dir, "upstream")
	if err != nil {
		return err
	}
	defer upstream.stop()
	started, err := sides(ctx, dir, upstream.url)
	defer func() {
		for _, p := range started {
			p.stop()
		}
	}()
	if err != nil {
		return err
	}
	for _, p := range started {
		if err := p.answers(ctx); err != nil {
			return err
		}
	}
	return measure(started)
}

// build compiles Headgate and the bare proxy with the same toolchain and flags.
func build(ctx context.Context, dir string) error {
	root, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/headgate/headgate")
	if err != nil {
		return err
	}
	here, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "cmd", "headgate", "proxy.go")); err != nil {
		return ErrNotThere
	}
	for _, b := range []struct{ in, what string }{
		{root, "./cmd/headgate"}, {here, "./cmd/bareproxy"}, {here, "./cmd/upstream"},
	} {
		//nolint:gosec // The folders are those of the list above.
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", dir, b.what)
		cmd.Dir = b.in
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("proxy: go build %s: %w\n%s", b.what, err, text)
		}
	}
	return nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, name, args...).Output() //nolint:gosec // This file contains all commands.
	if err != nil {
		return "", fmt.Errorf("proxy: %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// load runs the rounds and computes the ratios to sides[0], the bare proxy.
func load(ctx context.Context, e Effort, sides []*process) (Result, error) {
	costs := make([][]float64, len(sides))
	seen := make([][]report, len(sides))
	for round := -e.Warmups; round < e.Rounds; round++ {
		for i, p := range sides {
			cost, saw, err := p.round(ctx, e.Load)
			if err != nil {
				return Result{}, err
			}
			if round >= 0 {
				costs[i], seen[i] = append(costs[i], cost), append(seen[i], saw)
			}
		}
	}
	result := Result{Result: contest.Result{
		Name: "proxy", Workers: connections,
		About: fmt.Sprintf("processor time of the proxy's process per request; %d rounds of %v, wrk -t%d -c%d, bodies of 1 KiB",
			e.Rounds, e.Load, threads, connections),
	}}
	for i, p := range sides {
		result.Rows = append(result.Rows, contest.Row{
			Name: p.name, Kind: p.kind, Exact: true, Median: contest.Median(costs[i]), Rounds: costs[i],
		})
		result.Seen = append(result.Seen, p.sum(seen[i]))
		if i > 0 {
			result.Ratios = append(result.Ratios, contest.Compare(p.name, sides[0].name, costs[i], costs[0], p.bar))
		}
	}
	return result, nil
}

// round loads one side, and returns its processor time per request in nanoseconds.
func (p *process) round(ctx context.Context, d time.Duration) (float64, report, error) {
	before, err := p.processorTime()
	if err != nil {
		return 0, report{}, err
	}
	saw, err := wrk(ctx, p.url, d)
	if err != nil {
		return 0, report{}, fmt.Errorf("proxy: %s: %w", p.name, err)
	}
	after, err := p.processorTime()
	if err != nil {
		return 0, report{}, err
	}
	return float64((after - before).Nanoseconds()) / float64(saw.requests), saw, nil
}

// sum returns the medians of the rounds.
func (p *process) sum(rounds []report) Seen {
	var rate, p50, p99 []float64
	for _, r := range rounds {
		rate = append(rate, float64(r.requests)/r.took.Seconds())
		p50, p99 = append(p50, float64(r.p50)), append(p99, float64(r.p99))
	}
	return Seen{
		Name: p.name, Rate: contest.Median(rate), Resident: p.resident(),
		P50: time.Duration(contest.Median(p50)), P99: time.Duration(contest.Median(p99)),
	}
}
