package admin

import (
	"encoding/json"
	"fmt"
	"time"
)

// ExplainOrder is the body of POST /api/v1/explain: a request that is not made.
type ExplainOrder struct {
	// Request is the method and the path or URL, like "GET /v1/search". Method with Path or URL say the same.
	Request string `json:"request,omitempty"`
	Method  string `json:"method,omitempty"`
	Path    string `json:"path,omitempty"`
	URL     string `json:"url,omitempty"`
	Host    string `json:"host,omitempty"`
	// Headers are the fields of the request: a text or a list of texts for each name.
	Headers ExplainHeaders `json:"headers,omitempty"`
	// Address is that of the connection, or unix; "" means 192.0.2.1. Subject is that of a verified client certificate.
	Address string `json:"address,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Customer is written where fair share and the rules read the name of a client or a customer, if that is a header or a cookie that the
	// request lacks.
	Customer string `json:"customer,omitempty"`
	// Length is the announced length of the body, which no explanation has.
	Length int64 `json:"length,omitempty"`
}

// ExplainHeaders are header fields.
type ExplainHeaders map[string][]string

// UnmarshalJSON reads a text or a list of texts for each name.
func (h *ExplainHeaders) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err //nolint:wrapcheck // because it is a fault of the text.
	}
	*h = ExplainHeaders{}
	for name, value := range fields {
		var one string
		var list []string
		if json.Unmarshal(value, &one) == nil {
			list = []string{one}
		} else if err := json.Unmarshal(value, &list); err != nil {
			return fmt.Errorf("header %.64q is neither a text nor a list of texts", name)
		}
		(*h)[name] = list
	}
	return nil
}

// Why is the answer of POST /api/v1/explain: what the instance would do with the request now, and why. Nothing is counted for it.
type Why struct {
	Instance string     `json:"instance"`
	Now      time.Time  `json:"now"`
	Request  WhyRequest `json:"request"`
	// Verdict is allow, wait, deny, or invalid for a request that is refused before any rule.
	Verdict string `json:"verdict"`
	// Status is that of the answer; 0 is the service's own, or none if Drops.
	Status int  `json:"status,omitempty"`
	Drops  bool `json:"drops,omitempty"`
	// By is the name of the rule or stage that decides; "" if no limit does. Reason is its reason, and Key what it counts.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	Key    string `json:"key,omitempty"`
	// RetrySeconds is the time until the request may go on: after a refusal that ends by itself, or of a wait.
	RetrySeconds float64 `json:"retry_seconds,omitempty"`
	// Sentence says all this.
	Sentence string `json:"sentence"`
	// Steps are in the order of decision. Steps after a refusal say what they would see, or that they are not reached.
	Steps []WhyStep `json:"steps"`
	// Unknown lists what cannot be known without the body, the answer of the service, or the time of the request.
	Unknown []string `json:"unknown,omitempty"`
}

// WhyRequest is the request as the rules see it.
type WhyRequest struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Host    string `json:"host,omitempty"`
	Address string `json:"address,omitempty"`
	// Client is the address with which networks are compared, if it is another one.
	Client  string `json:"client,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// The kinds of steps.
const (
	StepRequest   = "request"
	StepExempt    = "exempt"
	StepFairShare = "fair_share"
	StepBan       = "ban"
	StepRule      = "rule"
	StepQuota     = "quota"
	StepThrottle  = "throttle"
	StepService   = "service"
)

// WhyStep is one step of a decision.
type WhyStep struct {
	Kind string `json:"kind"`
	// Name is that of the rule, and Mode is enforce, shadow, or off; "enforce 20%" is for a part of the keys.
	Name string `json:"name,omitempty"`
	Mode string `json:"mode,omitempty"`
	// Applies says that the step decides the request. Otherwise Text and Missed say why it does not.
	Applies bool `json:"applies"`
	// Verdict is allow, wait or deny, and Reason is one of the reasons of logs and metrics. Both are "" for a step that does not apply.
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Decides says that this step determines the verdict of the whole.
	Decides bool `json:"decides,omitempty"`
	// Text is one sentence.
	Text string `json:"text"`
	// Missed are the conditions of a rule that the request does not meet.
	Missed []string `json:"missed,omitempty"`
	// Key is what the step counts, in plain text. Cost is the cost of the request in units.
	Key  string `json:"key,omitempty"`
	Cost int64  `json:"cost,omitempty"`
	// Limits are what the key has used before the request.
	Limits   []KeyLimit `json:"limits,omitempty"`
	InFlight *KeySlots  `json:"in_flight,omitempty"`
	Override string     `json:"override,omitempty"`
	Ban      *WhyBan    `json:"ban,omitempty"`
	Share    *WhyShare  `json:"share,omitempty"`
	Customer *WhyPlan   `json:"customer,omitempty"`
	Lease    string     `json:"lease,omitempty"`
	Queue    *WhyQueue  `json:"queue,omitempty"`
	// RetrySeconds is the time until the step lets the request go on.
	RetrySeconds float64 `json:"retry_seconds,omitempty"`
	// Unknown is what cannot be known of the step.
	Unknown []string `json:"unknown,omitempty"`
	// Actions are what an operator can do about the step.
	Actions []WhyAction `json:"actions,omitempty"`
}

// WhyBan is the ban of a key.
type WhyBan struct {
	ID       string    `json:"id"`
	Until    time.Time `json:"until"`
	Operator bool      `json:"operator,omitempty"`
	Why      string    `json:"why,omitempty"`
}

// WhyShare is the share of a client of fair share, in units of a cycle, before the request.
type WhyShare struct {
	// Client is the one that the units count for: others for a name without a share of its own.
	Client   string  `json:"client"`
	Default  int64   `json:"default"`
	Size     int64   `json:"size"`
	Admitted int64   `json:"admitted"`
	Refused  int64   `json:"refused"`
	Capacity int64   `json:"capacity"`
	Used     int64   `json:"used"` // by all clients
	Clients  int     `json:"clients"`
	Cycle    float64 `json:"cycle_seconds"`
	Ends     float64 `json:"ends_seconds"` // until the next cycle
}

// WhyPlan is the plan of a customer.
type WhyPlan struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
	Note string `json:"note,omitempty"`
	// Entry says that the customer has an entry. Without one, it has the default plan.
	Entry bool `json:"entry"`
}

// WhyQueue is the state of the throttle.
type WhyQueue struct {
	Class       string `json:"class"`
	Tenant      string `json:"tenant,omitempty"`
	InFlight    int    `json:"in_flight"`
	Concurrency int    `json:"concurrency,omitempty"`
	Queued      int    `json:"queued"`
	Hung        bool   `json:"hung,omitempty"`
	// WaitSeconds is how long the request probably waits; 0 is not known.
	WaitSeconds float64 `json:"wait_seconds,omitempty"`
}

// WhyAction is a command of an operator.
type WhyAction struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}
