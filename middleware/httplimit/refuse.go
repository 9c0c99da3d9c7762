package httplimit

import (
	"net/http"
	"strconv"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// The problem types that the RateLimit draft registers with IANA.
const (
	typeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeAbnormalUsage   = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
	typeBlank           = "about:blank"
)

// Refuse answers a request that its rules deny. The response has a status, Retry-After within guard.Config.RetryAfterMax, a
// problem document or the Exceed.Response of the rule, and the Location of a rule that redirects. A gRPC call gets a gRPC
// status with HTTP status 200, and a Connect call gets a Connect error. Refuse does not
// call Announce.
func (x *Exchange) Refuse(w http.ResponseWriter) {
	closest := x.Answer.Closest()
	if closest == nil { // Admit returned an error.
		x.Problem(w, fields.Status(&x.Answer), "Internal Server Error", "The request could not be checked against its limits.")
		return
	}
	x.nameDecision(w)
	x.violated = violated(&x.Answer, x.violated[:0])
	p := problem{kind: typeQuotaExceeded, title: "Quota Exceeded", status: fields.Status(&x.Answer), refused: closest, violated: x.violated}
	redirects := closest.Rule.Exceed.Action == guard.Redirect
	reason := closest.Decision.Reason
	switch {
	case reason.Overloaded():
		p.kind, p.title, redirects = typeReducedCapacity, "Temporary Reduced Capacity", false
	case reason == headgate.KeyMissing:
		p.kind, p.title, redirects = typeBlank, "Bad Request", false
	case reason == headgate.Banned:
		p.kind, p.title = typeAbnormalUsage, "Abnormal Usage Detected"
	}
	p.retryAfter = fields.Seconds(fields.Delay(&x.Answer))
	if !closest.Final() {
		p.exact = fields.RetryAfter(closest)
	}
	x.crossOrigin(w)
	var elsewhere string
	if redirects {
		elsewhere = fields.Location(closest.Rule.Exceed.Location, x.Request.Path)
	}
	if kind, call := x.grpcKind(); call {
		x.refuseCall(w, kind, &p, elsewhere)
		return
	}
	if x.refuseConnect(w, &p, elsewhere) {
		return
	}
	if redirects {
		w.Header()["Location"] = []string{elsewhere}
	}
	if fields.Discourages(&x.Answer) {
		w.Header()["X-Should-Retry"] = []string{"false"}
	}
	if ms := fields.RetryMilliseconds(&x.Answer); ms > 0 {
		w.Header()[fields.FieldRetryMilliseconds] = []string{strconv.FormatInt(ms, 10)}
	}
	if t := closest.Response(x.Request.Path); t == nil || !x.respond(w, &p, t) {
		x.document = x.cached.append(x.document[:0], &p)
	}
	p.send(w, x.document)
}

// violated appends the names of the enforced policies that refuse.
func violated(a *guard.Answer, names []string) []string {
	for i := range a.Results {
		if r := &a.Results[i]; r.Enforced() && r.Decision.Verdict == headgate.Deny {
			names = append(names, r.Policy)
		}
	}
	return names
}

// nameDecision adds the field with which a client can report its refusal.
func (x *Exchange) nameDecision(w http.ResponseWriter) {
	if x.Instance != "" {
		w.Header()[guard.DecisionField] = []string{string(x.Answer.DecisionID().AppendTo(x.document[:0], x.Instance))}
	}
}
