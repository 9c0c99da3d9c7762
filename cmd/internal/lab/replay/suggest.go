package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/replay/order"
	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/rule"
)

const (
	// maxCandidates bounds the Counts of one limit that a pass tries, and maxTried those of all limits. Each is a rule of the engine.
	maxCandidates = 8
	maxTried      = 64
	// maxPasses bounds the passes: 8 Counts in a pass find one of 10^9 in 10 passes. More passes happen only if a limit with a higher
	// Count refuses more, which no algorithm does for long.
	maxPasses = 40
)

// Suggestion has the smallest limits that refuse at most a part of the keys, or of the requests. Each limit is alone: no other limit
// refuses requests before.
type Suggestion struct {
	Rule      string `json:"rule"`
	Limit     string `json:"limit"`
	Algorithm string `json:"algorithm"`
	// Percent is the bound.
	Percent float64 `json:"percent"`
	// Keys and Requests are those that the limit decides: those without an override.
	Keys     int64 `json:"keys"`
	Requests int64 `json:"requests"`
	// ForKeys refuses at most Percent of the keys, and ForRequests at most Percent of the requests; nil if none was found.
	ForKeys     *Suggested `json:"for_keys,omitempty"`
	ForRequests *Suggested `json:"for_requests,omitempty"`
	// Without lists what of the rule the suggestion leaves aside: overrides with their keys, ban, soft, in_flight and on_exceed.
	Without []string `json:"without,omitempty"`
	// LeftOut says why there is no suggestion.
	LeftOut string `json:"left_out,omitempty"`
}

// Suggested is a limit, and what it refused in a replay of the whole log.
type Suggested struct {
	Count           int64  `json:"count"`
	Limit           string `json:"limit"`
	RefusedKeys     int64  `json:"refused_keys"`
	RefusedRequests int64  `json:"refused_requests"`
	// Invalid says why the rule cannot have this limit without another change.
	Invalid string `json:"invalid,omitempty"`
}

// effect is what a Count did in a replay.
type effect struct{ keys, requests int64 }

// target is a limit for which Counts are tried.
type target struct {
	rule   *guard.Rule
	limit  int
	report *Suggestion
	most   int64 // the highest peak
	guess  int64 // by the peaks
	// tried has the effects of Counts.
	tried map[int64]effect
	// bounds are those of keys and of requests.
	bounds [2]bracket
}

// bracket is between the highest Count that refuses too many and the lowest that does not; high is 0 while none is known.
type bracket struct{ low, high int64 }

func (b bracket) done() bool { return b.high > 0 && b.high-b.low <= 1 }

