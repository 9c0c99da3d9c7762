package httplimit

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/middleware/fields"
)

// maxViolations bounds the policies that a refused call is told of: some clients
// read no more than 8 KiB of metadata.
const maxViolations = 16

// detail is a message that a program reads of a refusal, and its type.
type detail struct {
	kind    string
	message []byte
}

// details gives an ErrorInfo, a RetryInfo unless no time mends the refusal, and a
// QuotaFailure. They are few and do not change, so that they are written by hand: the
// generated code is no part of a library for HTTP.
func (x *Exchange) details(p *problem, location string) []detail {
	d := &p.refused.Decision
	info := appendText(nil, 1, strings.ToUpper(d.Reason.String()))
	info = appendText(info, 2, "headgate")
	if location != "" {
		info = appendBytes(info, 3, appendText(appendText(nil, 1, "location"), 2, location))
	}
	all := []detail{{"google.rpc.ErrorInfo", info}}
	if p.retryAfter > 0 {
		delay := retryDelay(d, p.retryAfter)
		duration := appendNumber(appendNumber(nil, 1, uint64(delay/time.Second)), 2, uint64(delay%time.Second))
		all = append(all, detail{"google.rpc.RetryInfo", appendBytes(nil, 1, duration)})
	}
	if failure := x.appendViolations(nil); len(failure) > 0 {
		all = append(all, detail{"google.rpc.QuotaFailure", failure})
	}
	return all
}

// retryDelay is exact where it is known; else it is what Retry-After says.
func retryDelay(d *headgate.Decision, seconds int64) time.Duration {
	if d.RetryAfter > 0 {
		return d.RetryAfter
	}
	return time.Duration(seconds) * time.Second
}

// appendViolations appends to a google.rpc.QuotaFailure the policies that refuse.
func (x *Exchange) appendViolations(b []byte) []byte {
	listed := 0
	for i := range x.Answer.Results {
		r := &x.Answer.Results[i]
		if !r.Enforced() || r.Decision.Verdict != headgate.Deny || r.Decision.Reason.Overloaded() {
			continue
		}
		b = appendBytes(b, 1, appendText(appendText(nil, 1, r.Policy), 2, fields.Detail(r)))
		if listed++; listed == maxViolations {
			break
		}
	}
	return b
}

// appendAny appends to a google.rpc.Status a detail of a type.
func appendAny(b []byte, kind string, message []byte) []byte {
	return appendBytes(b, 3, appendBytes(appendText(nil, 1, "type.googleapis.com/"+kind), 2, message))
}

// appendText appends a field of protobuf that is a string, which is UTF-8 always.
func appendText(b []byte, field int, text string) []byte {
	return appendBytes(b, field, []byte(strings.ToValidUTF8(text, "\uFFFD")))
}

// appendBytes appends a field of protobuf that has a length: a string or a message.
func appendBytes(b []byte, field int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// appendNumber appends a field of protobuf that is a number; 0 is left out.
func appendNumber(b []byte, field int, value uint64) []byte {
	if value == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), value)
}
