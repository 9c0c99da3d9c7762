package httpdecide

import (
	"net/http"
	"strconv"

	"github.com/headgate/headgate/cmd/internal/access"
)

// StatusField has the status of a refusal that is answered with the status of refuse=403.
const StatusField = "Headgate-Status"

// restated gives every refusal one status: some gateways take only 401 and 403 for one. A fault of our own
// is no refusal: its status is 500, which a rule can have too.
type restated struct {
	http.ResponseWriter

	status int
	ruled  bool // A rule refuses.
}

// WriteHeader implements http.ResponseWriter.
func (r *restated) WriteHeader(status int) {
	if status >= http.StatusMultipleChoices && (r.ruled || status != http.StatusInternalServerError) {
		r.Header().Set(StatusField, strconv.Itoa(status))
		status = r.status
	}
	r.ResponseWriter.WriteHeader(status)
}

// restating returns the writer for refusals.
func (q *question) restating(w http.ResponseWriter) http.ResponseWriter {
	if q.refuse == 0 {
		return w
	}
	return &restated{w, q.refuse, false}
}

// ruled returns the writer for the refusal of a rule.
func ruled(refused http.ResponseWriter) http.ResponseWriter {
	if r, restates := refused.(*restated); restates {
		r.ruled = true
	}
	return refused
}

// Refuse answers a subrequest with an error of package access, with the status that the subrequest wants for refusals. A gateway
// above a limit of server.limits gets 503 always: no rule refuses its client, so the gateway does what it does without an answer.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	q, _ := ask(r.URL.RawQuery)
	refuseGateway(w, q.restating(w), err)
}

// refuseGateway answers a subrequest with an error of package access. refused gets refusals, and w the other answers.
func refuseGateway(w, refused http.ResponseWriter, err error) {
	if reason, _ := access.ReasonOf(err); reason == access.Busy {
		refused = w
	}
	access.RefuseSubrequest(refused, err)
}
