package client

import (
	"errors"
	"net/netip"
	"time"

	"github.com/headgate/headgate"
)

// Request is a request to a service, as the rules of the server see it. Set what they read.
type Request struct {
	// Method, Host and Path are those of the request; Path is decoded.
	Method, Host, Path string
	// IP is the address of the client's connection.
	IP netip.Addr
	// Headers and Cookies have the values that rules read. Names of headers are not case-sensitive.
	Headers, Cookies map[string]string
	// Query has the decoded values of the query that rules read.
	Query map[string]string
	// Subject is that of the verified certificate of the client.
	Subject string
	// Domain and Descriptors are for rules that name them.
	Domain      string
	Descriptors headgate.Descriptors
	// Cost is in units. 0 means that the rules set it.
	Cost int64
}

// Header is a header for the service.
type Header struct{ Name, Value string }

// Answer is the decision on a Request.
type Answer struct {
	// Verdict is Allow or Deny: Decide has waited for a request that had to wait.
	Verdict headgate.Verdict
	// Policy names the limit that decided, and Quota is that limit. Both are zero if no rule matches.
	Policy string
	Quota  headgate.Limit
	// Reason says why, such as "within_limit".
	Reason string
	// Limit is the number of units that the limit admits at once, and Remaining what is left of them.
	Limit, Remaining int64
	// RetryAfter is the time until a refused request can pass; 0 if waiting does not help. ResetAfter
	// is the time until the limit is whole again.
	RetryAfter, ResetAfter time.Duration
	// Status is the HTTP status of a refusal, and Location the target of a rule that redirects.
	Status   int
	Location string
	// Marks are headers for the service: of rules that degrade, and the warning of soft limits.
	Marks []Header
	// Violated names the limits that refuse.
	Violated []string
	// Fallback says that the server's store did not answer. Local says that no server did, and the
	// fallback of the Config decided.
	Fallback, Local bool
	// Metered is the number of the request's units that are beyond the included units of the customer's plan.
	Metered int64
}

// ErrUnavailable says that a request could not be decided: no server answered in time, or its store did
// not.
var ErrUnavailable = errors.New("client: the request could not be decided")

// errBusy says that the server did not decide, because it has no capacity for the caller.
var errBusy = errors.New("client: the server has no capacity for this caller")

// RequestError says what is wrong with a Request, or that the caller may not make it.
type RequestError struct {
	Problem string
	// Forbidden says that the caller may not make the request. Otherwise the request is invalid.
	Forbidden bool

	header string // in which the request states an invalid cost
}

// Error gives the problem and the fix in one line.
func (e *RequestError) Error() string { return "client: " + e.Problem }
