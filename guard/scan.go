package guard

import (
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/tokens"
)

// MostBody bounds Rule.MaxBody, in bytes.
const MostBody = 64 << 20

// Scan reads the body of one answer, for the rules that settle by it: those with a SettleBody. A front calls Begin when the header of the
// service's answer is known, and Write with each piece of the body. One goroutine at a time calls the methods of a Scan, and none calls
// them after Done.
type Scan struct {
	answer   tokens.Answer
	reader   *tokens.Reader
	method   string
	path     string
	body     headgate.Body // of the request, without its fields
	model    []byte        // that the request names
	begun    bool
	closed   bool
	cause    tokens.Cause // of an answer without Begin; from closed on
	reserved []reserved
	spending spending
}

// reserved is what a request took under one rule before its answer.
type reserved struct {
	prepared *prepared
	taken    int64
	// input is the part of taken for the input of the request.
	input int64
	// stops says that the answer ends when its key has no units left, of which step are reserved at a time.
	stops bool
	step  int64
}

// mostModel bounds what is kept of the name of a model, in bytes. Longer names match no price but that of "*".
const mostModel = 192

// Scan returns what reads the answer of a forwarded request; nil if no rule of the request settles by the body. Call it after Forward.
// The Scan is valid until Done.
func (t *Ticket) Scan() *Scan {
	if t.ending == nil {
		return nil
	}
	return t.ending.scan
}

// scan gives an empty Scan.
func (s *State) scan() *Scan {
	if c, ok := s.scans.Get().(*Scan); ok {
		return c
	}
	return new(Scan)
}

// putScan keeps the memory of a Scan for another request.
func (s *State) putScan(c *Scan) {
	c.close(&Outcome{End: Refused}) // Ends a request that was not made.
	clear(c.reserved)
	c.reader, c.method, c.path, c.body = nil, "", "", headgate.Body{}
	c.model, c.reserved, c.begun, c.closed, c.cause = c.model[:0], c.reserved[:0], false, false, 0
	clear(c.spending.ops)
	c.spending = spending{ops: c.spending.ops[:0], made: c.spending.made[:0]}
	s.scans.Put(c)
}

// scanFor notes what the request took under the rule of a result.
func (e *ending) scanFor(t *Ticket, r *Result) {
	if e.scan == nil {
		e.scan = t.guard.state.scan()
		e.scan.ask(t.set.reader, t.request)
	}
	s := e.scan
	if n := len(s.reserved); n > 0 && s.reserved[n-1].prepared == r.from {
		s.reserved[n-1].step = min(s.reserved[n-1].step, stepOf(r)) // Another limit of the rule.
		return
	}
	taken := r.Decision.Receipt.Cost
	kept := reserved{prepared: r.from, taken: taken, step: stepOf(r)}
	if kept.stops = r.from.OnSpent == StopAnswer && r.Enforced(); kept.stops {
		s.spending.ticket = t
	}
	if r.from.learned != nil {
		kept.input = min(taken, r.from.inputOf(&s.body, string(s.model)))
	}
	s.reserved = append(s.reserved, kept)
}

// stepOf is how many units are reserved at a time under the limit of a result.
func stepOf(r *Result) int64 { return max(1, r.window.room()/stepsOfLimit) }

// ask notes the request; nil if it is not known any more.
func (s *Scan) ask(reader *tokens.Reader, req *headgate.Request) {
	s.reader = reader
	if req == nil {
		return
	}
	s.method, s.path = req.Method, req.Path
	if req.Body != nil {
		s.body = *req.Body
		if name := modelOf(req.Body); len(name) <= mostModel {
			s.model = append(s.model[:0], name...)
		}
		s.body.Fields = nil // The front uses their memory again.
	}
}

// Begin notes the header of the service's answer, before Write. The answers of the front itself have no Begin.
func (s *Scan) Begin(status int, contentType, contentEncoding string) {
	if s.begun || s.closed || status < 200 {
		return
	}
	s.begun = true
	s.answer.Begin(s.reader, s.method, s.path, status, contentType, contentEncoding)
}

