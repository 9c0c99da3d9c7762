package simulate

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/internal/config"
)

// Comparison asks what one limit does with several algorithms.
type Comparison struct {
	Limit      headgate.Limit
	Algorithms []headgate.Algorithm
	SubWindows []int64
	Traffic    string
	Rate       Rate // of each key
	Keys       int64
	Zipf       float64
	Jitter     bool
	Seed       uint64
	Length     time.Duration
	Measure    bool
	// Tell gets the progress of all runs; nil gets none.
	Tell func(requests int64, done float64) `json:"-"`
}

// Compared is the answer to a Comparison.
type Compared struct {
	Limit     string     `help:"The limit." json:"limit"`
	Traffic   string     `help:"The kind of traffic." json:"traffic"`
	Rate      string     `help:"The mean rate of each key." json:"rate"`
	Keys      int64      `help:"The number of keys." json:"keys"`
	Seed      uint64     `help:"The seed of the traffic." json:"seed"`
	Seconds   float64    `help:"The length of the run in virtual time." json:"seconds"`
	Partial   bool       `help:"Whether the run was ended before its end." json:"partial"`
	Results   []*Result  `help:"What each algorithm did." json:"results"`
	Estimates []Estimate `help:"How far the counts of windows are from the exact count." json:"estimates"`

	curves map[string]*curve
}

// contender is an algorithm of a comparison.
type contender struct {
	algorithm  headgate.Algorithm
	subWindows int64
}

// exactly is the algorithm that counts exactly, with which the others are compared.
//
//nolint:gochecknoglobals // because it is a constant.
var exactly = contender{algorithm: headgate.SlidingLog}

// ofExact is the head of the column that compares with it.
const ofExact = "OF SLIDING_LOG"

func (c contender) name() string {
	if c.algorithm == headgate.SlidingWindow {
		return c.algorithm.String() + " N=" + strconv.FormatInt(c.subWindows, 10)
	}
	return c.algorithm.String()
}

// contenders lists the algorithms, sliding_window once for each N.
func (c *Comparison) contenders() (all []contender) {
	for _, a := range c.Algorithms {
		if a != headgate.SlidingWindow {
			all = append(all, contender{a, 0})
			continue
		}
		for _, n := range c.SubWindows {
			all = append(all, contender{a, n})
		}
	}
	return all
}

// estimated lists the algorithms that estimate a window.
func estimated(all []contender) (some []contender) {
	for _, c := range all {
		if c.algorithm == headgate.SlidingWindow || c.algorithm == headgate.FixedWindow {
			some = append(some, c)
		}
	}
	return some
}

// start is a time at which windows of any usual length begin: midnight, on a Thursday as the Unix epoch.
const start = headgate.Instant(1_700_092_800 / 604_800 * 604_800 * int64(time.Second))

// scenario returns the traffic of a comparison.
func (c *Comparison) scenario() *Scenario {
	keys := max(c.Keys, 1)
	return &Scenario{Seed: c.Seed, Length: c.Length, Groups: []Group{{
		Name: "client", Clients: 1, Keys: keys, Zipf: c.Zipf, Traffic: c.Traffic, Rate: Rate{c.Rate.Count * keys, c.Rate.Per},
		Jitter: c.Jitter, Method: "GET", Path: "/",
	}}}
}

// configuration returns the configuration of one limit.
func configuration(k contender, l headgate.Limit, cost int64) (*config.Config, error) {
	text := "version: 1\nmax_memory: 16TiB\nrules: [{name: limit, key: [ip], algorithm: " + k.algorithm.String() +
		fmt.Sprintf(", limits: [%q]", l.String())
	if k.subWindows > 0 {
		text += fmt.Sprintf(", sub_windows: %d", k.subWindows)
	}
	if l.Burst > 0 && (k.algorithm == headgate.TokenBucket || k.algorithm == headgate.LeakyBucket) {
		text += fmt.Sprintf(", burst: %d", l.Burst)
	}
	if cost > 1 {
		text += fmt.Sprintf(", cost: %d", cost)
	}
	return config.Parse("limit", []byte(text+"}]\n"))
}

