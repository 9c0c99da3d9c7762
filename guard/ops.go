package guard

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
)

// addOps adds the Results and the Ops of the matching rules of one mode.
//
// Enforced rules are one group of the store, all or nothing, unless they are independent. A shadow
// rule is a group of its own. The limits of a rule that degrades are a group of their own too,
// because exceeding them refuses nothing. These groups come last: the Ops of a group must be
// neighbours.
func (s *set) addOps(req *headgate.Request, a *Answer, mode Mode) error {
	alone := mode == Shadow || s.independent
	from := len(a.Results)
	a.nextGroup()
	for _, m := range a.matched {
		added, err := s.addMatch(&s.rules[m], req, a, mode)
		if err != nil {
			return err
		}
		if added && alone {
			a.nextGroup()
		}
	}
	for i := from; i < len(a.Results); i++ {
		r := &a.Results[i]
		if r.op != opLater {
			continue
		}
		if i == from || a.Results[i-1].Rule != r.Rule {
			a.nextGroup()
		}
		a.addOp(r, r.window.id)
	}
	return nil
}

// addMatch adds the Results and Ops of one rule, if its mode is mode. It reports whether it has.
func (s *set) addMatch(p *prepared, req *headgate.Request, a *Answer, mode Mode) (added bool, err error) {
	if p.part != nil {
		p = p.part.of(p, req, a)
	}
	if p.Quota != "" {
		return s.addQuota(p, req, a, mode)
	}
	if p.Mode != mode {
		return false, nil
	}
	cost, err := p.costOf(req)
	if err == nil && req.Kind == headgate.Refund {
		err = p.refundable()
	}
	if err != nil && mode == Enforce {
		return false, err
	}
	if p.lease != nil {
		s.addLease(p, req, a, cost)
		return true, nil
	}
	s.addRule(p, req, a, cost)
	return true, nil
}

// nextGroup gives the next Op another group number than the last one. Groups that are not
// neighbours may have the same number.
func (a *Answer) nextGroup() {
	if n := len(a.request.ops); n > 0 {
		a.group = a.request.ops[n-1].Group + 1
	}
}

// Values of Result.op without an Op.
const (
	opLater = -1 // The Op is added after all others.
	opNone  = -2 // The cost is invalid: the store is not called.
	// The request uses spare units of a queue, which the store has booked already.
	opReserved = -4
	// Fair share or a stage has decided.
	opDecided = -3
)

// addRule adds the Results of one rule, and those of its Ops that can refuse.
func (s *set) addRule(p *prepared, req *headgate.Request, a *Answer, cost int64) {
	from := len(a.keys)
	keys, shared := p.AppendKey(append(a.keys, p.space...), req)
	a.keys = keys
	// The store reads the key only during Apply, and nothing writes to it until then.
	key := unsafe.String(unsafe.SliceData(keys[from:]), len(keys)-from) //nolint:gosec // A copy would be an allocation.
	if shared && p.Missing == rule.MissingRefuse {
		s.addLacking(p, p.Rule, req, a, key, 0)
		return
	}
	windows, overridden := p.limits, false
	if p.overrides != nil {
		i, found := p.overrides.find(req, s.guard)
		if overridden = found; found {
			windows = p.overrides.windows[i]
		}
		if len(windows) == 0 && found {
			a.lookForBan(p, req, key)
			return
		}
	}
	a.soft = a.soft || p.Soft > 0
	cost = p.cut(req, windows, cost)
	if p.stated != nil && !overridden {
		s.addStated(p, windows, req, a, key, cost, shared)
	} else {
		s.addWindows(p, p.Rule, windows, req, a, key, cost, shared)
	}
	if p.Ban.For == 0 {
		a.lookForBan(p, req, key)
	}
	if p.slots != nil {
		a.addSlot(p, key, shared)
	}
	if a.ends == nil && p.NeedsEnd() != "" {
		a.ends = p
	}
}

// lookForBan adds what a rule decides by a ban of an operator, also on a request whose Override is Unlimited.
func (a *Answer) lookForBan(p *prepared, req *headgate.Request, key string) {
	if r, added := a.addOperatorBan(p, req, key); added {
		a.addOp(r, r.window.id)
	}
}

// addWindows adds the Results of a list of limits, and those of their Ops that can refuse. shown is the rule as the results
// show it.
func (s *set) addWindows(
	p *prepared, shown *Rule, windows []window, req *headgate.Request, a *Answer, key string, cost int64, shared bool,
) {
	for i := range windows {
		w := &windows[i]
		if req.Kind == headgate.Refund && w.kind != kindLimit {
			continue // Attempts before a ban, and those above a hard limit, stay counted.
		}
		r := a.nextResult()
		r.Rule, r.Window, r.Policy, r.Limit, r.Stage, r.Number = shown, w.index, w.policy, w.limit, "", p.number
		r.Shared, r.Fallback, r.window, r.from, r.key, r.cost = shared, false, w, p, key, cost
		r.mode, r.full, r.member, r.Recalled = w.mode, false, nil, false
		if req.Kind != headgate.Take {
			r.mode = req.Kind
		} else if req.Peek {
			r.mode = headgate.Peek
		}
		if w.answers {
			r.cost = min(cost, 0) // The request counts when it is answered.
		}
		switch {
		case cost < 0:
			r.op = opNone
		case r.mode == headgate.Refund:
			a.nextGroup()
			a.addOp(r, w.id)
			a.nextGroup()
		case r.mode != headgate.Peek && w.waits() && s.place(p, r, a, req.NoWait), a.explains() != nil && s.promises(p, r, a, req.NoWait):
			r.op = opReserved
		case w.beside:
			r.op = opLater
		default:
			a.addOp(r, w.id)
		}
	}
}

