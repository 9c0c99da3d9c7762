package guard

import (
	"net/http"
	"slices"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limit"
	"github.com/headgate/headgate/internal/tokens"
)

// learning is what settled answers teach about the estimates of one rule. It survives reloads that change neither estimate nor settle.
type learning struct {
	settle   *tokens.Settle
	estimate tokens.Estimate
	learned  tokens.Learned
}

// learnedOf gives what a rule has learned; nil for a rule without estimates. p are the places of the rule.
func (s *State) learnedOf(p *places, r *Rule) *tokens.Learned {
	if r.SettleBody == nil || r.Estimate == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := p.learning; l == nil || l.estimate != *r.Estimate || !sameCounts(l.settle, r.SettleBody) {
		p.learning = &learning{settle: r.SettleBody, estimate: *r.Estimate}
	}
	return &p.learning.learned
}

// sameCounts reports whether two settings read the same counts of an answer. Their weights may differ.
func sameCounts(a, b *tokens.Settle) bool {
	same := func(x, y tokens.Field) bool { return x.Name == y.Name && slices.Equal(x.Paths, y.Paths) }
	return a.API == b.API && a.Merge == b.Merge && slices.EqualFunc(a.JSON, b.JSON, same) && slices.EqualFunc(a.Headers, b.Headers, same)
}

// costOf gives the cost of a request: the estimate of a rule with Estimate, unless the front gives the cost.
func (p *prepared) costOf(req *headgate.Request) (int64, error) {
	if !p.estimates(req) {
		return costOf(req, p.Rule)
	}
	if withoutAnswerCost(req.Method) {
		return 1, nil // The end returns the unit.
	}
	return p.estimate(req.Body), nil
}

// estimates reports whether the rule estimates the cost of the request.
func (p *prepared) estimates(req *headgate.Request) bool {
	return p.learned != nil && req.Cost == 0 && req.Kind == headgate.Take
}

// estimate gives the cost of a request with the facts of its body; nil for none.
func (p *prepared) estimate(b *headgate.Body) int64 {
	return p.learned.Cost(p.SettleBody, p.Estimate, b, modelOf(b), headgate.MaxUnits)
}

// inputOf estimates the cost of the input of a request alone.
func (p *prepared) inputOf(b *headgate.Body, model string) int64 {
	if p.SettleBody.API == tokens.NoAPI {
		c := p.learned.Counts(p.Estimate, b)
		return c.Input
	}
	return p.learned.Input(p.SettleBody, p.Estimate, b, model)
}

// modelOf gives the model that a request names; "" for none.
func modelOf(b *headgate.Body) (name string) {
	if b != nil && b.Fields != nil {
		name, _ = b.Fields.Lookup(modelPath)
	}
	return name
}

// withoutAnswerCost reports whether the answers to a method have no cost: they use no model.
func withoutAnswerCost(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return true
	}
	return false
}

// cut lowers an estimate to what one request may take, so that an estimate alone refuses no key that has used nothing.
func (p *prepared) cut(req *headgate.Request, windows []window, cost int64) int64 {
	if cost <= 1 || !p.estimates(req) {
		return cost
	}
	for i := range windows {
		cost = min(cost, windows[i].room())
	}
	return max(1, cost)
}

// cutLocal is cut for this instance's part of the limit of a result.
func (r *Result) cutLocal(cost int64) int64 {
	w := r.window
	if w.kind != kindLimit || r.from.learned == nil || r.mode != headgate.Take {
		return cost
	}
	return min(cost, max(1, limit.Room(headgate.Policy{Algorithm: w.algorithm, Limit: w.part})))
}
