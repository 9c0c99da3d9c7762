package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/output"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/sim/service"
	"github.com/headgate/headgate/rule"
)

// Options are the flags of headgate simulate.
type Options struct {
	// Limit asks for a comparison of Algorithms; Config is the configuration to play otherwise.
	Limit      string
	Algorithms []string
	SubWindows []int
	Config     *config.Config

	Scenario      string // the file's text
	ScenarioName  string
	Traffic, Rate string
	Seed, Keys    int64
	Zipf          string
	Jitter        bool
	For           time.Duration
	Measure, JSON bool
	HTML          string   // a file to write
	Command       string   // as the user wrote it
	Given         []string // the names of the flags that the user wrote
	Out           io.Writer
	Progress      *output.Progress
}

// windows is the length of a run without For, in periods of the limit.
const windows = 400

// UsageError is a flag that is wrong.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf("simulate: "+format, args...)}
}

// ErrPartial says that the run was interrupted, after its result was written.
var ErrPartial = errors.New("simulate: interrupted: the result is that of a part of the run")

// shown is a result.
type shown interface {
	Text(*strings.Builder)
	Page(command string) *output.Page
}

// Run simulates, and writes the result.
func (o *Options) Run(ctx context.Context) error {
	if err := o.checkEffects(); err != nil {
		return err
	}
	run := o.play
	if o.Limit != "" {
		run = o.compare
	}
	d, result, partial, err := run(ctx)
	o.Progress.End()
	if err != nil {
		return err
	}
	if err := o.write(d, result); err != nil {
		return err
	}
	if partial {
		return ErrPartial
	}
	return nil
}

func (o *Options) compare(ctx context.Context) (*Document, shown, bool, error) {
	c, err := o.comparison()
	if err != nil {
		return nil, nil, false, err
	}
	done, err := Compare(ctx, c)
	if err != nil {
		return nil, nil, false, err
	}
	return &Document{Comparison: done}, done, done.Partial, nil
}

func (o *Options) play(ctx context.Context) (*Document, shown, bool, error) {
	s, err := o.scenario()
	if err != nil {
		return nil, nil, false, err
	}
	done, err := Play(ctx, o.Config, s, o.tell())
	if err != nil {
		return nil, nil, false, err
	}
	if o.Measure && !done.Partial {
		if done.NanosecondsPerDecision, err = measure(o.Config, s); err != nil {
			return nil, nil, false, err
		}
	}
	return &Document{Run: done}, done, done.Partial, nil
}

func (o *Options) tell() func(int64, float64) {
	return func(requests int64, done float64) { o.Progress.At(requests, done) }
}

// write writes the result to the output, and the page to its file.
func (o *Options) write(d *Document, result shown) error {
	if o.HTML != "" {
		file, err := os.Create(o.HTML)
		if err != nil {
			return fmt.Errorf("simulate: the page cannot be written: %w: make its folder, or name another file", err)
		}
		if err := errors.Join(result.Page(o.Command).Write(file), file.Close()); err != nil {
			return fmt.Errorf("simulate: write %s: %w", o.HTML, err)
		}
	}
	if o.JSON {
		return output.WriteJSON(o.Out, d)
	}
	var b strings.Builder
	result.Text(&b)
	_, err := io.WriteString(o.Out, b.String())
	return err
}

// comparison reads the flags of a comparison.
func (o *Options) comparison() (*Comparison, error) {
	if o.Scenario != "" {
		return nil, usagef("--scenario needs the configuration that decides: write --config FILE in place of --limit")
	}
	l, err := rule.ParseLimit(o.Limit)
	if err != nil {
		return nil, usagef("--limit %s: %w", strconv.Quote(o.Limit), err)
	}
	if l.Per == 0 || l.Count == 0 {
		return nil, usagef("--limit %s: windows of the calendar and a count of 0 cannot be compared: write a limit like 100/m", o.Limit)
	}
	c := o.oneGroup()
	c.Limit, c.Measure, c.Tell = l, o.Measure, o.tell()
	if c.Length == 0 {
		c.Length = min(windows*l.Per, mostLength)
	}
	if len(o.Algorithms) == 0 {
		c.Algorithms = headgate.Algorithms()
	}
	for _, name := range o.Algorithms {
		a, err := algorithmOf(name)
		if err != nil {
			return nil, err
		}
		c.Algorithms = append(c.Algorithms, a)
	}
	for _, n := range o.SubWindows {
		if n < 1 || n > limit.MaxSubWindows || time.Duration(n) > l.Per {
			return nil, usagef("--sub-windows %d: use 1 to %d, and at most the nanoseconds of the period", n, limit.MaxSubWindows)
		}
		c.SubWindows = append(c.SubWindows, int64(n))
	}
	if c.Rate, c.Zipf, err = o.traffic(l); err != nil {
		return nil, err
	}
	if _, err := configuration(exactly, l, 0); err != nil {
		return nil, usagef("--limit %s: %w", o.Limit, err)
	}
	return c, nil
}

