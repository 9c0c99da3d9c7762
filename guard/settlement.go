package guard

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// settlement is the change of units at the end of a request: units to return, and units to charge
// beyond the estimate.
type settlement struct {
	receipts  []headgate.Receipt
	ops       []headgate.Op
	decisions []headgate.Decision
	rules     []charging       // of ops
	extras    []headgate.Usage // the metered units of ops, by rule
	meter     headgate.Meter
	growing   []growingAnswer
}

// charging is what an op charges for.
type charging struct {
	*settledUnits

	window *window
	// prepared is the rule of a ban by answers; nil for units.
	prepared *prepared
	local    bool
	extra    int // the position in settlement.extras; -1 for none
	beyond   int64
}

// settledUnits counts what the ends of requests changed under one rule.
type settledUnits struct{ returned, charged, estimates atomic.Uint64 }

// Settled is what the ends of requests have changed under a rule with Count or Settle, in this process.
type Settled struct {
	// Returned are the units that were given back. Charged are the units beyond estimates.
	Returned, Charged uint64
	// Estimates counts the requests whose answer stated no valid cost, so that the estimate stays.
	Estimates uint64
}

// Settled gives the counts of a rule. They begin with the process, and survive reloads.
func (g *Guard) Settled(ruleName string) Settled {
	if g.now() == nil {
		return Settled{}
	}
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	p, known := g.state.places[ruleName]
	if !known {
		return Settled{}
	}
	s := &p.settled
	return Settled{Returned: s.returned.Load(), Charged: s.charged.Load(), Estimates: s.estimates.Load()}
}

// settle changes the units of a request by its outcome. A store in memory is changed at once, a
// shared store in the background.
func (e *ending) settle(t *Ticket, o *Outcome) {
	w, store := &e.settlement, t.guard.store
	if e.local != nil {
		store = e.local
	}
	w.meter = t.set.config.Meter
	for i := range e.usages {
		e.correct(&e.usages[i], t.set, o)
	}
	for i := range e.charges {
		c := &e.charges[i]
		added := len(w.rules)
		w.add(t.guard, c, e.keys[c.from:c.to], o, e.local != nil)
		if len(w.rules) > added && c.usage >= 0 {
			w.rules[added].extra = e.usages[c.usage].extra - 1
		}
	}
	switch set := t.set; {
	case len(w.receipts) == 0 && len(w.ops) == 0 && len(w.growing) == 0:
	case e.local != nil || set.config.StoreTimeout <= 0:
		w.apply(context.Background(), store)
	default:
		later := w.clone()
		t.guard.state.returns.add(func() {
			ctx, cancel := context.WithTimeout(context.Background(), set.config.StoreTimeout)
			defer cancel()
			later.apply(ctx, store)
		})
	}
}

// add adds the change of one charge.
func (w *settlement) add(g *Guard, c *charge, key []byte, o *Outcome, local bool) {
	r, settled := c.receipt, &c.prepared.places.settled
	status := httpStatus(o)
	if c.window.kind == kindBan {
		w.countAnswer(c, key, status, local)
		return
	}
	if len(c.prepared.Count) > 0 && status != 0 && !slices.Contains(c.prepared.Count, status) {
		settled.returned.Add(uint64(r.Cost))
		w.receipts = append(w.receipts, r)
		w.returnSteps(c, 0)
		return
	}
	if !c.prepared.Settles() {
		return
	}
	cost, stated := c.prepared.actual(o)
	if stated && len(c.steps) > 0 {
		cost -= w.returnSteps(c, cost)
	}
	switch {
	case !stated:
		settled.estimates.Add(1)
	case cost < r.Cost:
		settled.returned.Add(uint64(r.Cost - cost))
		r.Kept = cost
		w.receipts = append(w.receipts, r)
	case cost > r.Cost:
		op := headgate.Op{
			Key: string(key), Policy: c.window.id, Window: c.window.number, Group: uint8(len(w.ops)), Kind: headgate.Charge,
			Cost: cost - r.Cost, Edges: c.window.edges(g, local),
		}
		if local {
			op.Policy = c.window.local
		}
		w.ops, w.rules = append(w.ops, op), append(w.rules, charging{settledUnits: settled, window: c.window, local: local, extra: -1})
	}
}

