// Command bench measures Headgate and its peers side by side and judges the results by the
// bars. The report also describes the machine. README.md explains how to read the report.
//
// The command exits with status 1 when a bar is missed, except in a quick run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/flood"
	"github.com/headgate/headgate/cmd/test/bench/outcome"
	"github.com/headgate/headgate/cmd/test/bench/proxy"
	"github.com/headgate/headgate/cmd/test/bench/reload"
	"github.com/headgate/headgate/cmd/test/bench/rls"
	"github.com/headgate/headgate/cmd/test/bench/scenes"
	"github.com/headgate/headgate/cmd/test/bench/shared"
	"github.com/headgate/headgate/cmd/test/bench/waiters"
)

// plan holds the selected scenes and the effort of each.
type plan struct {
	quick   bool
	only    *regexp.Regexp
	out     string
	before  string
	effort  contest.Effort
	size    scenes.Size
	flood   int
	load    proxy.Effort
	latency proxy.ThrottleEffort
	reload  reload.Effort
	shared  contest.Effort
	waiters waiters.Effort
	memory  proxy.MemoryEffort
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// errUsage means that the flag package has already printed the error.
var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "run for three minutes to check that the benchmarks work; missed bars do not fail the run")
	rounds := flags.Int("rounds", 20, "number of interleaved rounds; a full run needs at least 10")
	only := flags.String("only", "", "regular expression that selects scenes by name, for example 'reload|flood|proxy|redis|memcached'")
	out := flags.String("out", "", "folder for the results (default \"results\"; with --quick, no results are written)")
	before := flags.String("before", "", "commit whose headgate also takes part in the scenes of proxies; it is built first")
	side := flags.String("flood-side", "", "flood only the named side and print its result as JSON; a full run uses this flag")
	keys := flags.Int("flood-keys", 5_000_000, "number of keys in the flood")
	server := flags.String("flood-server", "", "flood the server at `HOST:PORT` as one caller; the scene \"server, flood\" uses this flag")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}
	if *side != "" {
		return floodSide(*side, *keys)
	}
	if *server != "" {
		return rls.Flood(ctx, *server, os.Stdin, os.Stdout)
	}
	p := fullPlan(*rounds, *keys)
	if *quick {
		p = quickPlan()
	} else if *rounds < 10 {
		return fmt.Errorf("--rounds %d is too small for a confidence interval: use at least 10, or --quick", *rounds)
	}
	if *out != "" {
		p.out = *out
	}
	p.before = *before
	var err error
	if p.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	return p.measure(ctx)
}

func fullPlan(rounds, keys int) plan {
	return plan{
		out:     "results",
		effort:  contest.Effort{Rounds: rounds, Slice: 100 * time.Millisecond},
		size:    scenes.Size{Keys: 1 << 20, Sequence: 1 << 21},
		flood:   keys,
		load:    proxy.Effort{Rounds: max(10, rounds/2), Warmups: 1, Load: 2 * time.Second},
		latency: proxy.ThrottleEffort{Rounds: max(10, rounds/2), Warmups: 1, Turns: 8, Requests: 1000},
		reload:  reload.Effort{Rounds: rounds, Slice: time.Second, Rules: 10_000},
		shared:  contest.Effort{Rounds: rounds, Slice: 250 * time.Millisecond},
		waiters: waiters.Effort{Rounds: max(10, rounds/2), Waiters: 1_000_000},
		memory:  proxy.MemoryEffort{Starts: 9, Connections: 2000, Rules: 1000, Keys: 100_000},
	}
}

func quickPlan() plan {
	return plan{
		quick:   true,
		effort:  contest.Effort{Rounds: 3, Slice: time.Millisecond},
		size:    scenes.Size{Keys: 1 << 14, Sequence: 1 << 15},
		flood:   20_000,
		load:    proxy.Effort{Rounds: 1, Load: time.Second},
		latency: proxy.ThrottleEffort{Rounds: 1, Turns: 1, Requests: 200},
		reload:  reload.Effort{Rounds: 2, Slice: 100 * time.Millisecond, Rules: 1000},
		// The median of two rounds is their mean, so one outlier would move it.
		shared:  contest.Effort{Rounds: 3, Slice: time.Millisecond},
		waiters: waiters.Effort{Rounds: 2, Waiters: 20_000},
		memory:  proxy.MemoryEffort{Starts: 1, Connections: 20, Rules: 20, Keys: 20},
	}
}