// Write reads the next bytes of the answer, before they are sent. It neither changes nor keeps them. keep is how many of them to send. If
// stop is set, the answer ends behind them, with what AppendEnd gives, and no more is sent.
func (s *Scan) Write(b []byte) (keep int, stop bool) {
	switch {
	case s.spending.stopped:
		return 0, true
	case !s.begun || s.closed:
		return len(b), false
	}
	if s.answer.Write(b); !s.Stops() {
		return len(b), false
	}
	return s.spend(b)
}

// Reads reports whether the bytes of the answer are needed.
func (s *Scan) Reads() bool { return s.begun && !s.closed && s.answer.Reads() }

// CloseScan ends the reading of the answer, if there is any, so that Rule.Actual can read the outcome. Done calls it for a front that
// does not.
func (t *Ticket) CloseScan(o *Outcome) {
	if t.ending == nil || t.ending.scan == nil {
		return
	}
	o.scan = t.ending.scan
	if o.scan.close(o) {
		o.scan.count(t.set)
	}
}

// close ends the reading. It reports false if it has ended before.
func (s *Scan) close(o *Outcome) bool {
	if s.closed {
		return false
	}
	s.closed = true
	switch {
	case s.begun:
		if o.Header != nil {
			s.answer.Header(reported(o.Header))
		}
		s.answer.Close(o.End == Answered)
	case o.Status >= http.StatusBadRequest || o.End == Refused || withoutAnswerCost(s.method):
		s.cause = tokens.None
	case o.End == Answered:
		s.cause = tokens.NoUsage
	default:
		s.cause = tokens.Aborted
	}
	return true
}

// reported looks up the headers and trailers of an answer.
type reported func(name string) (value string, ok bool)

// Lookup implements headgate.Values.
func (r reported) Lookup(name string) (value string, ok bool) { return r(name) }

// causeOf says why the answer states its cost for a rule, or why not. Call it after close.
func (s *Scan) causeOf(settle *tokens.Settle) tokens.Cause {
	if s.begun {
		return s.answer.Cause(settle)
	}
	return s.cause
}

// counts gives the counts that a rule reads of the answer, and the model of its price.
func (s *Scan) counts(settle *tokens.Settle) (c tokens.Counts, model string) {
	if s.begun {
		c, _ = s.answer.Counts(settle)
		model = s.answer.Model()
	}
	if model == "" {
		model = string(s.model)
	}
	return c, model
}

// bodyActual is actual for a rule with SettleBody.
func (r *Rule) bodyActual(o *Outcome) (cost int64, stated bool) {
	s := o.scan
	if s == nil {
		return 0, false
	}
	switch s.causeOf(r.SettleBody) {
	case tokens.None:
		return 0, true
	case tokens.Stated:
		c, model := s.counts(r.SettleBody)
		return r.SettleBody.Cost(&c, model), true
	case tokens.Aborted:
		return s.aborted(r)
	default:
		return 0, false
	}
}

// aborted gives the cost of an answer that ended before it stated its usage: what it stated until then, or the reserved input and what
// has passed. Without a statement, the cost is at most what was reserved.
func (s *Scan) aborted(r *Rule) (cost int64, stated bool) {
	c, model := s.counts(r.SettleBody)
	said := r.SettleBody.Cost(&c, model)
	for i := range s.reserved {
		if k := &s.reserved[i]; k.prepared.SettleBody == r.SettleBody {
			return max(said, min(k.input+s.passed(r.SettleBody, model), k.taken)), true
		}
	}
	return said, said > 0
}

// passed gives the cost of what has passed of an answer.
func (s *Scan) passed(settle *tokens.Settle, model string) int64 {
	switch {
	case !s.begun:
		return 0
	case settle.API == tokens.NoAPI:
		return s.answer.Streamed()
	default:
		return settle.Output(s.answer.Streamed(), model)
	}
}
