package httplimit

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate/middleware/fields"
)

// The codes of gRPC that our answers have.
const (
	codeInvalidArgument   = 3
	codeResourceExhausted = 8
	codeUnavailable       = 14
)

// grpcKindNames are the content types of calls, longest first. A call is answered
// with its own.
var grpcKindNames = [...]string{"application/grpc-web-text", "application/grpc-web", "application/grpc"}

// grpcKind tells whether the request is a call of gRPC, which are all POST, and with
// which content type it is answered. What is no POST may be answered from a cache,
// where a refusal under 200 would be kept for the page.
func (x *Exchange) grpcKind() (kind string, ok bool) {
	if x.Request.Method != http.MethodPost {
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

// refuseCall answers a call of gRPC with a status instead of a document: clients
// of gRPC read no document, and take 429 for a server that is not there. The status
// is that of a server with middleware/grpclimit. There is nothing but the header,
// which gRPC takes for the trailer then ("Trailers-Only").
func (x *Exchange) refuseCall(w http.ResponseWriter, kind string, p *problem, location string) {
	code := codeResourceExhausted
	if p.refused.Decision.Reason.Overloaded() {
		code = codeUnavailable
	}
	w.Header()[fields.FieldPushback] = []string{fields.Pushback(p.refused)} // grpc-go reads no RetryInfo.
	answerCall(w, kind, callStatus{code, fields.Detail(p.refused), x.details(p, location), p.retryAfter})
}

// callStatus is a status of gRPC. retryAfter is in seconds; 0 leaves it out.
type callStatus struct {
	code       int
	message    string
	details    []detail
	retryAfter int64
}

// answerCall ends a call of gRPC before it has begun.
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

// escapeMessage writes a message as gRPC's headers hold it: printable ASCII as it
// is, and the rest, which a limit of microseconds has, as %XX.
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