// Compare runs the traffic once for each algorithm. If ctx ends, the result is partial.
func Compare(ctx context.Context, c *Comparison) (*Compared, error) {
	all := c.contenders()
	gauges := estimated(all)
	done := &Compared{
		Limit: c.Limit.String(), Traffic: c.Traffic, Keys: max(c.Keys, 1),
		Rate: headgate.Limit{Count: c.Rate.Count, Per: c.Rate.Per}.String(),
		Seed: c.Seed, Seconds: c.Length.Seconds(), Results: []*Result{}, Estimates: []Estimate{}, curves: map[string]*curve{},
	}
	steps := stepper{c.Tell, 1 + len(all) + len(gauges), 0, 0}
	exact, whole, err := c.decide(ctx, exactly, &steps)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		r := exact
		if k != exactly {
			var full bool
			if r, full, err = c.decide(ctx, k, &steps); err != nil {
				return nil, err
			}
			whole = whole && full
		}
		r.OfLog = exact.Admitted
		done.Results = append(done.Results, r)
	}
	for _, k := range gauges {
		e, full, err := c.estimate(ctx, k, &steps, done.curves)
		if err != nil {
			return nil, err
		}
		done.Estimates, whole = append(done.Estimates, e), whole && full
	}
	done.Partial = !whole
	return done, nil
}

// stepper tells the progress of several runs.
type stepper struct {
	tell        func(requests int64, done float64)
	runs, ended int
	sent        int64
}

func (s *stepper) run(d *driver) {
	if s.tell == nil {
		return
	}
	d.tell = func(sent int64, done float64) { s.tell(s.sent+sent, (float64(s.ended)+done)/float64(s.runs)) }
}

func (s *stepper) end(d *driver) {
	s.ended++
	s.sent += d.sent
}

// decide runs one algorithm.
func (c *Comparison) decide(ctx context.Context, k contender, steps *stepper) (*Result, bool, error) {
	parsed, err := configuration(k, c.Limit, 0)
	if err != nil {
		return nil, false, err
	}
	s := c.scenario()
	e, err := engine.New(parsed, engine.Options{Start: start, Seed: c.Seed, Keys: s.keys(), WithoutDurations: true})
	if err != nil {
		return nil, false, err
	}
	j := newJudge(c.Limit, s.keys())
	d, err := newDriver(s, e, j)
	if err != nil {
		return nil, false, err
	}
	steps.run(d)
	whole, err := d.run(ctx)
	if err != nil {
		return nil, false, err
	}
	steps.end(d)
	r := j.finish(k.algorithm, e)
	r.Reached = min(e.Now().Sub(start).Seconds(), c.Length.Seconds())
	r.Algorithm, r.SubWindows, r.KeyBytes = k.algorithm.String(), k.subWindows, parsed.Needs()[0].Bytes()
	if c.Measure && whole {
		r.NanosecondsPerDecision, err = measure(parsed, s)
	}
	return r, whole, err
}

// estimate runs one algorithm that counts and refuses nothing.
func (c *Comparison) estimate(ctx context.Context, k contender, steps *stepper, curves map[string]*curve) (Estimate, bool, error) {
	parsed, err := configuration(k, headgate.Limit{Count: estimateCount, Per: c.Limit.Per}, estimateCost)
	if err != nil {
		return Estimate{}, false, err
	}
	s := c.scenario()
	e, err := engine.New(parsed, engine.Options{Start: start, Seed: c.Seed, Keys: s.keys(), WithoutDurations: true})
	if err != nil {
		return Estimate{}, false, err
	}
	g := &gauge{per: int64(c.Limit.Per), exact: make([]window, s.keys()), curve: newCurve(start, c.Limit.Per, c.Length)}
	d, err := newDriver(s, e, g)
	if err != nil {
		return Estimate{}, false, err
	}
	steps.run(d)
	whole, err := d.run(ctx)
	if err != nil {
		return Estimate{}, false, err
	}
	steps.end(d)
	curves[k.name()] = g.curve
	return Estimate{k.algorithm.String(), k.subWindows, g.errors.mean(), g.errors.percentile(0.99), g.errors.n > 0}, whole, nil
}
