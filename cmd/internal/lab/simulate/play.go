package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/internal/config"
)

// Played is what a configuration did with a scenario.
type Played struct {
	Seed      uint64         `help:"The seed of the traffic." json:"seed"`
	Seconds   float64        `help:"The length of the run in virtual time." json:"seconds"`
	Partial   bool           `help:"Whether the run was ended before its end." json:"partial"`
	Reached   float64        `help:"The virtual time that was played, in seconds." json:"reached"`
	LeftOut   []string       `help:"What of the configuration was not decided." json:"left_out"`
	Evictions uint64         `help:"Counters that were dropped because the memory was full." json:"evictions"`
	Groups    []*GroupResult `help:"What happened to the requests of each group." json:"groups"`
	Refusals  []*Refusals    `help:"Refusals by rule and reason. Of several rules, the first in the file counts." json:"refusals"`
	Spared    []*Refusals    `help:"Requests that a rule in shadow would have refused, or that a rule degraded." json:"spared"`
	Timeline  []Moment       `help:"The run in equal parts." json:"timeline"`

	NanosecondsPerDecision float64 `help:"With --measure: the time of a decision here." json:"nanoseconds_per_decision,omitempty"`
}

// GroupResult is what happened to a group.
type GroupResult struct {
	Name     string  `help:"The name of the group." json:"name"`
	Requests int64   `help:"Requests that arrived, with those that came back after a refusal." json:"requests"`
	Admitted int64   `help:"Requests that passed." json:"admitted"`
	Refused  int64   `help:"Requests that were refused." json:"refused"`
	Waited   int64   `help:"Requests that passed after a wait." json:"waited"`
	MeanWait float64 `help:"The mean wait of those that waited, in seconds." json:"mean_wait"`
	MostWait float64 `help:"The longest wait, in seconds." json:"most_wait"`

	waits time.Duration
}

// Refusals are those of one rule, or of fair share or throttle, for one reason.
type Refusals struct {
	By     string `help:"The rule, fair_share, or the stage that refused." json:"by"`
	Reason string `help:"The reason of the decision." json:"reason"`
	Count  int64  `help:"The number of refusals." json:"count"`
}

// Moment is a part of a run.
type Moment struct {
	Second   float64 `help:"The beginning of the part, in seconds from the start." json:"second"`
	Requests int64   `help:"Requests that arrived." json:"requests"`
	Admitted int64   `help:"Requests that were admitted." json:"admitted"`
}

// moments is the number of parts of a timeline.
const moments = 200

// tally is the watcher of Play.
type tally struct {
	*Played

	start  headgate.Instant
	length time.Duration
}

func (t *tally) moment(now headgate.Instant) *Moment {
	i := int(float64(now.Sub(t.start)) / float64(t.length) * moments)
	return &t.Timeline[min(max(i, 0), moments-1)]
}

func (t *tally) arrived(c *call, now headgate.Instant) {
	t.Groups[c.group.number].Requests++
	t.moment(now).Requests++
}

func (t *tally) decided(c *call, now headgate.Instant) {
	g := t.Groups[c.group.number]
	t.spare(c)
	if c.Verdict == headgate.Allow {
		g.Admitted++
		t.moment(now).Admitted++
		if c.Waited > 0 {
			g.Waited++
			g.waits += c.Waited
			g.MostWait = max(g.MostWait, c.Waited.Seconds())
		}
		return
	}
	g.Refused++
	by, reason := "the guard", "invalid"
	if c.Err == nil {
		by, reason = refusedBy(c)
	}
	count(&t.Refusals, by, reason)
}

// count counts a request by a rule and a reason.
func count(all *[]*Refusals, by, reason string) {
	for _, r := range *all {
		if r.By == by && r.Reason == reason {
			r.Count++
			return
		}
	}
	*all = append(*all, &Refusals{by, reason, 1})
}

// spare counts what rules in shadow would have refused, and what rules degraded: once for each rule.
func (t *tally) spare(c *call) {
	last := ""
	for i := range c.Answer.Results {
		r := &c.Answer.Results[i]
		shadow := !r.Enforced() && r.Decision.Verdict == headgate.Deny
		if !shadow && r.Decision.Reason != headgate.Degraded || r.Rule == nil {
			continue
		}
		name := nameOf(r.Stage, r.Policy, r.Rule.Name)
		if name == last {
			continue // Another limit of the same rule.
		}
		last = name
		if shadow {
			count(&t.Spared, name, "shadow: "+r.Decision.Reason.String())
			continue
		}
		count(&t.Spared, name, r.Decision.Reason.String())
	}
}

// refusedBy names the first rule that refused a request, and its reason.
func refusedBy(c *call) (by, reason string) {
	for i := range c.Answer.Results {
		if r := &c.Answer.Results[i]; r.Enforced() && r.Decision.Verdict == headgate.Deny {
			return nameOf(r.Stage, r.Policy, r.Rule.Name), r.Decision.Reason.String()
		}
	}
	if r := c.Answer.Closest(); r != nil {
		name := ""
		if r.Rule != nil {
			name = r.Rule.Name
		}
		return nameOf(r.Stage, r.Policy, name), r.Decision.Reason.String()
	}
	return "the guard", "refused"
}

func nameOf(stage, policy, rule string) string {
	switch {
	case stage != "":
		return stage
	case rule != "":
		return rule
	default:
		return policy
	}
}

// Play runs a scenario against a configuration. If ctx ends, the result is partial.
func Play(ctx context.Context, c *config.Config, s *Scenario, tell func(requests int64, done float64)) (*Played, error) {
	e, err := engine.New(c, engine.Options{Start: start, Seed: s.Seed, Keys: s.keys()})
	if err != nil {
		return nil, err
	}
	p := &Played{
		Seed: s.Seed, Seconds: s.Length.Seconds(), LeftOut: append([]string{}, e.LeftOut()...),
		Refusals: []*Refusals{}, Spared: []*Refusals{},
	}
	for i := range s.Groups {
		p.Groups = append(p.Groups, &GroupResult{Name: s.Groups[i].Name})
	}
	p.Timeline = make([]Moment, moments)
	for i := range p.Timeline {
		p.Timeline[i].Second = s.Length.Seconds() * float64(i) / moments
	}
	d, err := newDriver(s, e, &tally{p, start, s.Length})
	if err != nil {
		return nil, err
	}
	d.tell = tell
	whole, err := d.run(ctx)
	if err != nil {
		return nil, err
	}
	p.Partial, p.Evictions = !whole, e.Evictions()
	p.Reached = min(e.Now().Sub(start).Seconds(), p.Seconds)
	for _, g := range p.Groups {
		g.MeanWait = (g.waits / time.Duration(max(g.Waited, 1))).Seconds()
	}
	slices.SortStableFunc(p.Refusals, func(a, b *Refusals) int { return int(b.Count - a.Count) })
	return p, nil
}
