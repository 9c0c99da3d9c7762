package httplimit

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/fields"
)

// maxViolations bounds the policies in a refusal, because some clients accept at most 8 KiB
// of metadata.
const maxViolations = 16

// detail is a protobuf message about a refusal for programs, and its type.
type detail struct {
	kind    string
	message []byte
}

// details returns an ErrorInfo, a QuotaFailure, and a RetryInfo if waiting helps. The
// messages are encoded by hand, because an HTTP library should not import generated types.
func (x *Exchange) details(p *problem, location string) []detail {
	d := &p.refused.Decision
	info := appendText(nil, 1, strings.ToUpper(d.Reason.String()))
	info = appendText(info, 2, "headgate")
	if location != "" {
		info = appendBytes(info, 3, appendText(appendText(nil, 1, "location"), 2, location))
	}
	all := []detail{{"google.rpc.ErrorInfo", info}}
	if delay := fields.Delay(&x.Answer); delay > 0 {
		duration := appendNumber(appendNumber(nil, 1, uint64(delay/time.Second)), 2, uint64(delay%time.Second))
		all = append(all, detail{"google.rpc.RetryInfo", appendBytes(nil, 1, duration)})
	}
	if failure := x.appendViolations(nil); len(failure) > 0 {
		all = append(all, detail{"google.rpc.QuotaFailure", failure})
	}
	return all
}

// appendViolations appends the refusing policies to a google.rpc.QuotaFailure.
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

// appendAny appends a detail of the given type to a google.rpc.Status.
func appendAny(b []byte, kind string, message []byte) []byte {
	return appendBytes(b, 3, appendBytes(appendText(nil, 1, "type.googleapis.com/"+kind), 2, message))
}

// appendText appends a protobuf string field. Protobuf strings must be valid UTF-8.
func appendText(b []byte, field int, text string) []byte {
	return appendBytes(b, field, []byte(strings.ToValidUTF8(text, "\uFFFD")))
}

// appendBytes appends a length-delimited protobuf field: a string or a message.
func appendBytes(b []byte, field int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// appendNumber appends a protobuf integer field; 0 is left out.
func appendNumber(b []byte, field int, value uint64) []byte {
	if value == 0 {
		return b
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), value)
}
