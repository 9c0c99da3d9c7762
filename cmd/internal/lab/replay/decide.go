package replay

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/replay/order"
	"github.com/headgate/headgate/internal/config"
)

// Run replays the logs and reports. When ctx ends, the report has what was read until then, and is marked as partial.
func Run(ctx context.Context, o *Options) (*Report, error) {
	p := &replay{options: o}
	configs := []*config.Config{o.Config}
	if o.Against != nil {
		configs = append(configs, o.Against)
	}
	r, err := newRun(o, configs...)
	if err != nil {
		return nil, err
	}
	p.run = r
	r.begin, r.deliver = p.begin, p.deliver
	if o.Within == Together {
		p.other = Spread
	} else {
		p.other = Together
	}
	err = r.all(ctx)
	partial := ctx.Err() != nil
	if p.first == nil || err != nil && !partial {
		return nil, err
	}
	err = nil
	p.finish()
	report := p.report()
	report.Partial = partial
	if o.Suggest > 0 && !partial {
		report.Suggestions, err = suggest(ctx, p)
	}
	return report, err
}

// replay decides the requests of one pass by one or two configurations.
type replay struct {
	options *Options
	run     *run
	first   *trial
	against *trial // nil for none
	compare *comparison
	// twin decides with the other times of whole seconds, for limits under a minute; nil for none.
	twin  *trial
	other Within
	err   error // of Refused
}

// begin makes the engines.
func (p *replay) begin(r *run) error {
	start := r.window.First()
	var err error
	if p.first, err = p.trial(0, p.options.Config, p.options.Name, start); err != nil {
		return err
	}
	if p.options.Refused != nil {
		p.first.then = p.tellRefused
	}
	if p.options.Against != nil {
		if p.against, err = p.trial(1, p.options.Against, p.options.AgainstName, start); err != nil {
			return err
		}
		p.compare = newComparison(p.first, p.against)
	}
	if r.facts.whole > 0 && shortest(p.first.config) < time.Minute {
		if p.twin, err = newTrial(p.first.config, logged(r.parts), r.engineOptions(start)); err != nil {
			return err
		}
		p.twin.light = true
	}
	return nil
}

func (p *replay) trial(n int, c *config.Config, name string, start headgate.Instant) (*trial, error) {
	own, leftOut, err := p.run.runnable(n, c, name)
	if err != nil {
		return nil, err
	}
	t, err := newTrial(own, logged(p.run.parts), p.run.engineOptions(start))
	if err != nil {
		return nil, UsageError{err}
	}
	t.leftOut = append(leftOut, t.leftOut...)
	return t, nil
}

// deliver decides a request.
func (p *replay) deliver(line *order.Line, r *record) error {
	at, other := line.Spread, line.Together
	if p.options.Within == Together {
		at, other = other, at
	}
	p.first.arrive(at, r)
	if p.against != nil {
		p.against.arrive(at, r)
	}
	if p.twin != nil {
		p.twin.arrive(other, r)
	}
	return p.err
}

func (p *replay) finish() {
	for _, t := range [...]*trial{p.first, p.against, p.twin} {
		if t != nil {
			t.finish()
		}
	}
}

// shortest is the shortest period of the limits of a configuration.
func shortest(c *config.Config) time.Duration {
	least := time.Duration(1<<63 - 1)
	for i := range c.Rules {
		for _, p := range c.Rules[i].AllPolicies() {
			least = min(least, p.Limit.Length())
		}
	}
	if c.FairShare != nil {
		least = min(least, c.FairShare.Cycle)
	}
	return least
}
