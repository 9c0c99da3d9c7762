package httplimit

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate/middleware/fields"
)

// connectVersion is the header that clients of Connect send with each call but GETs.
const connectVersion = "Connect-Protocol-Version"

// The content types of streams of Connect. A stream is answered with its own.
const (
	connectProto = "application/connect+proto"
	connectJSON  = "application/connect+json"
)

// connectStream tells whether the request is a stream of Connect, and with which
// content type it is answered.
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

// connectUnary tells whether the request is a unary call of Connect: a POST with the
// version of the protocol, or a GET with it in the query.
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

// refuseConnect answers a refused call of Connect in its protocol, and reports whether
// the request is one: clients of Connect take a problem document for an unavailable
// server, and try again at once.
func (x *Exchange) refuseConnect(w http.ResponseWriter, p *problem, location string) bool {
	if !x.connects() {
		return false
	}
	e := connectError{http.StatusTooManyRequests, "resource_exhausted", fields.Detail(p.refused), x.details(p, location), p.retryAfter}
	if p.refused.Decision.Reason.Overloaded() {
		e.status, e.code = http.StatusServiceUnavailable, "unavailable"
	}
	x.answerConnect(w, &e)
	return true
}

// connects tells whether the request is a call of Connect.
func (x *Exchange) connects() bool {
	_, stream := x.connectStream()
	return stream || x.connectUnary()
}

// connectError is an error of Connect, and the status that a unary call has for its code.
// retryAfter is in seconds; 0 leaves it out.
type connectError struct {
	status     int
	code       string
	message    string
	details    []detail
	retryAfter int64
}

// answerConnect ends a call of Connect. A unary call gets the error as the body, under
// its status; a stream gets the message that ends it, under 200.
func (x *Exchange) answerConnect(w http.ResponseWriter, e *connectError) {
	kind, stream := x.connectStream()
	status, b := e.status, x.document[:0]
	if stream {
		// The envelope of the last message: a flag, and the length, which is known below.
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

// append appends the error as JSON. Its details are those of gRPC.
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
