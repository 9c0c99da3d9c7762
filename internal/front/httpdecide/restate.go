package httpdecide

import (
	"net/http"
	"strconv"

	"github.com/headgate/headgate/internal/access"
)

// StatusField has the status of a refusal that is answered with the status of refuse=403.
const StatusField = "Headgate-Status"

// restated gives every refusal one status: some gateways take only 401 and 403 for one. A fault of our own
// is no refusal.
type restated struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *restated) WriteHeader(status int) {
	if status >= http.StatusMultipleChoices && status != http.StatusInternalServerError {
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
	return &restated{w, q.refuse}
}

// Refuse answers a subrequest with an error of package access, as access.RefuseHTTP does, with the status that the
// subrequest wants for refusals.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	q, _ := ask(r.URL.RawQuery)
	access.RefuseHTTP(q.restating(w), err)
}
