package httplimit

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/fields"
)

// connectVersion is the header that Connect clients send with each POST call.
const connectVersion = "Connect-Protocol-Version"

// The content types of Connect streams. The response to a stream uses the same type.
const (
	connectProto = "application/connect+proto"
	connectJSON  = "application/connect+json"
)

// connectStream reports whether the request is a Connect stream. kind is the content type
// of the response.
func (x *Exchange) connectStream() (kind string, ok bool) {
	if x.Request.Method != http.MethodPost {
		return "", false
	}
	sent, _ := x.Request.Header.Lookup("Content-Type")
	sent, _, _ = strings.Cut(sent, ";")
	for _, kind := range [...]string{connectProto, connectJSON} {
		if strings.EqualFold(strings.TrimSpace(sent), kind) {
			return kind, true
		}
	}
	return "", false
}

// connectUnary reports whether the request is a unary Connect call. The call is a POST with
// the protocol version in a header, or a GET with the version in its query.
func (x *Exchange) connectUnary() bool {
	switch x.Request.Method {
	case http.MethodPost:
		version, _ := x.Request.Header.Lookup(connectVersion)
		return version == "1"
	case http.MethodGet:
		for pair := range strings.SplitSeq(x.query, "&") {
			if pair == "connect=v1" {
				return true
			}
		}
	}
	return false
}

// refuseConnect answers a refused Connect call in its protocol, and reports whether the
// request is a Connect call. Connect clients would treat a problem document as an
// unavailable server and retry at once.
func (x *Exchange) refuseConnect(w http.ResponseWriter, p *problem, location string) bool {
	if !x.connects() {
		return false
	}
	e := connectError{http.StatusTooManyRequests, "resource_exhausted", fields.Detail(p.refused), x.details(p, location), p.retryAfter}
	switch reason := p.refused.Decision.Reason; {
	case reason.Overloaded():
		e.status, e.code = http.StatusServiceUnavailable, "unavailable"
	case reason == headgate.KeyMissing:
		e.status, e.code = http.StatusBadRequest, "invalid_argument"
	}
	x.answerConnect(w, &e)
	return true
}

// connects reports whether the request is a Connect call.
func (x *Exchange) connects() bool {
	if x.Plain {
		return false
	}
	_, stream := x.connectStream()
	return stream || x.connectUnary()
}

// connectError is a Connect error. status is the HTTP status of a unary call with this
// code. retryAfter is in seconds; 0 leaves it out.
type connectError struct {
	status     int
	code       string
	message    string
	details    []detail
	retryAfter int64
}

// answerConnect ends a Connect call. A unary call gets the error as the body, with its
// status. A stream gets an end-of-stream message with status 200.
func (x *Exchange) answerConnect(w http.ResponseWriter, e *connectError) {
	kind, stream := x.connectStream()
	status, b := e.status, x.document[:0]
	if stream {
		// The envelope of the last message has a flag and the length, which is set below.
		b = append(b, 2, 0, 0, 0, 0)
		b = append(b, `{"error":`...)
	}
	b = e.append(b)
	if stream {
		b = append(b, '}')
		binary.BigEndian.PutUint32(b[1:], uint32(len(b)-5))
		status = http.StatusOK
	} else {
		kind = "application/json"
	}
	h := w.Header()
	h["Content-Type"], h["Content-Length"] = []string{kind}, []string{strconv.Itoa(len(b))}
	h["Cache-Control"] = []string{"no-store"}
	if e.retryAfter > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(e.retryAfter, 10)}
	}
	w.WriteHeader(status)
	_, _ = w.Write(b)
	x.document = b
}

// append appends the error as JSON. Its details are the same messages as in gRPC.
func (e *connectError) append(b []byte) []byte {
	b = appendJSON(append(b, `{"code":`...), e.code)
	b = appendJSON(append(b, `,"message":`...), e.message)
	if len(e.details) == 0 {
		return append(b, '}')
	}
	b = append(b, `,"details":[`...)
	for i, d := range e.details {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(append(b, `{"type":`...), d.kind)
		b = append(b, `,"value":"`...)
		b = base64.RawStdEncoding.AppendEncode(b, d.message)
		b = append(b, '"', '}')
	}
	return append(b, ']', '}')
}
