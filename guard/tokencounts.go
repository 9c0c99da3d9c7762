package guard

import (
	"sync/atomic"

	"github.com/headgate/headgate/internal/tokens"
)

// tokenCounts counts what the answers of one rule state.
type tokenCounts struct {
	input, cached, written, output atomic.Uint64
	estimated, actual              atomic.Uint64
	stopped                        atomic.Uint64
	causes                         [causes]atomic.Uint64
}

// causes is the number of causes. Those of package tokens begin with 0.
const causes = int(tokens.Slow) + 1

// Tokens are what the answers to the requests of one rule with SettleBody have stated, in this process.
type Tokens struct {
	// Input, Cached, Written and Output are tokens by kind. Input is without Cached and Written.
	Input, Cached, Written, Output uint64
	// Estimated are the units that requests took before their answers, and Actual the real cost of the same requests: those whose
	// answers stated the cost.
	Estimated, Actual uint64
	// Stopped counts answers that were ended because their key had no units left.
	Stopped uint64
}

// Tokens gives the counts of a rule. They begin with the process, and survive reloads.
func (g *Guard) Tokens(ruleName string) Tokens {
	c := g.tokensOf(ruleName)
	if c == nil {
		return Tokens{}
	}
	return Tokens{
		Input: c.input.Load(), Cached: c.cached.Load(), Written: c.written.Load(), Output: c.output.Load(),
		Estimated: c.estimated.Load(), Actual: c.actual.Load(), Stopped: c.stopped.Load(),
	}
}

// AnswersBy gives the number of answers of a rule with SettleBody by what was read in them: see TokenCauses.
func (g *Guard) AnswersBy(ruleName, cause string) uint64 {
	c := g.tokensOf(ruleName)
	for i := range causes {
		if c != nil && tokens.Cause(i).String() == cause {
			return c.causes[i].Load()
		}
	}
	return 0
}

// TokenCauses lists what is read in answers, as metrics name it: stated is an answer with its usage, and none one without a cost. The
// others say why an answer states no usage.
func TokenCauses() []string {
	all := make([]string, causes)
	for i := range all {
		all[i] = tokens.Cause(i).String()
	}
	return all
}

func (g *Guard) tokensOf(ruleName string) *tokenCounts {
	if g.now() == nil {
		return nil
	}
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	if p, known := g.state.places[ruleName]; known {
		return &p.tokens
	}
	return nil
}

// UsageObserver is an Observer that also gets answers without usage: cause is a word of TokenCauses, neither stated nor none. It must
// not block.
type UsageObserver interface {
	Observer
	ObserveUnstated(r *Rule, cause string)
}

// count counts the answer for each rule, learns from what it states, and tells the observer about missing usage.
func (s *Scan) count(by *set) {
	for i := range s.reserved {
		k := &s.reserved[i]
		c, cause := &k.prepared.places.tokens, s.causeOf(k.prepared.SettleBody)
		switch cause {
		case tokens.Stated:
			s.learn(k, c)
		case tokens.None:
		default:
			if o, ok := by.config.Observer.(UsageObserver); ok {
				o.ObserveUnstated(k.prepared.Rule, cause.String())
			}
		}
		c.causes[cause].Add(1) // The counts above are then complete.
	}
}

// learn counts the tokens that the answer states, and improves the estimates of the rule.
func (s *Scan) learn(k *reserved, to *tokenCounts) {
	stated, model := s.counts(k.prepared.SettleBody)
	to.input.Add(uint64(max(0, stated.Input)))
	to.cached.Add(uint64(max(0, stated.Cached)))
	to.written.Add(uint64(max(0, stated.Written)))
	to.output.Add(uint64(max(0, stated.Output)))
	to.estimated.Add(uint64(k.taken))
	to.actual.Add(uint64(max(0, k.prepared.SettleBody.Cost(&stated, model))))
	if k.prepared.learned != nil {
		k.prepared.learned.Add(&s.body, &stated)
	}
}
