package fields

import (
	"net/http"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// Status returns the HTTP status of an answer: 200 if the request may pass, and for a
// refusal the status of the rule that decided. A refusal because of our own capacity
// (Reason.Overloaded) is 503, and that of a request without a part of a key 400. After an error of Admit the status is 500.
func Status(a *guard.Answer) int {
	r := a.Closest()
	switch {
	case r == nil && a.Verdict == headgate.Deny: // Admit returned an error.
		return http.StatusInternalServerError
	case r == nil:
		return http.StatusOK
	case r.Decision.Reason == headgate.KeyMissing:
		return http.StatusBadRequest
	case r.Decision.Reason.Overloaded():
		return http.StatusServiceUnavailable
	case r.Rule.Exceed.Status != 0:
		return r.Rule.Exceed.Status
	case r.Rule.Exceed.Action == guard.Redirect:
		return http.StatusFound
	default:
		return http.StatusTooManyRequests
	}
}
