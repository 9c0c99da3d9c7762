package httplimit

import (
	"bytes"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// Problem answers with a problem document of type about:blank. title and detail must be the
// program's own text, without anything that a client sent.
func (x *Exchange) Problem(w http.ResponseWriter, status int, title, detail string) {
	p := problem{kind: typeBlank, title: title, status: status, detail: detail}
	x.document = p.append(x.document[:0])
	x.crossOrigin(w)
	p.send(w, x.document)
}

// problem is a problem document (RFC 9457) and its header fields. Its texts come from the
// configuration and this package.
type problem struct {
	kind, title string
	status      int
	// detail is the text, unless refused is set. refused is the result that refuses.
	detail   string
	refused  *guard.Result
	violated []string
	// retryAfter is in seconds; 0 leaves it out. exact are the seconds in the sentence about refused; 0 for none.
	retryAfter, exact int64
	// media is the field Content-Type of another body than the document; nil is that of the document.
	media []string
}

// append writes the document as JSON. It uses no map and no reflection, because refusals
// must be cheap during a flood of requests.
func (p *problem) append(b []byte) []byte {
	b = append(b, `{"type":`...)
	b = appendJSON(b, p.kind)
	b = append(b, `,"title":`...)
	b = appendJSON(b, p.title)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"detail":`...)
	from := len(b)
	if p.refused == nil {
		b = appendJSON(b, p.detail)
	} else {
		b = appendDetail(b, p.refused)
	}
	detail := b[from:]
	code := ""
	if p.refused != nil {
		code = p.refused.Decision.Reason.String()
		b = append(b, `,"reason":`...)
		b = appendJSON(b, code)
		b = append(b, `,"violated-policies":[`...)
		for i, name := range p.violated {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, name)
		}
		b = append(b, ']')
	}
	return p.appendError(b, code, detail)
}

// appendError ends the document with the members that client libraries read in place of those of RFC 9457: message, and error in the
// form of the APIs of Stripe and OpenAI. detail is the sentence as JSON.
func (p *problem) appendError(b []byte, code string, detail []byte) []byte {
	b = append(append(b, `,"message":`...), detail...)
	b = append(append(b, `,"error":{"type":"`...), p.errorType()...)
	if code != "" {
		b = append(append(b, `","code":"`...), code...)
	}
	return append(append(append(b, `","message":`...), detail...), '}', '}', '\n')
}

// errorType is the type of the member error. Clients of several APIs compare these words.
func (p *problem) errorType() string {
	switch {
	case p.refused != nil && p.refused.Decision.Reason.Overloaded():
		return "overloaded_error"
	case p.refused != nil:
		return "rate_limit_error"
	case p.status < http.StatusInternalServerError:
		return "invalid_request_error"
	default:
		return "api_error"
	}
}

// appendDetail writes the sentence about a refusal as a JSON string. It writes directly
// into b, and starts over only if a name needs escaping.
func appendDetail(b []byte, refused *guard.Result) []byte {
	from := len(b)
	b = fields.AppendDetail(append(b, '"'), refused)
	for _, c := range b[from+1:] {
		if escapes(rune(c)) || c >= utf8.RuneSelf {
			return appendJSON(b[:from], fields.Detail(refused))
		}
	}
	return append(b, '"')
}

// appendJSON writes s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // start of the text that needs no escaping
	for i, c := range s {
		if !escapes(c) && c != utf8.RuneError {
			continue
		}
		b = append(b, s[from:i]...)
		_, size := utf8.DecodeRuneInString(s[i:])
		from = i + size
		switch c {
		case '"', '\\':
			b = append(b, '\\', byte(c))
		case utf8.RuneError:
			b = utf8.AppendRune(b, c)
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}

// escapes reports whether c needs escaping in JSON, or is a control character for a
// terminal.
func escapes(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c == 0x7f }

// cachedDocument caches the document of a refusal under one limit. Only the seconds differ between refusals with the same
// limit and reason, so a flood of them writes the rest once. The zero cachedDocument is ready to use.
type cachedDocument struct {
	rule   *guard.Rule // nil without a document
	policy string
	limit  headgate.Limit
	reason headgate.Reason
	status int
	// text is the document without the seconds, and cuts are their places in it. The document of a final refusal has none.
	text []byte
	cuts [sentences]int
}

// append does what append of p does.
func (c *cachedDocument) append(b []byte, p *problem) []byte {
	r := p.refused
	if len(p.violated) != 1 || p.violated[0] != r.Policy || r.Decision.Reason == headgate.KeyMissing {
		return p.append(b) // A missing part is one of several.
	}
	same := c.rule == r.Rule && c.policy == r.Policy && c.limit == r.Limit && c.reason == r.Decision.Reason && c.status == p.status
	if !same || c.rule == nil {
		from := len(b)
		b = p.append(b)
		c.note(b[from:], p)
		return b
	}
	from := 0
	if p.exact > 0 {
		var text [digits]byte
		seconds := strconv.AppendInt(text[:0], p.exact, 10)
		for _, cut := range c.cuts {
			b = append(append(b, c.text[from:cut]...), seconds...)
			from = cut
		}
	}
	return append(b, c.text[from:]...)
}

// note keeps the document of p.
func (c *cachedDocument) note(document []byte, p *problem) {
	r := p.refused
	c.rule, c.text = nil, c.text[:0]
	if p.exact > 0 {
		var text [64]byte
		sought := append(strconv.AppendInt(append(text[:0], retryIn...), p.exact, 10), unit...)
		for i := range c.cuts {
			at := bytes.Index(document, sought)
			if at < 0 {
				return
			}
			c.text = append(c.text, document[:at+len(retryIn)]...)
			c.cuts[i], document = len(c.text), document[at+len(sought)-len(unit):]
		}
	}
	c.rule, c.policy, c.limit, c.reason, c.status = r.Rule, r.Policy, r.Limit, r.Decision.Reason, p.status
	c.text = append(c.text, document...)
}

// retryIn comes before the seconds in the sentence of fields.AppendDetail, and unit after them. No name can imitate
// unit, because its quotes would be escaped. A document has the sentence in detail, message and error.
const (
	retryIn   = ": retry in "
	unit      = ` s."`
	sentences = 3
)

// values has the header fields of a document in one allocation. It is never reused, because other middleware may read the fields
// after the handler returns.
type values struct {
	list   [4]string
	digits [2 * digits]byte
}

// digits is enough for the length of a document, and for the seconds of the longest time.Duration.
const digits = 10

const mediaProblem = "application/problem+json"

// send sends the document with its header fields.
func (p *problem) send(w http.ResponseWriter, document []byte) {
	h, v := w.Header(), new(values)
	number := strconv.AppendInt(v.digits[:0], int64(len(document)), 10)
	v.list[0], v.list[1], v.list[2] = mediaProblem, fields.Shared(number), "no-store"
	h["Content-Type"], h["Content-Length"], h["Cache-Control"] = v.list[0:1:1], v.list[1:2:2], v.list[2:3:3]
	if p.media != nil {
		h["Content-Type"] = p.media
	}
	if p.retryAfter > 0 {
		v.list[3] = fields.Shared(strconv.AppendInt(number[len(number):], p.retryAfter, 10))
		h["Retry-After"] = v.list[3:4:4]
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(document)
}
