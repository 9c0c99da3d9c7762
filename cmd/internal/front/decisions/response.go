package decisions

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/proto/wire"
)

// draining is a DecideResponse that asks the client to end the stream.
func draining() []byte { return wire.AppendNumber(nil, 2, 1) }

// encodeReads encodes a DecideResponse that says what the rules read.
func encodeReads(r *remote.Reads) []byte {
	b, from := wire.BeginMessage(nil, 3)
	for field, names := range map[protowire.Number][]string{1: r.Headers, 2: r.Cookies, 3: r.Lines, 4: r.Marks, 8: r.Parts, 9: r.Queries} {
		for _, name := range names {
			b = wire.AppendText(b, field, name)
		}
	}
	for field, set := range map[protowire.Number]bool{5: r.Host, 6: r.Subject, 7: r.PlainParameters} {
		if set {
			b = wire.AppendNumber(b, field, 1)
		}
	}
	return wire.EndMessage(b, from)
}

// encodePart appends the answers of the decided batch to the response.
func (c *call) encodePart() {
	b := c.encoded
	var a remote.Answer
	for i := range c.batch.Len() {
		var from int
		b, from = wire.BeginMessage(b, 1)
		if err := c.batch.Answer(i, &a); err == nil {
			b = c.appendAnswer(b, &a)
		} else {
			b = appendError(b, err)
			c.faults++
			c.access.Refused(err)
		}
		b = wire.EndMessage(b, from)
	}
	c.encoded = b
}

// verdictOf gives the number of a verdict in the protocol, where 0 is no verdict.
func verdictOf(v headgate.Verdict) uint64 { return uint64(v) + 1 }

// beginning is what all answers of one limit with one verdict have in common. Most answers of a message begin as the one
// before, so these fields are encoded once and copied.
type beginning struct {
	verdict headgate.Verdict
	reason  headgate.Reason
	policy  string
	limit   int64
	quota   headgate.Limit
}

// appendBeginning appends the fields of a beginning.
func (c *call) appendBeginning(b []byte, a *remote.Answer) []byte {
	if now := (beginning{a.Verdict, a.Reason, a.Policy, a.Limit, a.Quota}); c.begun != now || len(c.beginning) == 0 {
		e := wire.AppendNumber(c.beginning[:0], 1, verdictOf(a.Verdict))
		e = wire.AppendText(e, 2, a.Policy)
		e = wire.AppendText(e, 3, a.Reason.String())
		e = wire.AppendNumber(e, 4, uint64(a.Limit))
		e = wire.AppendNumber(e, 10, uint64(a.Quota.Count))
		c.begun, c.beginning = now, appendDuration(e, 11, a.Quota.Per)
	}
	return append(b, c.beginning...)
}

// appendAnswer appends the fields of an Answer. Readers of Protocol Buffers take fields in any order.
func (c *call) appendAnswer(b []byte, a *remote.Answer) []byte {
	b = c.appendBeginning(b, a)
	b = wire.AppendNumber(b, 5, uint64(a.Remaining))
	b = appendDuration(b, 6, a.RetryAfter)
	b = appendDuration(b, 7, a.ResetAfter)
	b = appendDuration(b, 8, a.Delay)
	b = wire.AppendNumber(b, 12, uint64(a.Status))
	b = wire.AppendText(b, 13, a.Location)
	if a.Plain() {
		return b
	}
	return appendRest(b, a)
}

// appendRest appends the fields that few answers have. Its closures would keep the bytes of every answer on the stack.
func appendRest(b []byte, a *remote.Answer) []byte {
	a.Marks(func(name, value string) {
		var from int
		b, from = wire.BeginMessage(b, 14)
		b = wire.EndMessage(wire.AppendText(wire.AppendText(b, 1, name), 2, value), from)
	})
	a.Violated(func(policy string) { b = wire.AppendText(b, 15, policy) })
	if a.Fallback {
		b = wire.AppendNumber(b, 16, 1)
	}
	if a.Metered > 0 {
		b = wire.AppendNumber(b, 17, uint64(a.Metered))
	}
	return b
}

// appendDuration appends a google.protobuf.Duration. One of 0 is left out.
func appendDuration(b []byte, field protowire.Number, d time.Duration) []byte {
	if d <= 0 {
		return b
	}
	b, from := wire.BeginMessage(b, field)
	b = wire.AppendNumber(b, 1, uint64(d/time.Second))
	return wire.EndMessage(wire.AppendNumber(b, 2, uint64(d%time.Second)), from)
}

// appendError appends an Answer with an error.
func appendError(b []byte, err error) []byte {
	b, from := wire.BeginMessage(b, 9)
	b = wire.AppendNumber(b, 1, uint64(codeOf(err)))
	b = wire.AppendText(b, 2, err.Error())
	if cost, found := errors.AsType[*guard.CostError](err); found {
		b = wire.AppendText(b, 3, cost.Header)
	}
	return wire.EndMessage(b, from)
}

// codeOf gives the code of a request that could not be decided.
func codeOf(err error) codes.Code {
	_, refused := access.ReasonOf(err)
	switch {
	case refused:
		return access.Code(err)
	case errors.Is(err, remote.ErrUnavailable):
		return codes.Unavailable
	case errors.Is(err, headgate.ErrTooManyPolicies):
		return codes.ResourceExhausted
	default:
		return codes.InvalidArgument
	}
}