// refundable reports whether units can be given back to all limits of the rule.
func (p *prepared) refundable() error {
	for i := range p.limits {
		if p.limits[i].algorithm == headgate.LeakyBucket {
			return fmt.Errorf("guard: rule %q has a leaky_bucket: %w", p.Name, headgate.ErrNotRefundable)
		}
	}
	return nil
}

// place looks for a place to wait before anything is booked. If the queue of the key has spare
// units, place gives them to the request and reports true: the store books nothing. Without a free
// place, and for a client that cannot wait, the store only decides whether the request can go at once.
func (s *set) place(p *prepared, r *Result, a *Answer, noWait bool) (reserved bool) {
	if !noWait && p.places.waiting.Load() < int64(p.maxWaiters()) {
		id, _ := s.guard.queueOf(a, r)
		return !r.window.beside && p.state.queues.reserve(r, id, true)
	}
	r.full, r.mode = !noWait, headgate.Take
	if r.window.algorithm == headgate.LeakyBucket {
		r.mode = headgate.TakeNow
	}
	return false
}

// nextResult adds a result. It keeps the fields of an earlier answer: addRule overwrites them, and
// apply overwrites the Decision.
func (a *Answer) nextResult() *Result {
	n := len(a.Results)
	if n == cap(a.Results) {
		a.Results = append(a.Results, Result{})
	} else {
		a.Results = a.Results[:n+1]
	}
	a.Results[n].Beyond, a.Results[n].AboveSoft, a.Results[n].counted, a.Results[n].Stated = 0, false, false, NotStated
	a.Results[n].spread = 0
	return &a.Results[n]
}

// addOp adds the Op of a result, with the store's id of the policy, to the current group.
func (a *Answer) addOp(r *Result, policy headgate.PolicyID) {
	q := a.request
	r.op = len(q.ops)
	if len(q.ops) < cap(q.ops) {
		q.ops = q.ops[:r.op+1]
	} else {
		q.ops = append(q.ops, headgate.Op{})
	}
	op := &q.ops[r.op] // Its fields are set one by one: a copy of a literal would wait for its own stores.
	op.Key, op.Policy, op.Window, op.Group, op.Kind, op.Cost = r.key, policy, r.window.number, a.group, r.mode, r.cost
	op.Edges = r.window.edges(a.from.guard, false)
}

// addLocalOp is addOp for Local.
func (a *Answer) addLocalOp(r *Result) {
	a.addOp(r, r.window.local)
	op := &a.request.ops[r.op]
	op.Cost, op.Edges = r.cutLocal(op.Cost), r.window.edges(a.from.guard, true)
}

// costOf gives the cost of the request under a rule: the front's, or the one that the request
// states where the rule reads it, or the rule's. With an error, the cost is negative.
func costOf(req *headgate.Request, r *Rule) (int64, error) {
	switch {
	case req.Cost > 0 || req.Kind != headgate.Take:
		return req.Cost, nil
	case r.Announced:
		return min(max(1, req.Length), headgate.MaxUnits), nil
	case r.CostHeader != "" && req.Header != nil:
		if all, ok := req.Header.(headgate.Lines); ok && len(all.Lines(r.CostHeader)) > 1 {
			return -1, &CostError{r.Name, r.CostHeader, "is stated more than once: state one"}
		}
		if text, stated := req.Header.Lookup(r.CostHeader); stated {
			return statedCost(text, r)
		}
	}
	return max(1, r.Cost), nil
}

// statedCost reads the cost that a request states: only digits, from 1 to MaxCost.
func statedCost(text string, r *Rule) (int64, error) {
	most := r.MaxCost
	if most == 0 {
		most = headgate.MaxUnits
	}
	const digits = 16 // the number of digits of MaxUnits
	if text == "" || len(text) > digits || text[0] == '+' || text[0] == '-' {
		return -1, &CostError{r.Name, r.CostHeader, "is no whole number: write digits alone"}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return -1, &CostError{r.Name, r.CostHeader, "is no whole number: write digits alone"}
	case n < 1 || n > most:
		return -1, &CostError{r.Name, r.CostHeader, "is out of range: write 1 to " + strconv.FormatInt(most, 10)}
	}
	return n, nil
}

// CostError says that a request states an invalid cost. The sender has to change the request: HTTP
// answers 400. CostError wraps headgate.ErrBadCost.
type CostError struct {
	// Rule is the rule that reads the cost. Header is where the request states it.
	Rule, Header string
	// Problem describes the fault. It repeats nothing of the request.
	Problem string
}

// Error gives header and problem in one sentence.
func (e *CostError) Error() string { return "guard: the cost in " + e.Header + " " + e.Problem }

// Unwrap gives headgate.ErrBadCost.
func (e *CostError) Unwrap() error { return headgate.ErrBadCost }
