package replay

import (
	"fmt"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/lab/engine"
	"github.com/headgate/headgate/cmd/internal/lab/replay/tally"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// clientOwner is the owner of the counts by the address of the client.
const clientOwner = -1

// trial decides a log by one configuration, and counts.
type trial struct {
	config  *config.Config // with the rules that are decided
	leftOut []string
	engine  *engine.Engine
	needs   rule.Needs
	columns columns
	// costHeaders are the headers in which requests state a cost. settles: a rule reads the cost at the end.
	costHeaders map[string]bool
	settles     bool
	holds       bool // a request may wait
	// light counts no keys. It is for the other extreme of whole seconds.
	light bool
	// then gets each decision, after it was counted; nil for none.
	then func(*call)

	keys     *tally.Keys
	rules    []ruleCounts
	counts   counts
	timeline tally.Timeline
	free     *call
	text     []byte
}

// counts are those of all requests.
type counts struct {
	Requests, Refused, Waited, Degraded, Exempt, Unmatched int64
	// Several were refused by more than one rule.
	Several int64
	Invalid [invalidCount]int64
	Reasons [headgate.ReasonCount]int64
	// Logged compares with the verdicts in the log: refused there or not, refused here or not.
	Logged [2][2]int64
}

// ruleCounts are those of one rule, or of a stage.
type ruleCounts struct {
	rule *guard.Rule // nil before the first request
	// Requests matched. Refused were refused by the rule, and First by it as the first rule of the file.
	// Degraded passed over a limit.
	Requests, Refused, First, Degraded int64
	Reasons                            [headgate.ReasonCount]int64
}

// newTrial makes the engine for a configuration.
func newTrial(c *config.Config, parts []string, o engine.Options) (*trial, error) {
	e, err := engine.New(c, o)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	t := &trial{
		config: c, engine: e, leftOut: e.LeftOut(), columns: columnsOf(parts), needs: e.Guard().Needs(),
		costHeaders: map[string]bool{}, keys: tally.NewKeys(0), rules: make([]ruleCounts, len(c.Rules)+1),
		holds: c.Throttle != nil,
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.CostHeader != "" {
			t.costHeaders[r.CostHeader] = true
		}
		t.settles = t.settles || r.Settle != ""
		t.holds = t.holds || r.Exceed.Action == guard.Delay
		for _, p := range r.AllPolicies() {
			t.holds = t.holds || p.Algorithm == headgate.LeakyBucket
		}
	}
	if c.FairShare != nil && c.FairShare.CostHeader != "" {
		t.costHeaders[c.FairShare.CostHeader] = true
	}
	t.rules[len(c.Rules)].rule = nil // The last entry has fair share and stages.
	return t, nil
}

// arrive decides a request at a time, which is not before the times of earlier requests.
func (t *trial) arrive(at headgate.Instant, r *record) {
	c := t.free
	if c == nil {
		c = &call{trial: t}
		c.Decided = func(*engine.Attempt) { t.decided(c) }
		c.Ended = func(*engine.Attempt) { c.next, t.free = t.free, c }
	} else {
		t.free = c.next
	}
	parts := c.record.Parts[:0]
	parts = append(parts, r.Parts...)
	c.record, c.at = *r, at
	if c.record.Parts = parts; t.holds {
		c.record.keep()
	}
	t.counts.Requests++
	c.number, c.refused, c.refuser = t.counts.Requests, false, nil
	t.engine.Advance(at)
	if why := c.fill(t.needs); why != valid {
		t.countInvalid(c, why)
		c.Ended(&c.Attempt)
		return
	}
	c.Lasts, c.Outcome = max(0, r.Duration), c.outcome()
	t.engine.Arrive(&c.Attempt)
}

// countInvalid counts a request that a front answers with 400.
func (t *trial) countInvalid(c *call, why invalid) {
	t.counts.Invalid[why]++
	t.timeline.Add(c.at, false)
	if t.then != nil {
		t.then(c)
	}
}

// decided counts a decision.
func (t *trial) decided(c *call) {
	if c.Err != nil {
		t.countInvalid(c, badCost)
		return
	}
	a := &c.Answer
	c.refused = c.Verdict == headgate.Deny
	t.timeline.Add(c.at, c.refused)
	switch {
	case a.Exempt:
		t.counts.Exempt++
	case len(a.Results) == 0:
		t.counts.Unmatched++
	}
	refusals := 0
	for from := 0; from < len(a.Results); {
		to := from + 1
		for to < len(a.Results) && a.Results[to].Rule == a.Results[from].Rule {
			to++
		}
		if r := t.countRule(c, a.Results[from:to]); r != nil && r.Enforced() {
			if refusals++; c.refuser == nil {
				c.refuser = r
			}
		}
		from = to
	}
	if t.countVerdict(c, refusals); !c.refused && slices.ContainsFunc(a.Results, degraded) {
		t.counts.Degraded++
	}
	t.countClient(c)
	if t.then != nil {
		t.then(c)
	}
}

// countVerdict counts what becomes of a request. A refusal belongs to the first rule of the file that refused.
func (t *trial) countVerdict(c *call, refusals int) {
	if c.record.Verdict != "" {
		t.counts.Logged[index(c.record.Verdict == headgate.Deny.String())][index(c.refused)]++
	}
	if c.Waited > 0 && !c.refused {
		t.counts.Waited++
	}
	if !c.refused {
		c.refuser = nil // A rule that lets requests pass with a mark.
		return
	}
	t.counts.Refused++
	if refusals > 1 {
		t.counts.Several++
	}
	if c.refuser == nil {
		c.refuser = c.Answer.Closest()
	}
	if r := c.refuser; r != nil {
		t.counts.Reasons[r.Decision.Reason]++
		counts := &t.rules[t.at(r)]
		counts.First++
		counts.Reasons[r.Decision.Reason]++
	}
}

func degraded(r guard.Result) bool { return r.Decision.Reason == headgate.Degraded }

func index(is bool) int {
	if is {
		return 1
	}
	return 0
}

// at is the position of the rule of a result among the counts.
func (t *trial) at(r *guard.Result) int {
	if r.Stage != "" || r.Number >= len(t.rules)-1 {
		return len(t.rules) - 1
	}
	return r.Number
}

// countRule counts the results of one rule. It returns the one that refused, or nil.
func (t *trial) countRule(c *call, results []guard.Result) (refusal *guard.Result) {
	r := &results[0]
	n := t.at(r)
	counts := &t.rules[n]
	if counts.rule == nil {
		counts.rule = r.Rule
	}
	counts.Requests++
	for i := range results {
		if results[i].Decision.Verdict == headgate.Deny {
			refusal = &results[i]
			counts.Refused++
			break
		}
	}
	if slices.ContainsFunc(results, degraded) {
		counts.Degraded++
	}
	if !t.light && r.Stage == "" {
		t.countKey(c, n, results, refusal != nil)
	}
	return refusal
}

// countKey counts the results of one rule by their key.
func (t *trial) countKey(c *call, n int, results []guard.Result, refused bool) {
	r := &results[0]
	t.text = r.AppendRawKey(t.text[:0])
	key := t.keys.Find(n, t.text, len(r.Rule.Policies))
	if key == nil {
		return
	}
	key.Requests++
	if refused {
		if key.Refused++; key.Refused == 1 {
			key.First = c.at
		}
	}
	units := unitsOf(c, r)
	if len(r.Rule.Count) > 0 && c.record.Status != 0 && !slices.Contains(r.Rule.Count, c.record.Status) {
		units = 0 // The rule returns the units at the end.
	}
	for i := range results {
		t.rise(key, r.Rule, &results[i], c.at, units)
	}
}

// unitsOf is the cost of a request under a rule, as far as the decision shows it.
func unitsOf(c *call, r *guard.Result) int64 {
	switch {
	case r.Decision.Receipt.Cost > 0:
		return r.Decision.Receipt.Cost
	case r.Rule.CostHeader != "" && c.record.Cost > 0:
		return c.record.Cost
	default:
		return max(1, r.Rule.Cost)
	}
}

// countClient counts a request by the address of its client.
func (t *trial) countClient(c *call) {
	if t.light || !c.record.Client.IsValid() {
		return
	}
	address := c.record.Client.As16()
	key := t.keys.Find(clientOwner, address[:], 0)
	if key == nil {
		return
	}
	key.Requests++
	if c.refused {
		key.Refused++
	}
}

// finish lets waiting requests depart.
func (t *trial) finish() { t.engine.Finish() }
