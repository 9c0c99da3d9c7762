package httplimit

import (
	"net/http"
	"strings"

	"github.com/headgate/headgate/guard"
)

// Reject answers a request that its sender has to change: 400 with a problem document. A
// call of gRPC gets the status INVALID_ARGUMENT under 200, and a call of Connect the
// error invalid_argument. Decide need not have seen r. detail is the program's own words:
// nothing that a client sent belongs in it.
func (x *Exchange) Reject(w http.ResponseWriter, r *http.Request, detail string) {
	x.used, x.query = true, r.URL.RawQuery
	x.Request.Method, x.Request.Header = r.Method, headers(r.Header)
	x.reject(w, detail)
}

// reject answers the request of x. Only clients of gRPC and Connect read details.
func (x *Exchange) reject(w http.ResponseWriter, text string, details ...detail) {
	if kind, call := x.grpcKind(); call {
		answerCall(w, kind, callStatus{code: codeInvalidArgument, message: text, details: details})
		return
	}
	if x.connects() {
		x.answerConnect(w, &connectError{status: http.StatusBadRequest, code: "invalid_argument", message: text, details: details})
		return
	}
	x.Problem(w, http.StatusBadRequest, "Bad Request", text)
}

// badCost gives a google.rpc.BadRequest that names the header of a cost.
func badCost(err *guard.CostError) detail {
	violation := appendText(appendText(nil, 1, strings.ToLower(err.Header)), 2, "The cost "+err.Problem+".")
	return detail{"google.rpc.BadRequest", appendBytes(nil, 1, violation)}
}
