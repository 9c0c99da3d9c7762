package proxy

import (
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
)

// The problem types that the RateLimit draft registers with IANA.
const (
	typeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeBlank           = "about:blank"
)

// problem is a problem document (RFC 9457). Its texts are the configuration's and ours.
type problem struct {
	kind, title string
	status      int
	detail      string
	reason      string
	violated    []string
}

// refusal gives the problem document for the enforced results of an answer that
// is refused, named by the closest of them.
func refusal(a *guard.Answer, names []string) problem {
	closest := a.Closest()
	p := problem{
		kind: typeQuotaExceeded, title: "Quota Exceeded", status: closest.Rule.Status,
		reason: closest.Decision.Reason.String(), detail: detail(closest), violated: violated(a, names),
	}
	if p.status == 0 {
		p.status = http.StatusTooManyRequests
	}
	// It is no fault of the client's when there is nothing to count it with.
	if r := closest.Decision.Reason; r == headgate.StoreFull || r == headgate.StoreUnavailable {
		p.kind, p.title, p.status = typeReducedCapacity, "Temporary Reduced Capacity", http.StatusServiceUnavailable
	}
	return p
}

func violated(a *guard.Answer, names []string) []string {
	for i := range a.Results {
		if r := &a.Results[i]; r.Enforced() && r.Decision.Verdict == headgate.Deny {
			names = append(names, r.Policy)
		}
	}
	return names
}

// detail says what happened and what to do.
func detail(r *guard.Result) string {
	wait := strconv.FormatInt(retryAfter(&r.Decision), 10)
	switch r.Decision.Reason {
	case headgate.Never:
		return "The policy " + r.Policy + " never admits a request of this cost: ask for less at once."
	case headgate.QueueFull, headgate.WaitTooLong:
		return "The queue of the policy " + r.Policy + " is full: retry in " + wait + " s."
	case headgate.StoreFull:
		return "There is no room to count another client: retry in " + wait + " s."
	case headgate.StoreUnavailable:
		return "The limits cannot be checked at the moment: retry in " + wait + " s."
	default:
		return "The limit of the policy " + r.Policy + ", " + limitOf(r).String() + ", is used up: retry in " + wait + " s."
	}
}

// append writes the document as JSON, without a map and without reflection: a
// flood is mostly refusals.
func (p *problem) append(b []byte) []byte {
	b = append(b, `{"type":`...)
	b = appendJSON(b, p.kind)
	b = append(b, `,"title":`...)
	b = appendJSON(b, p.title)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"detail":`...)
	b = appendJSON(b, p.detail)
	if p.reason != "" {
		b = append(b, `,"reason":`...)
		b = appendJSON(b, p.reason)
	}
	if len(p.violated) > 0 {
		b = append(b, `,"violated-policies":[`...)
		for i, name := range p.violated {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, name)
		}
		b = append(b, ']')
	}
	return append(b, '}', '\n')
}

// appendJSON writes s as a JSON string.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}

// write answers with the document.
func (p *problem) write(w http.ResponseWriter, buf []byte) []byte {
	buf = p.append(buf[:0])
	h := w.Header()
	h["Content-Type"] = problemContentTypeTable
	h["Content-Length"] = []string{strconv.Itoa(len(buf))}
	h["Cache-Control"] = noStoreTable
	w.WriteHeader(p.status)
	_, _ = w.Write(buf)
	return buf
}
