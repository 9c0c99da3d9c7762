// Package reload measures the latency of decisions while a configuration with many rules
// is reloaded continuously.
package reload

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// Effort is the amount of measurement.
type Effort struct {
	// Rounds is the number of rounds. A round has a slice without reloads and a slice with
	// continuous reloads.
	Rounds int
	// Slice is the duration of a slice.
	Slice time.Duration
	// Rules is the number of rules in the configuration.
	Rules int
}

// Result holds the latency percentiles as rows, and the ratio of the 99th percentiles.
type Result struct {
	contest.Result

	// Reloads is the number of reloads that took effect. Took is the median duration of a
	// reload.
	Reloads int           `json:"reloads"`
	Took    time.Duration `json:"took_ns"`
	// Decisions is the number of decisions, made at a constant rate.
	Decisions int `json:"decisions"`
}

// latency holds the percentiles of the decision times of a slice.
type latency struct{ p50, p99, longest time.Duration }

// Bar is the largest ratio of the 99th percentiles that passes.
const Bar = 2

// between is the interval between two decisions. It matches a busy proxy, but is long
// enough that decisions do not queue.
const between = 20 * time.Microsecond

// Measure decides at a constant rate in one goroutine. In every second slice, another
// goroutine reloads the configuration.
func Measure(ctx context.Context, e Effort) (Result, error) {
	text := configuration(e.Rules)
	c, err := config.Parse("rules.yaml", text)
	if err != nil {
		return Result{}, err
	}
	g, err := open.Guard(c)
	if err != nil {
		return Result{}, err
	}
	runtime.GC()
	var r Result
	var quiet, reloading []latency
	var took []time.Duration
	for range e.Rounds {
		one, err := r.decide(ctx, g, e)
		if err != nil {
			return Result{}, err
		}
		stop, ended := new(atomic.Bool), make(chan error, 1)
		go func() { ended <- again(g, text, stop, &took) }()
		other, err := r.decide(ctx, g, e)
		stop.Store(true)
		if err := errors.Join(<-ended, err); err != nil {
			return Result{}, err
		}
		quiet, reloading = append(quiet, one), append(reloading, other)
	}
	r.judge(e, quiet, reloading, took)
	return r, nil
}

// again parses and reloads the configuration until stop is set. It appends the duration of
// each reload to took.
func again(g *guard.Guard, text []byte, stop *atomic.Bool, took *[]time.Duration) error {
	for !stop.Load() {
		began := time.Now()
		c, err := config.Parse("rules.yaml", text)
		if err != nil {
			return err
		}
		next, err := open.GuardConfig(c, g.Store())
		if err != nil {
			return err
		}
		if err := g.Reload(next); err != nil {
			return err
		}
		*took = append(*took, time.Since(began))
	}
	return nil
}

// decide makes decisions for one slice, and returns their latency. It returns an error when
// a decision fails or denies.
func (r *Result) decide(ctx context.Context, g *guard.Guard, e Effort) (latency, error) {
	answer := new(guard.Answer)
	all := make([]time.Duration, 0, e.Slice/between+1)
	end := time.Now().Add(e.Slice)
	for i := 0; time.Now().Before(end); i++ {
		req := headgate.Request{
			Method: "GET", Host: "api.example.com", Path: "/v1/resource-" + strconv.Itoa(i%e.Rules),
			IP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}),
		}
		began := time.Now()
		err := g.Decide(ctx, &req, answer)
		all = append(all, time.Since(began))
		if err != nil || answer.Verdict != headgate.Allow || len(answer.Results) != 1 {
			return latency{}, fmt.Errorf(
				"reload: got verdict %v with %d results, want allow with 1 result: %w", answer.Verdict, len(answer.Results), err)
		}
		for time.Since(began) < between {
			runtime.Gosched()
		}
	}
	r.Decisions += len(all)
	slices.Sort(all)
	return latency{all[len(all)/2], all[len(all)*99/100], all[len(all)-1]}, nil
}

func (r *Result) judge(e Effort, quiet, reloading []latency, took []time.Duration) {
	slices.Sort(took)
	r.Reloads, r.Took = len(took), took[len(took)/2]
	r.Name, r.Workers = "reload", 1
	r.About = fmt.Sprintf("latency of a decision every %v with %d rules, without reloads and with continuous reloads "+
		"(%d reloads of %v each); %d decisions, no failures",
		between, e.Rules, r.Reloads, r.Took.Round(time.Millisecond), r.Decisions)
	p99 := func(l latency) time.Duration { return l.p99 }
	for _, side := range []struct {
		name   string
		rounds []latency
		of     func(latency) time.Duration
	}{
		{"p50, quiet", quiet, func(l latency) time.Duration { return l.p50 }},
		{"p50, reloading", reloading, func(l latency) time.Duration { return l.p50 }},
		{"p99, quiet", quiet, p99},
		{"p99, reloading", reloading, p99},
		{"longest, quiet", quiet, func(l latency) time.Duration { return l.longest }},
		{"longest, reloading", reloading, func(l latency) time.Duration { return l.longest }},
	} {
		rounds := make([]float64, len(side.rounds))
		for i, l := range side.rounds {
			rounds[i] = float64(side.of(l))
		}
		median := contest.MedianInterval(rounds).Median
		r.Rows = append(r.Rows, contest.Row{Name: side.name, Kind: contest.Ours, Exact: true, Median: median, Rounds: rounds})
	}
	ratios := make([]float64, len(quiet))
	for i := range quiet {
		ratios[i] = float64(reloading[i].p99) / float64(quiet[i].p99)
	}
	known := contest.MedianInterval(ratios)
	r.Ratios = []contest.Ratio{{
		Interval: known, Of: "p99, reloading", Against: "p99, quiet", Rounds: ratios, Bar: Bar, Verdict: contest.Judge(known, Bar),
	}}
}

// configuration returns a file with the given number of rules, each for its own path.
func configuration(rules int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range rules {
		fmt.Fprintf(&b, "  - name: rule-%d\n    match: {path: /v1/resource-%d, methods: [GET]}\n    key: [ip]\n    limits: [\"%d/m\"]\n",
			i, i, 1_000_000+i%100)
	}
	return []byte(b.String())
}