// measure runs the selected scenes, prints the report, and writes the report to p.out.
func (p *plan) measure(ctx context.Context) error {
	o := outcome.Outcome{Machine: outcome.ThisMachine(), Quick: p.quick, Effort: p.effort, Size: p.size}
	for _, step := range []func(context.Context, *outcome.Outcome) error{
		p.contests, p.manyWaiters, p.reloads, p.sharedStores, p.decisionServers, p.throttles, p.floods, p.memories, p.proxies,
	} {
		if err := step(ctx, &o); err != nil {
			return err
		}
	}
	fmt.Print(o.Markdown())
	if p.out != "" {
		name, err := o.Write(p.out)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "bench: wrote %[1]s.md and %[1]s.json\n", name)
	}
	if missed := o.Missed(); len(missed) > 0 && !p.quick {
		return fmt.Errorf("%d bars were missed: %q: see the report above", len(missed), missed)
	}
	return nil
}

func (p *plan) contests(ctx context.Context, o *outcome.Outcome) error {
	for _, s := range scenes.All() {
		if !p.only.MatchString(s.Name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench:", s.Name)
		result, err := s.Measure(ctx, p.size, p.effort)
		if err != nil {
			return err
		}
		o.Contests = append(o.Contests, result)
	}
	return nil
}

func (p *plan) manyWaiters(ctx context.Context, o *outcome.Outcome) error {
	if !p.only.MatchString(waiters.Name) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "bench:", waiters.Name)
	result, err := waiters.Measure(ctx, p.waiters)
	if err != nil {
		return err
	}
	o.Contests = append(o.Contests, result)
	return nil
}

func (p *plan) reloads(ctx context.Context, o *outcome.Outcome) error {
	if !p.only.MatchString("reload") {
		return nil
	}
	fmt.Fprintln(os.Stderr, "bench: reload")
	result, err := reload.Measure(ctx, p.reload)
	if err != nil {
		return err
	}
	o.Contests = append(o.Contests, result.Result)
	return nil
}

func (p *plan) sharedStores(ctx context.Context, o *outcome.Outcome) error {
	for _, s := range shared.All() {
		if !p.only.MatchString(s.Name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench:", s.Name)
		results, err := s.Measure(ctx, p.shared)
		if err != nil {
			return err
		}
		o.Contests = append(o.Contests, results...)
	}
	return nil
}

func (p *plan) decisionServers(ctx context.Context, o *outcome.Outcome) error {
	selected := slices.DeleteFunc(rls.All(), func(s rls.Scene) bool { return !p.only.MatchString(s.Name) })
	if len(selected) == 0 {
		return nil
	}
	programs, err := rls.Build(ctx, selected)
	if err != nil {
		return err
	}
	defer programs.Remove()
	for _, s := range selected {
		fmt.Fprintln(os.Stderr, "bench:", s.Name)
		result, err := s.Measure(ctx, programs, p.shared)
		if err != nil {
			return err
		}
		o.Contests = append(o.Contests, result)
	}
	return nil
}

func (p *plan) throttles(ctx context.Context, o *outcome.Outcome) error {
	if !p.only.MatchString(proxy.ThrottleName) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "bench:", proxy.ThrottleName)
	result, err := proxy.MeasureThrottle(ctx, p.latency)
	if err != nil {
		return err
	}
	o.Contests = append(o.Contests, result)
	return nil
}

func (p *plan) floods(ctx context.Context, o *outcome.Outcome) error {
	if !p.only.MatchString("flood") {
		return nil
	}
	fmt.Fprintln(os.Stderr, "bench: flood")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o.Flood, err = flood.Each(ctx, self, p.flood)
	return err
}

func (p *plan) memories(ctx context.Context, o *outcome.Outcome) error {
	if !p.only.MatchString(proxy.MemoryName) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "bench:", proxy.MemoryName)
	programs, err := proxy.Build(ctx, "")
	if err != nil {
		return err
	}
	defer programs.Remove()
	o.Memory, err = proxy.MeasureMemory(ctx, programs, p.memory)
	return err
}

func (p *plan) proxies(ctx context.Context, o *outcome.Outcome) error {
	selected := slices.DeleteFunc(proxy.Scenes(p.before), func(s proxy.Scene) bool {
		return !p.only.MatchString(s.Name) || p.quick && s.Repeats
	})
	if len(selected) == 0 {
		return nil
	}
	programs, err := proxy.Build(ctx, p.before)
	if err != nil {
		return err
	}
	defer programs.Remove()
	for _, s := range selected {
		fmt.Fprintln(os.Stderr, "bench:", s.Name)
		result, err := s.Measure(ctx, programs, p.load)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		o.Proxies = append(o.Proxies, result)
	}
	return nil
}

func floodSide(name string, keys int) error {
	row, err := flood.Measure(name, keys)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(row)
}