// statedActual reads the cost that an answer states: only digits, up to MaxUnits.
func statedActual(o *Outcome, name string) (int64, bool) {
	if o.Header == nil {
		return 0, false
	}
	text, ok := o.Header(name)
	const digits = 16 // the number of digits of MaxUnits
	if !ok || text == "" || len(text) > digits || text[0] == '+' || text[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= headgate.MaxUnits
}

// apply returns units, and charges others up to the overdraft of their rule. After an error, the
// estimates stay counted.
func (w *settlement) apply(ctx context.Context, store headgate.Store) {
	w.change(ctx, store)
	for i := range w.growing {
		w.growing[i].count(ctx, store)
	}
	for i := range w.extras {
		if w.extras[i].Metered > 0 {
			w.meter.Count(w.extras[i])
		}
	}
}

func (w *settlement) change(ctx context.Context, store headgate.Store) {
	if len(w.receipts) > 0 {
		_ = store.Return(ctx, w.receipts) // Units that cannot be returned stay counted, which is safe.
	}
	if len(w.ops) == 0 {
		return
	}
	w.decisions = slices.Grow(w.decisions[:0], len(w.ops))[:len(w.ops)]
	if store.Apply(ctx, w.ops, w.decisions) != nil {
		return
	}
	for i := range w.decisions {
		d, rule, cost := &w.decisions[i], &w.rules[i], w.ops[i].Cost
		if rule.prepared != nil {
			rule.prepared.meetBan(w.ops[i].Key, d)
			continue
		}
		if counted := d.Receipt.Cost; counted > 0 {
			rule.settledUnits.charged.Add(uint64(counted))
			w.charged(rule, counted, d)
		}
		if counted := d.Receipt.Cost; counted < cost {
			w.beyond(rule, cost-counted)
		}
	}
}

func (w *settlement) clear() {
	clear(w.ops[:cap(w.ops)])
	clear(w.rules[:cap(w.rules)])
	clear(w.extras[:cap(w.extras)])
	clear(w.growing[:cap(w.growing)])
	w.growing = w.growing[:0]
	w.extras, w.meter = w.extras[:0], nil
	w.receipts, w.ops, w.rules = w.receipts[:0], w.ops[:0], w.rules[:0]
}

// clone gives a copy that outlives the ending.
func (w *settlement) clone() *settlement {
	return &settlement{
		receipts: slices.Clone(w.receipts), ops: slices.Clone(w.ops), rules: slices.Clone(w.rules),
		extras: slices.Clone(w.extras), meter: w.meter, growing: slices.Clone(w.growing),
	}
}

// grpcStatus is the header or trailer with the status of a gRPC call through HTTP.
const grpcStatus = "Grpc-Status"

const contentType = "Content-Type"

// Codes of gRPC without an HTTP status of their own here.
const (
	grpcCanceled         = 1
	grpcDeadlineExceeded = 4
)

// httpStatusTable has the HTTP status of each gRPC code, as google.rpc.Code defines it.
var httpStatusTable = [...]int{
	http.StatusOK, 499, http.StatusInternalServerError, http.StatusBadRequest, http.StatusGatewayTimeout, http.StatusNotFound,
	http.StatusConflict, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadRequest, http.StatusConflict,
	http.StatusBadRequest, http.StatusNotImplemented, http.StatusInternalServerError, http.StatusServiceUnavailable,
	http.StatusInternalServerError, http.StatusUnauthorized,
}

// httpStatus gives the HTTP status of an outcome, or 0 if the service gave none. A gRPC call that its
// client has left has no status: its handler says only that it was canceled. Through HTTP, the status of a
// call comes last. So an answer of gRPC without it has ended early, and its 200 says nothing.
func httpStatus(o *Outcome) int {
	code, grpc := o.Status, o.GRPC
	if !grpc && o.Status == http.StatusOK && o.Header != nil {
		if text, ok := o.Header(grpcStatus); ok {
			n, err := strconv.Atoi(text)
			code, grpc = n, err == nil
		} else if kind, _ := o.Header(contentType); isGRPC(kind) {
			return 0
		}
	}
	switch {
	case !grpc:
		return o.Status
	case o.End == ClientLeft && (code == grpcCanceled || code == grpcDeadlineExceeded), o.End == Panicked:
		return 0
	case code < 0 || code >= len(httpStatusTable):
		return http.StatusInternalServerError
	default:
		return httpStatusTable[code]
	}
}
