package httplimit

import (
	"net/http"

	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/internal/fields"
	"github.com/headgate/headgate/rule"
)

// response is the memory for the values of a refusal.Template.
type response struct {
	values refusal.Values
	detail []byte
	key    []byte
	limit  []byte
	names  *rule.KeyNames
}

// respond sets the header fields of a rule's Exceed.Response, and writes its body into x.document. It returns false if the client gets
// the problem document.
func (x *Exchange) respond(w http.ResponseWriter, p *problem, t *refusal.Template) bool {
	h, v := w.Header(), x.valuesOf(p, t)
	t.Header(v, func(name string, lines []string) { h[name] = lines })
	accept := ""
	if t.ByAccept() {
		h["Vary"] = append(h["Vary"], "Accept")
		accept, _ = x.Request.Header.Lookup("Accept")
	}
	if !t.HasBody(accept) {
		return false
	}
	h["X-Content-Type-Options"] = noSniffTable
	if policy := t.Policy(); policy != nil {
		h["Content-Security-Policy"] = policy
	}
	p.media = t.ContentType()
	x.document = t.AppendBody(x.document[:0], v)
	return true
}

// noSniffTable keeps a browser from guessing another type than that for which values are escaped.
var noSniffTable = []string{"nosniff"}

// valuesOf returns the values that t uses. They are valid until the next call.
func (x *Exchange) valuesOf(p *problem, t *refusal.Template) *refusal.Values {
	m, d := &x.response, &p.refused.Decision
	v := &m.values
	*v = refusal.Values{
		RetryAfter: p.retryAfter, Reset: fields.Seconds(d.RetryAfter), Remaining: d.Remaining, Status: p.status,
		Policy: p.refused.Policy, Title: p.title, Reason: d.Reason.String(), ErrorType: p.errorType(),
	}
	if v.Reset == 0 {
		v.Reset = fields.Seconds(d.ResetAfter)
	}
	if t.UsesDetail() {
		m.detail = fields.AppendDetail(m.detail[:0], p.refused)
		v.Detail = m.detail
	}
	if t.UsesLimit() {
		m.limit = p.refused.Limit.AppendTo(m.limit[:0])
		v.Limit = m.limit
	}
	if t.UsesKey() {
		if m.names == nil {
			m.names = rule.PlainKeyNames() // The client reads its own values.
		}
		m.key = p.refused.AppendKey(m.key[:0], m.names)
		v.Key = m.key
	}
	if t.UsesRequestID() {
		name := x.RequestID
		if name == "" {
			name = "X-Request-Id"
		}
		v.RequestID, _ = x.Request.Header.Lookup(name)
	}
	return v
}
