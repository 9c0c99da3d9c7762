package httplimit

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/fields"
)

// The gRPC codes of our responses.
const (
	codeInvalidArgument   = 3
	codeResourceExhausted = 8
	codeUnavailable       = 14
)

// grpcKindNames are the content types of gRPC calls, longest first. A response has the
// content type of its call.
var grpcKindNames = [...]string{"application/grpc-web-text", "application/grpc-web", "application/grpc"}

// grpcKind reports whether the request is a gRPC call, and the content type of the
// response. All gRPC calls are POST. For other methods a cache could store a refusal with
// status 200 as the page.
func (x *Exchange) grpcKind() (kind string, ok bool) {
	if x.Plain || x.Request.Method != http.MethodPost {
		return "", false
	}
	sent, _ := x.Request.Header.Lookup("Content-Type")
	for _, kind := range grpcKindNames {
		if len(sent) < len(kind) || !strings.EqualFold(sent[:len(kind)], kind) {
			continue
		}
		if rest := sent[len(kind):]; rest == "" || strings.IndexByte("+; ", rest[0]) >= 0 {
			return kind, true
		}
	}
	return "", false
}

// refuseCall answers a refused gRPC call with a status instead of a document. gRPC clients
// do not read documents, and treat 429 as an unavailable server. The status equals that
// of middleware/grpclimit. The response has only a header, which gRPC reads as the
// trailer ("Trailers-Only").
func (x *Exchange) refuseCall(w http.ResponseWriter, kind string, p *problem, location string) {
	code := codeResourceExhausted
	switch reason := p.refused.Decision.Reason; {
	case reason.Overloaded():
		code = codeUnavailable
	case reason == headgate.KeyMissing:
		code = codeInvalidArgument
	}
	w.Header()[fields.FieldPushback] = []string{fields.Pushback(p.refused)} // grpc-go does not read RetryInfo.
	answerCall(w, kind, callStatus{code, fields.Detail(p.refused), x.details(p, location), p.retryAfter})
}

// callStatus is a gRPC status. retryAfter is in seconds; 0 leaves it out.
type callStatus struct {
	code       int
	message    string
	details    []detail
	retryAfter int64
}

// answerCall ends a gRPC call with a Trailers-Only response.
func answerCall(w http.ResponseWriter, kind string, s callStatus) {
	h := w.Header()
	h["Content-Type"] = []string{kind}
	h["Grpc-Status"] = []string{strconv.Itoa(s.code)}
	h["Grpc-Message"] = []string{escapeMessage(s.message)}
	if len(s.details) > 0 {
		status := appendText(appendNumber(nil, 1, uint64(s.code)), 2, s.message)
		for _, d := range s.details {
			status = appendAny(status, d.kind, d.message)
		}
		h["Grpc-Status-Details-Bin"] = []string{base64.RawStdEncoding.EncodeToString(status)}
	}
	if s.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(s.retryAfter, 10)}
	}
	w.WriteHeader(http.StatusOK)
}

// escapeMessage encodes a message for the grpc-message header. Printable ASCII stays, and
// all other bytes become %XX. A limit in microseconds has such bytes.
func escapeMessage(message string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(message))
	for _, c := range []byte(message) {
		if c < ' ' || c > '~' || c == '%' {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}
