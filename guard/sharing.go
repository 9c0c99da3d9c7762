package guard

import (
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fairshare"
	"github.com/headgate/headgate/rule"
)

// sharing is fair share with what a decision needs of it. But for the limiter it is
// immutable.
type sharing struct {
	FairShare

	limiter *fairshare.Limiter
	known   bool // the State had the limiter before
	scope   scope
	rule    Rule
	window  window
	from    prepared
}

// prepareShare makes it of a FairShare, with the limiter that the State has, or one
// that it may get. Nothing changes yet.
func (g *Guard) prepareShare(f FairShare, folds rule.Folds) (*sharing, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	f.Weights = clientNames(f.Weights)
	f.TrustNames = f.TrustNames || f.Client.Verified()
	if f.Anonymous != "" {
		f.Anonymous = rule.ClientName(f.Anonymous)
	}
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

// clientNames gives weights under the names that clients are known by.
func clientNames(weights map[string]int64) map[string]int64 {
	named := make(map[string]int64, len(weights))
	for name, w := range weights {
		named[rule.ClientName(name)] = w
	}
	return named
}

// reshare makes what a set shares what the State shares: clients stay known for as
// long as there is fair share, in whatever mode.
func (g *Guard) reshare(h *sharing) {
	if h == nil {
		g.state.setSharer(nil)
		return
	}
	if h.known {
		_ = h.limiter.Reload(g.clock.Now(), h.Config) // It refuses only what prepareShare has refused.
	}
	g.state.setSharer(h.limiter)
}

// askShare lets fair share decide, if it is of a mode, and adds its Result. It
// reports whether that is a refusal. The error is that of a cost that cannot be
// counted, as for rules.
func (s *set) askShare(req *headgate.Request, a *Answer, mode Mode) (refused bool, err error) {
	h := s.share
	if h == nil || h.Mode != mode || s.shareExempt(req, a) != "" {
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
	r.window, r.from, r.key, r.cost, r.op = &h.window, &h.from, name, cost, opDecided
	switch {
	case cost < 0:
		r.Decision = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.Never, At: now}
	case name == "":
		r.Decision = headgate.Decision{Verdict: headgate.Deny, Reason: headgate.AnonymousClient, At: now}
	default:
		r.Decision, a.share = h.limiter.Take(now, fairshare.Request{Client: name, Cost: cost, ID: h.id(req)})
	}
	refused = r.Decision.Verdict == headgate.Deny
	if !refused {
		a.sharer = h.limiter
	}
	r.Limit = headgate.Limit{Count: r.Decision.Limit, Per: h.Cycle}
	return refused, nil
}

// client gives the name of the client that a request counts for, "" for nobody. It
// is right until the next Decide; who keeps it copies it.
func (h *sharing) client(req *headgate.Request, a *Answer) (name string, named bool) {
	from := len(a.keys)
	a.keys, named = h.Client.AppendClient(a.keys, req)
	if !named {
		return h.Anonymous, false
	}
	return unsafe.String(unsafe.SliceData(a.keys[from:]), len(a.keys)-from), true //nolint:gosec // A copy would be an allocation.
}

// id gives what tells the attempts of a request from those of others.
func (h *sharing) id(req *headgate.Request) string {
	if !h.CountOnce || req.Header == nil {
		return ""
	}
	id, _ := req.Header.Lookup(h.IDHeader) // Without one every attempt is a request.
	return id
}

// unshare gives back, once, what fair share took for a request that does not reach
// the service.
func (a *Answer) unshare() {
	if a.sharer != nil {
		a.sharer.Return(a.share)
		a.sharer, a.share = nil, fairshare.Receipt{}
	}
}