// oneGroup has the traffic of the flags, without those that traffic reads.
func (o *Options) oneGroup() *Comparison {
	return &Comparison{Traffic: o.Traffic, Keys: o.Keys, Jitter: o.Jitter, Seed: uint64(max(o.Seed, 0)), Length: o.For}
}

func wrongSeed(seed int64) error { return usagef("--seed %d: use a number above 0", seed) }

func algorithmOf(name string) (headgate.Algorithm, error) {
	var names []string
	for _, a := range headgate.Algorithms() {
		if a.String() == name {
			return a, nil
		}
		names = append(names, a.String())
	}
	return 0, usagef("--algorithm %s is not known: use some of %s", strconv.Quote(name), strings.Join(names, ","))
}

// traffic reads the flags of made-up traffic. Without --rate, the rate is the limit.
func (o *Options) traffic(l headgate.Limit) (Rate, float64, error) {
	if o.Rate != "" {
		var err error
		if l, err = rule.ParseLimit(o.Rate); err != nil || l.Per == 0 || l.Count == 0 {
			return Rate{}, 0, usagef("--rate %s is no rate: write it like 100/m", strconv.Quote(o.Rate))
		}
	}
	if o.Keys < 1 || o.Keys > mostKeys {
		return Rate{}, 0, usagef("--keys %d: use 1 to %d", o.Keys, int64(mostKeys))
	}
	if o.Seed < 1 {
		return Rate{}, 0, wrongSeed(o.Seed)
	}
	if o.For < 0 || o.For > mostLength {
		return Rate{}, 0, usagef("--for %v: use a time above 0 and up to ten years", o.For)
	}
	if l.Count > 1_000_000_000 {
		return Rate{}, 0, usagef("a rate of %s is too high: use at most 1000000000 requests", l)
	}
	zipf := 0.0
	if o.Zipf != "" {
		var err error
		if zipf, err = strconv.ParseFloat(o.Zipf, 64); err != nil || !(zipf > 1) || zipf > 10 {
			return Rate{}, 0, usagef("--zipf %s: use a number above 1 and up to 10, like 1.1", strconv.Quote(o.Zipf))
		}
	}
	if _, err := newShape(o.Traffic, Rate{1, time.Second}); err != nil {
		return Rate{}, 0, usagef("%w", err)
	}
	return Rate{l.Count, l.Per}, zipf, nil
}

// scenario returns the traffic for a configuration: that of the file, or one group by the flags. A --seed replaces that of the file.
func (o *Options) scenario() (*Scenario, error) {
	if o.Scenario != "" {
		parsed, err := config.ParseScenario(o.ScenarioName, []byte(o.Scenario), Traffics())
		if err != nil {
			return nil, err
		}
		s := scenarioOf(parsed)
		if slices.Contains(o.Given, "seed") {
			if o.Seed < 1 {
				return nil, wrongSeed(o.Seed)
			}
			s.Seed = uint64(o.Seed)
		}
		return s, nil
	}
	var l headgate.Limit
	for i := range o.Config.Rules {
		if p := o.Config.Rules[i].Policies; len(p) > 0 && l.Per == 0 {
			l = p[0].Limit
		}
	}
	if l.Per == 0 && o.Rate == "" {
		return nil, usagef("the configuration has no limit with a length, from which the rate would come: write --rate 100/m")
	}
	rate, zipf, err := o.traffic(l)
	if err != nil {
		return nil, err
	}
	c := o.oneGroup()
	c.Rate, c.Zipf = rate, zipf
	s := c.scenario()
	if s.Length == 0 {
		s.Length = min(windows*rate.Per, mostLength)
	}
	return s, nil
}

// scenarioOf converts a scenario that was read.
func scenarioOf(c *config.Scenario) *Scenario {
	s := &Scenario{Seed: uint64(c.Seed), Length: c.Length}
	for i := range c.Clients {
		g := &c.Clients[i]
		own := Group{
			Name: g.Name, Clients: g.Number, Keys: g.Keys, Zipf: g.Zipf, Traffic: g.Traffic, Rate: Rate{g.Rate.Count, g.Rate.Per},
			Jitter: g.Jitter, Cost: g.Cost, Duration: g.Duration, From: g.From, Until: g.Until,
			Method: g.Method, Host: g.Host, Path: g.Path, Query: rule.Query(g.Query),
		}
		for _, h := range g.Headers {
			own.Headers = append(own.Headers, Header{h[0], h[1]})
		}
		s.Groups = append(s.Groups, own)
	}
	if m := c.Service; m != nil {
		s.Service = &Service{
			Model: service.Model{
				Cores: float64(m.Cores), Connections: int(m.Connections),
				SlowFrom: int(m.SlowFrom), SlowBy: float64(m.SlowBy) / 100, LeastSpeed: float64(m.LeastSpeed) / 100,
			},
			CPU: m.CPU, Hold: m.Hold, Wait: m.Wait,
		}
	}
	return s
}

// ParseLength reads a length of virtual time, as in a configuration: 90s, 5m, 2d.
func ParseLength(text string) (time.Duration, error) {
	d, err := rule.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usagef("--for %s is no time: write it like 90s, 5m or 2d", strconv.Quote(text))
	}
	return d, nil
}
