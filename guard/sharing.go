package guard

import (
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard/fairshare"
	"github.com/headgate/headgate/rule"
)

// sharing is fair share, prepared for decisions. Everything but the limiter is immutable.
type sharing struct {
	FairShare

	limiter *fairshare.Limiter
	known   bool // the State already had the limiter
	scope   scope
	rule    Rule
	window  window
	from    prepared
}

// shareFacts are what an Answer has of fair share.
type shareFacts struct {
	scoped []int // the matches of fair share's scope
	share  fairshare.Receipt
	sharer *fairshare.Limiter // the limiter of share; nil when there is nothing to return
}

// prepareShare makes a sharing from a FairShare, with the State's limiter or a new one. The
// State does not change yet.
func (g *Guard) prepareShare(f FairShare, folds rule.Folds) (*sharing, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	f.Weights = clientNames(f.Weights)
	f.TrustNames = f.TrustNames || f.Client.Verified()
	if f.Anonymous != "" {
		f.Anonymous = rule.ClientName(f.Anonymous)
	}
	bound := rule.Rule{Match: folds.Match(f.Match), Key: []rule.Part{f.Client}}
	f.Client = bound.BoundKey()[0]
	h := &sharing{FairShare: f, rule: f.Rule(), window: window{policy: FairShareName}, limiter: g.state.sharer()}
	h.from = prepared{Rule: &h.rule, needs: f.needs(), state: g.state}
	var err error
	if h.scope, err = newScope(&f, folds); err != nil {
		return h, err
	}
	if h.limiter != nil {
		h.known = true
		return h, f.Config.Check()
	}
	h.limiter, err = fairshare.New(g.clock.Now(), f.Config)
	return h, err
}

// clientNames gives weights under the names that clients have at run time.
func clientNames(weights map[string]int64) map[string]int64 {
	named := make(map[string]int64, len(weights))
	for name, w := range weights {
		named[rule.ClientName(name)] = w
	}
	return named
}

// reshare applies a set's fair share to the State. Clients stay known while fair share exists,
// in any mode.
func (g *Guard) reshare(h *sharing) {
	if h == nil {
		g.state.setSharer(nil)
		return
	}
	if h.known {
		_ = h.limiter.Reload(g.clock.Now(), h.Config) // The errors of Reload were found in prepareShare.
	}
	g.state.setSharer(h.limiter)
}

// decideShare has fair share decide, if its mode is mode, and adds its Result. It reports whether
// fair share refuses. The error is that of an invalid cost, as for rules.
func (s *set) decideShare(req *headgate.Request, a *Answer, mode Mode) (refused bool, err error) {
	h := s.share
	if h == nil || h.Mode != mode || req.Peek && a.explains() == nil || s.shareExempt(req, a) != "" {
		return false, nil
	}
	cost, err := costOf(req, &h.rule)
	if err != nil && mode == Enforce {
		return false, err
	}
	s.resolve(req, a, h.from.needs)
	name, named := h.client(req, a)
	r, now := a.nextResult(), s.guard.clock.Now()
	r.Rule, r.Window, r.Policy, r.Stage, r.Number, r.Shared, r.Fallback = &h.rule, 0, FairShareName, FairShareName, 0, !named, false
	r.window, r.from, r.key, r.cost, r.op, r.Recalled = &h.window, &h.from, name, cost, opDecided, false
	switch {
	case cost < 0:
		r.Decision = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never, At: now}
	case name == "":
		r.Decision = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.AnonymousClient, At: now}
	case req.Peek:
		r.Decision = s.explainShare(a.explains(), now, fairshare.Request{Client: name, Cost: cost, ID: h.id(req)})
	default:
		r.Decision, a.share = h.limiter.Take(now, fairshare.Request{Client: name, Cost: cost, ID: h.id(req)})
	}
	refused = r.Decision.Verdict == headgate.Deny
	if !refused && !req.Peek {
		a.sharer = h.limiter
	}
	r.Limit = headgate.Limit{Count: r.Decision.Limit, Per: h.Cycle}
	return refused, nil
}

// client gives the name of the client that a request counts for; "" without a client. The name
// is valid until the next Decide.
func (h *sharing) client(req *headgate.Request, a *Answer) (name string, named bool) {
	from := len(a.keys)
	a.keys, named = h.Client.AppendClient(a.keys, req)
	if !named {
		return h.Anonymous, false
	}
	return unsafe.String(unsafe.SliceData(a.keys[from:]), len(a.keys)-from), true //nolint:gosec // A copy would be an allocation.
}

// id gives the identifier that all attempts of a request share.
func (h *sharing) id(req *headgate.Request) string {
	if !h.CountOnce || req.Header == nil {
		return ""
	}
	id, _ := req.Header.Lookup(h.IDHeader) // Without an identifier, every attempt is a request.
	return id
}

// unshare returns, once, the units that fair share took for a request that does not reach the
// service.
func (a *Answer) unshare() {
	if a.sharer != nil {
		a.sharer.Return(a.share)
		a.sharer, a.share = nil, fairshare.Receipt{}
	}
}