// suggest searches the limits for which at most a part of the keys or of the requests is refused.
func suggest(ctx context.Context, p *replay) (all []Suggestion, err error) {
	reports, targets := p.targets()
	for from := 0; from < len(targets); from += maxTried / maxCandidates {
		batch := targets[from:min(len(targets), from+maxTried/maxCandidates)]
		for pass := 1; pass <= maxPasses; pass++ {
			counts := make([][]int64, len(batch))
			left := false
			for i, t := range batch {
				counts[i] = t.candidates()
				left = left || len(counts[i]) > 0
			}
			if !left {
				break
			}
			if err := p.try(ctx, batch, counts, fmt.Sprintf("suggest, pass %d", pass)); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range targets {
		t.report.ForKeys, t.report.ForRequests = t.suggested(0), t.suggested(1)
	}
	for _, own := range reports {
		all = append(all, *own)
	}
	return all, nil
}

// targets lists the limits that suggestions are made for.
func (p *replay) targets() (reports []*Suggestion, targets []*target) {
	t := p.first
	for n := range t.config.Rules {
		r := &t.config.Rules[n]
		if r.Mode == guard.Off {
			continue
		}
		keys := t.keys.Of(n)
		if len(r.Policies) == 0 {
			reports = append(reports, &Suggestion{Rule: r.Name, Percent: p.options.Suggest, LeftOut: limitless(r)})
		}
		for i := range r.Policies {
			report := &Suggestion{
				Rule: r.Name, Limit: r.Policies[i].Limit.String(), Algorithm: r.Policies[i].Algorithm.String(),
				Percent: p.options.Suggest, Keys: int64(len(keys)) * t.keys.Sample(), Requests: t.rules[n].Requests, Without: without(r),
			}
			reports = append(reports, report)
			peaks := guesses(keys, i, &r.Policies[i])
			if len(peaks) == 0 {
				report.Keys, report.Requests = 0, 0
			}
			if report.LeftOut = leftOut(r, keys, peaks); report.LeftOut != "" {
				continue
			}
			refused := int(p.options.Suggest / 100 * float64(len(peaks)))
			targets = append(targets, &target{
				rule: r, limit: i, report: report, most: max(1, peaks[len(peaks)-1]), guess: max(1, peaks[len(peaks)-1-refused]),
				tried: map[int64]effect{},
			})
		}
	}
	return reports, targets
}

// guesses returns the peaks of the keys that a limit decides, in their order. A calendar limit has no peaks: the requests of a key
// stand for them.
func guesses(keys []*tally.Key, limit int, policy *headgate.Policy) (peaks []int64) {
	for _, k := range keys {
		peak := k.Peak(limit)
		if policy.Limit.Calendar != headgate.NoCalendar {
			peak = k.Requests
		}
		if peak >= 0 {
			peaks = append(peaks, peak)
		}
	}
	slices.Sort(peaks)
	return peaks
}

// without lists what of a rule the trials of its limits leave aside.
func without(r *guard.Rule) (all []string) {
	for _, own := range [...]struct {
		text string
		has  bool
	}{
		{"overrides and their keys", len(r.Overrides) > 0},
		{"ban", r.Ban.For > 0},
		{"soft", r.Soft > 0},
		{"in_flight", r.InFlight > 0},
		{"on_exceed", r.Exceed.Action != guard.Reject},
	} {
		if own.has {
			all = append(all, own.text)
		}
	}
	return all
}

// limitless says why a rule without limits has no suggestion.
func limitless(r *guard.Rule) string {
	switch {
	case r.Quota != "":
		return "the limits are those of plans"
	case r.Ban.For > 0:
		return "the rule has a ban and no limit, and suggestions are for limits"
	default:
		return "the rule has no limit"
	}
}

// leftOut says why there is no suggestion for a limit of a rule.
func leftOut(r *guard.Rule, keys []*tally.Key, peaks []int64) string {
	switch {
	case r.Quota != "":
		return "the limits are those of plans"
	case r.Group != "":
		return "the rule is one of a group, and decides what the others leave"
	case r.LimitsFrom.Value != (rule.Part{}):
		return "requests state their limits, by limits_from"
	case len(keys) == 0:
		return "no request matched"
	case len(peaks) == 0:
		return "each key has an override"
	default:
		return ""
	}
}

// candidates returns the Counts to try next.
func (t *target) candidates() []int64 {
	var all []int64
	add := func(counts ...int64) {
		for _, n := range counts {
			if _, known := t.tried[n]; !known && n > 0 && n <= headgate.MaxUnits {
				all = append(all, n)
			}
		}
	}
	for kind := range t.bounds {
		b := &t.bounds[kind]
		switch {
		case b.done():
		case len(t.tried) == 0:
			add(t.guess-1, t.guess, t.guess+1, t.most)
		case b.high == 0:
			add(2 * b.low)
		default:
			const parts = maxCandidates/2 + 1
			for i := int64(1); i < parts; i++ {
				add(b.low + (b.high-b.low)*i/parts)
			}
			add(b.low + 1)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxCandidates)]
}

// narrow takes the effect of a Count.
func (t *target) narrow(count int64, e effect) {
	t.tried[count] = e
	for kind, over := range [...]bool{
		float64(e.keys)*100 > t.report.Percent*float64(t.report.Keys),
		float64(e.requests)*100 > t.report.Percent*float64(t.report.Requests),
	} {
		b := &t.bounds[kind]
		switch {
		case over && count > b.low:
			if b.low = count; b.high > 0 && b.high <= count { // A higher Count refuses more: the Count must grow.
				b.high = 0
			}
		case !over && count > b.low && (b.high == 0 || count < b.high):
			b.high = count
		}
	}
}

// suggested returns the limit of a finished search.
func (t *target) suggested(kind int) *Suggested {
	b := t.bounds[kind]
	if !b.done() {
		return nil
	}
	own := t.rule.Policies[t.limit].Limit
	own.Count = b.high
	e := t.tried[b.high]
	return &Suggested{b.high, own.String(), e.keys, e.requests, t.invalid(b.high)}
}

// invalid says why the ban of the rule does not allow a Count.
func (t *target) invalid(count int64) string {
	after, policy := t.rule.Ban.After, t.rule.Policies[t.limit]
	policy.Limit.Count = count
	if t.rule.Ban.For == 0 || !after.HasPeriod() {
		return ""
	}
	most := max(limit.Room(policy), count) / max(t.rule.Cost, 1)
	switch {
	case t.rule.BansAnswers():
		if policy.Limit.Length() >= after.Per && most < after.Count && t.rule.Exceed.Action != guard.Degrade {
			return fmt.Sprintf("ban.after %s then never bans: use at most %s", after, headgate.Limit{Count: max(most, 1), Per: after.Per})
		}
	case after.Per >= policy.Limit.Length() && after.Count < most:
		return fmt.Sprintf("ban.after %s then bans clients that keep to the limit: use at least %s", after,
			headgate.Limit{Count: most, Per: after.Per})
	}
	return ""
}

// try replays the logs with all candidates, each as a rule that counts on its own.
func (p *replay) try(ctx context.Context, batch []*target, counts [][]int64, step string) error {
	options := *p.options
	if before := options.Progress; before != nil {
		options.Progress = func(made Progress) {
			made.Step = step
			before(made)
		}
	}
	r, err := newRun(&options, p.options.Config)
	if err != nil {
		return err
	}
	c := &candidates{batch: batch, counts: counts, within: p.options.Within, keys: tally.NewKeys(p.options.KeyMemory)}
	own := c.config(p.first.config)
	r.begin = func(r *run) error {
		c.trial, err = newTrial(own, logged(r.parts), r.engineOptions(r.window.First()))
		if err != nil {
			return UsageError{err}
		}
		c.trial.light, c.trial.then = true, c.count
		return nil
	}
	r.deliver = c.deliver
	if err := r.all(ctx); err != nil {
		return err
	}
	c.trial.finish()
	c.narrow()
	return nil
}

// candidates are the rules of one pass.
type candidates struct {
	batch  []*target
	counts [][]int64
	within Within
	trial  *trial
	keys   *tally.Keys
	places []place // by the number of the rule
	// requests are those that the limit of each target decided.
	requests []int64
	text     []byte
}

// place is the target and the position of a candidate.
type place struct {
	target, position int
	requests         int64 // that it refused
}

// config makes the rules of the candidates. Their names have one length, so that the rest of their keys is equal.
func (c *candidates) config(from *config.Config) *config.Config {
	own := *from
	own.Rules, own.Independent, own.FairShare, own.Throttle = nil, true, nil, nil
	c.requests = make([]int64, len(c.batch))
	for n, t := range c.batch {
		for i, count := range c.counts[n] {
			r := *t.rule
			r.Name = fmt.Sprintf("candidate-%02d", len(own.Rules))
			policy := r.Policies[t.limit]
			policy.Limit.Count = count
			r.Policies = []headgate.Policy{policy}
			r.Mode, r.Exceed, r.Ban, r.InFlight, r.Soft = guard.Enforce, guard.Exceed{}, guard.Ban{}, 0, 0
			r.Overrides = slices.Clone(r.Overrides)
			for o := range r.Overrides {
				r.Overrides[o].Policies, r.Overrides[o].Unlimited = nil, true
			}
			own.Rules = append(own.Rules, r)
			c.places = append(c.places, place{target: n, position: i})
		}
	}
	return &own
}

// deliver decides a request.
func (c *candidates) deliver(line *order.Line, r *record) error {
	at := line.Spread
	if c.within == Together {
		at = line.Together
	}
	c.trial.arrive(at, r)
	return nil
}

// count takes the decisions of all candidates on a request.
func (c *candidates) count(made *call) {
	var key *tally.Key
	last := -1
	for i := range made.Answer.Results {
		r := &made.Answer.Results[i]
		if r.Stage != "" || r.Number >= len(c.places) {
			continue
		}
		place := &c.places[r.Number]
		if place.target != last {
			last = place.target
			c.requests[last]++
			c.text = r.AppendRawKey(c.text[:0])
			key = c.keys.Find(last, c.text[min(len(c.text), 1+len(r.Rule.Name)):], 0)
		}
		if r.Decision.Verdict != headgate.Deny {
			continue
		}
		place.requests++
		if key != nil {
			key.Marks |= 1 << place.position
		}
	}
}

// narrow gives the effects to the targets.
func (c *candidates) narrow() {
	effects := make([]effect, len(c.places))
	for n, t := range c.batch {
		if len(c.counts[n]) == 0 {
			continue
		}
		t.report.Keys, t.report.Requests = int64(len(c.keys.Of(n)))*c.keys.Sample(), c.requests[n]
		for _, key := range c.keys.Of(n) {
			for i := range c.places {
				if c.places[i].target == n && key.Marks>>c.places[i].position&1 == 1 {
					effects[i].keys += c.keys.Sample()
				}
			}
		}
	}
	for i := range c.places {
		effects[i].requests = c.places[i].requests
		t := c.batch[c.places[i].target]
		t.narrow(c.counts[c.places[i].target][c.places[i].position], effects[i])
	}
}
