package httplimit

import (
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/fields"
)

// Problem answers with a problem document of type about:blank. title and detail must be the
// program's own text, without anything that a client sent.
func (x *Exchange) Problem(w http.ResponseWriter, status int, title, detail string) {
	p := problem{kind: typeBlank, title: title, status: status, detail: detail}
	x.document = p.write(w, x.document)
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
	// retryAfter is in seconds; 0 leaves it out.
	retryAfter int64
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
	if p.refused == nil {
		return append(appendJSON(b, p.detail), '}', '\n')
	}
	b = appendDetail(b, p.refused)
	b = append(b, `,"reason":`...)
	b = appendJSON(b, p.refused.Decision.Reason.String())
	b = append(b, `,"violated-policies":[`...)
	for i, name := range p.violated {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, name)
	}
	return append(b, ']', '}', '\n')
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

// write sends the document. It uses buf as the buffer and returns it.
func (p *problem) write(w http.ResponseWriter, buf []byte) []byte {
	buf = p.append(buf[:0])
	// Middleware may read the fields after the handler returns, so values are not reused.
	h, values := w.Header(), []string{"application/problem+json", strconv.Itoa(len(buf)), "no-store", ""}
	h["Content-Type"], h["Content-Length"], h["Cache-Control"] = values[0:1:1], values[1:2:2], values[2:3:3]
	if p.retryAfter > 0 {
		values[3] = strconv.FormatInt(p.retryAfter, 10)
		h["Retry-After"] = values[3:4:4]
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(buf)
	return buf
}
