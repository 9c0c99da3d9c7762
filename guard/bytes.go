package guard

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate"
)

// Bytes is a set of bodies whose bytes a rule counts. Heads do not count.
type Bytes uint8

const (
	// RequestBytes are those that were read from the client: of the body, or of a connection that was upgraded.
	RequestBytes Bytes = 1 << iota
	// ResponseBytes are those that were written to the client.
	ResponseBytes
)

// String gives the word that configurations use.
func (b Bytes) String() string {
	switch b {
	case RequestBytes:
		return "request"
	case ResponseBytes:
		return "response"
	case RequestBytes | ResponseBytes:
		return "both"
	default:
		return "none"
	}
}

// Settles reports whether the end of a request states its real cost.
func (r *Rule) Settles() bool { return r.Settle != "" || r.Bytes != 0 || r.SettleBody != nil }

// actual gives the real cost of a request that has ended. It reports false if its answer states none.
func (r *Rule) actual(o *Outcome) (cost int64, stated bool) {
	switch {
	case r.SettleBody != nil:
		return r.bodyActual(o)
	case r.Bytes == 0:
		return statedActual(o, r.Settle)
	}
	if r.Bytes&RequestBytes != 0 {
		cost = o.Received
	}
	if r.Bytes&ResponseBytes != 0 {
		cost += o.Sent
	}
	return min(cost, headgate.MaxUnits), true
}

// Cost is the cost with which the result's rule decided the request. It is 0 for a step without a cost.
func (r *Result) Cost() int64 { return r.cost }

// Actual returns the real cost that the end of a request states for the rule; see Settles.
func (r *Rule) Actual(o *Outcome) (cost int64, stated bool) {
	if !r.Settles() {
		return 0, false
	}
	return r.actual(o)
}

// CountsBytes reports whether a rule counts the bytes of the request. The front then sets Received and Sent of the Outcome. Call it
// after Forward.
func (t *Ticket) CountsBytes() bool { return t.ending != nil && t.ending.bytes }

// BytesError says that a front does not see the bodies that a rule counts or reads.
type BytesError struct {
	// Front is the name of the front, and Rule that of the rule.
	Front, Rule string
	// Reads says that the rule reads what bodies say. Otherwise it counts their bytes.
	Reads bool
}

// Error names the front and the rule, and says what to do.
func (e *BytesError) Error() string {
	if e.Reads {
		return fmt.Sprintf("guard: rule %q reads bodies, which %s does not see: remove settle, match.model, match.json and such key "+
			"parts, or decide the rule in headgate proxy or package httplimit", e.Rule, e.Front)
	}
	return fmt.Sprintf("guard: rule %q counts the bytes of bodies, which %s does not see: count requests, or decide the rule in headgate "+
		"proxy or package httplimit", e.Rule, e.Front)
}

// checkBytes refuses settings that contradict each other.
func checkBytes(r *Rule) error {
	switch {
	case r.Bytes > RequestBytes|ResponseBytes:
		return fmt.Errorf("bytes %d are not known: use the constants", r.Bytes)
	case r.Bytes != 0 && r.Settle != "":
		return fmt.Errorf("settle states the real cost in %s, and Bytes count it: leave out one of them", r.Settle)
	case r.SettleBody != nil && (r.Settle != "" || r.Bytes != 0):
		return errors.New("SettleBody reads the real cost of a body, and Settle or Bytes have it elsewhere: leave out one of them")
	case r.Estimate != nil && r.SettleBody == nil:
		return errors.New("an estimate needs the real cost of the answer: set SettleBody")
	case r.OnSpent > StopAnswer || r.OnSpent == StopAnswer && r.SettleBody == nil:
		return fmt.Errorf("OnSpent is %d: use a constant, and SettleBody with StopAnswer", r.OnSpent)
	case r.MaxBody < 0 || r.MaxBody > MostBody:
		return fmt.Errorf("MaxBody is %d: use 0 to %d", r.MaxBody, int64(MostBody))
	case r.Announced && (r.Cost > 0 || r.CostHeader != ""):
		return errors.New("the announced length is the cost, and so is Cost or CostHeader: leave out one of them")
	case r.Announced && r.Bytes == ResponseBytes, r.Announced && !r.Settles():
		return errors.New("the announced length of a request needs its real length: set RequestBytes")
	default:
		return nil
	}
}
