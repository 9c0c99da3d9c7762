package throttle

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// twin is the slow twin of a Throttler, written from doc.go. It keeps lists of requests and of
// what happened to them, and computes each quantity anew from these lists.
//
// A request at a threshold must get the same verdict from both. Therefore the twin's float
// arithmetic has the same operations in the same order as the code, and the comparison needs no
// tolerance. For the same reason the twin rounds to nanoseconds where the code does. doc.go has no rule for ties: two tenants may have the same start tag or the same
// excess. In a tie the twin follows the choice of the code (chosen), if the rules allow it.
type twin struct {
	config    Config
	tenants   twinTenants
	predictor twinPredictor
	drain     twinDrain
	hang      twinHang
	live      []*twinRequest               // queued, admitted, and refused ones that Next has to report, by arrival
	gone      []*twinRequest               // refused ones that Next has to report
	virtual   [bucketCount][]time.Duration // the start tags of the requests that went from a bucket to the service
	faults    []string                     // choices of the code that the rules do not allow
}

// twinRequest is what the twin knows of a request. Of the request itself, it reads only the fields
// that the caller sets.
type twinRequest struct {
	*Request

	account    *twinAccount
	route      *twinRoute
	level      *twinLevel // which predicted need, or nil
	need       prediction
	bucket     int
	state      state
	probe      bool // admitted against its prediction
	charged    bool // its bucket has charged the tenant for it
	dispatched headgate.Instant
	reported   answer           // for Next
	since      headgate.Instant // its arrival
	inHang     bool             // admitted in a hang, and no answer since
	begun      bool             // a stream
}

// answer is everything that a caller learns about a request.
type answer struct {
	verdict headgate.Verdict
	reason  headgate.Reason
	retry   time.Duration
}

func newTwin(c Config) *twin {
	w := &twin{predictor: twinPredictor{all: &twinLevel{}}}
	w.tenants.others = &twinAccount{}
	w.Configure(c)
	return w
}

// Configure never forgets an entry: a smaller bound stops the growth only.
func (w *twin) Configure(c Config) {
	w.config, _ = c.withDefaults()
	w.tenants.most = max(w.config.MaxTenants, len(w.tenants.known))
	w.predictor.mostRoutes = max(w.config.MaxRoutes, len(w.predictor.routes))
	w.predictor.mostPairs = max(8*w.config.MaxRoutes, len(w.predictor.pairs))
}

// Arrive takes a request. chosen has the requests that the code has taken out of the queue, in order.
func (w *twin) Arrive(now headgate.Instant, request *Request, chosen []*Request) answer {
	r := &twinRequest{Request: request, since: now, account: w.tenants.account(now, request.Tenant, w.requestsOf)}
	r.route, r.level = w.predictor.lookup(request.Route, r.account)
	if r.level != nil {
		r.need = r.level.prediction()
	}
	r.bucket = w.bucketOf(r)
	if len(w.queued()) == 0 && w.room(now, r) {
		if w.hopeless(now, r, 0) {
			return w.refusal(now, headgate.ThrottleDeadline)
		}
		w.live = append(w.live, r)
		w.admit(now, r)
		return answer{verdict: headgate.Allow}
	}
	if w.hopeless(now, r, w.takes(w.ahead(r))) {
		return w.refusal(now, headgate.ThrottleDeadline)
	}
	w.enqueue(now, r)
	for w.full(r) {
		var choice *Request
		if len(chosen) > 0 {
			choice, chosen = chosen[0], chosen[1:]
		}
		victim := w.pick("eviction order", w.victims(), choice)
		w.leaveQueue(now, victim)
		if victim == r {
			return w.refusal(now, headgate.ThrottleFull)
		}
		w.report(now, victim, headgate.ThrottleEvicted)
	}
	return answer{verdict: headgate.Wait}
}

// Next returns the request whose wait has ended, or nil. chosen is the answer of the code.
func (w *twin) Next(now headgate.Instant, chosen *Request) (*Request, answer) {
	if len(w.gone) > 0 {
		r := w.gone[0]
		w.forget(r)
		return r.Request, r.reported
	}
	first := w.firsts()
	if len(first) == 0 {
		return nil, answer{verdict: headgate.Deny}
	}
	r := w.pickFirst(now, first, chosen)
	if !w.room(now, r) {
		return nil, answer{verdict: headgate.Deny}
	}
	if w.hopeless(now, r, 0) {
		w.leaveQueue(now, r)
		return r.Request, w.refusal(now, headgate.ThrottleDeadline)
	}
	w.charge(r)
	w.leaveQueue(now, r)
	w.live = append(w.live, r)
	w.admit(now, r)
	return r.Request, answer{verdict: headgate.Allow}
}

// Leave ends a request, wherever it is.
func (w *twin) Leave(now headgate.Instant, request *Request, e Ended) {
	r := w.find(request)
	switch {
	case r == nil:
	case r.state == queued:
		w.leaveQueue(now, r)
	case r.state == refused:
		w.forget(r)
	default:
		w.end(now, r, e)
	}
}

// Expire refuses a queued request.
func (w *twin) Expire(now headgate.Instant, request *Request) {
	if r := w.find(request); r != nil && r.state == queued {
		w.leaveQueue(now, r)
		w.report(now, r, headgate.ThrottleDeadline)
	}
}

// Load computes the load from the list of requests.
func (w *twin) Load() Load {
	l := Load{Tenants: len(w.tenants.active), Limit: w.config.Concurrency}
	for _, r := range w.live {
		switch r.state {
		case queued:
			l.Queued[r.Class]++
			l.QueuedWork += r.need.work
		case admitted:
			l.InFlight++
			l.CPU += r.need.work
		default: // It is refused.
		}
	}
	l.Rate, _ = w.drain.rate()
	return l
}

func (w *twin) find(request *Request) *twinRequest {
	for _, r := range w.live {
		if r.Request == request {
			return r
		}
	}
	return nil
}

func (w *twin) requestsOf(a *twinAccount) int {
	n := 0
	for _, r := range w.live {
		if r.account == a && r.state != refused {
			n++
		}
	}
	return n
}

// without returns a list without one of its elements.
func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(other T) bool { return other == one })
}
