package httplimit

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate/guard"
)

// Reject answers an invalid request with 400 and a problem document. A gRPC call gets the
// status INVALID_ARGUMENT with HTTP status 200, and a Connect call gets the error
// invalid_argument. Reject works without a prior Admit. detail must be the program's own
// text, without anything that a client sent.
func (x *Exchange) Reject(w http.ResponseWriter, r *http.Request, detail string) {
	x.used, x.query = true, r.URL.RawQuery
	x.Request.Method, x.Request.Header = r.Method, headers(r.Header)
	x.reject(w, detail)
}

// reject answers the request of x. Only gRPC and Connect clients read details.
func (x *Exchange) reject(w http.ResponseWriter, text string, details ...detail) {
	if kind, call := x.grpcKind(); call {
		x.crossOrigin(w)
		answerCall(w, kind, callStatus{code: codeInvalidArgument, message: text, details: details})
		return
	}
	if x.connects() {
		x.crossOrigin(w)
		x.answerConnect(w, &connectError{status: http.StatusBadRequest, code: "invalid_argument", message: text, details: details})
		return
	}
	x.Problem(w, http.StatusBadRequest, "Bad Request", text)
}

// badCost returns a google.rpc.BadRequest that names the header of an invalid cost.
func badCost(err *guard.CostError) detail {
	violation := appendText(appendText(nil, 1, strings.ToLower(err.Header)), 2, "The cost "+err.Problem+".")
	return detail{"google.rpc.BadRequest", appendBytes(nil, 1, violation)}
}
