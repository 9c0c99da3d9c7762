package httplimit

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate/middleware/fields"
)

// The codes of gRPC that a refusal has.
const (
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
	message := fields.Detail(p.refused)
	status := appendText(appendNumber(nil, 1, uint64(code)), 2, message)
	for _, d := range x.details(p, location) {
		status = appendAny(status, d.kind, d.message)
	}
	h := w.Header()
	h["Content-Type"] = []string{kind}
	h[fields.FieldPushback] = []string{fields.Pushback(p.refused)} // grpc-go reads no RetryInfo.
	h["Grpc-Status"] = []string{strconv.Itoa(code)}
	h["Grpc-Message"] = []string{escapeMessage(message)}
	h["Grpc-Status-Details-Bin"] = []string{base64.RawStdEncoding.EncodeToString(status)}
	if p.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(p.retryAfter, 10)}
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
