package front

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// appendLease appends a lease of a ReportResponse.
func appendLease(b []byte, l *state.Lease) []byte {
	b, from := wire.BeginMessage(b, 2)
	b = wire.AppendText(b, 1, l.Resource)
	b = appendVersion(b, 2, l.Version)
	b = wire.AppendNumber(b, 3, uint64(l.Amount))
	b = wire.AppendNumber(b, 4, l.Seq)
	b = wire.AppendNumber(b, 5, uint64(l.Length/time.Microsecond)) // Rounded down: the holder ends first.
	b = wire.AppendNumber(b, 6, uint64(l.Refresh/time.Microsecond))
	b = wire.AppendNumber(b, 7, uint64(l.Safe))
	if l.Slots {
		b = wire.AppendNumber(b, 8, 1)
	}
	if len(l.Parts) > 0 {
		var packed int
		b, packed = wire.BeginMessage(b, 9)
		for _, part := range l.Parts {
			b = protowire.AppendVarint(b, uint64(part))
		}
		b = wire.EndMessage(b, packed)
	}
	b = wire.AppendNumber(b, 10, uint64(l.Each))
	b = wire.AppendNumber(b, 11, uint64(l.Counted))
	b = wire.AppendNumber(b, 12, uint64(l.Algorithm))
	b = wire.AppendNumber(b, 13, uint64(l.Unknown/time.Microsecond))
	if l.Unbacked {
		b = wire.AppendNumber(b, 14, 1)
	}
	return wire.EndMessage(b, from)
}

func appendVersion(b []byte, field protowire.Number, v state.Version) []byte {
	b, from := wire.BeginMessage(b, field)
	b = wire.AppendNumber(b, 1, v.Term)
	return wire.EndMessage(wire.AppendNumber(b, 2, v.Number), from)
}

// appendRefusal appends a refusal of a ReportResponse.
func appendRefusal(b []byte, seq uint64, err *state.Error) []byte {
	b, from := wire.BeginMessage(b, 3)
	b = wire.AppendNumber(b, 1, seq)
	b = wire.AppendText(b, 2, err.Resource)
	b = wire.AppendNumber(b, 3, uint64(err.Code))
	return wire.EndMessage(wire.AppendText(b, 4, textOf(err)), from)
}

// textOf is what a holder sees of an error. The resource has a field of its own.
func textOf(err *state.Error) string {
	if err.Field == "" {
		return err.Text
	}
	return err.Field + ": " + err.Text
}

// draining is a ReportResponse that asks for the end of the stream.
func draining() []byte { return wire.AppendNumber(nil, 5, 1) }

// encodeReport encodes a ReportRequest to the parent.
func encodeReport(holder string, r *state.Report) []byte {
	b := wire.AppendText(nil, 1, holder)
	b = wire.AppendNumber(b, 2, r.Seq)
	for i := range r.Claims {
		b = appendClaim(b, &r.Claims[i])
	}
	for _, a := range r.Acks {
		var from int
		b, from = wire.BeginMessage(b, 4)
		b = wire.AppendText(b, 1, a.Resource)
		b = appendVersion(b, 2, a.Version)
		b = wire.EndMessage(wire.AppendNumber(b, 3, uint64(a.Holds)), from)
	}
	return b
}

func appendClaim(b []byte, c *state.Claim) []byte {
	b, from := wire.BeginMessage(b, 3)
	b = wire.AppendText(b, 1, c.Resource)
	b = wire.AppendNumber(b, 2, uint64(c.Wants))
	b = wire.AppendNumber(b, 3, uint64(c.Band))
	for _, bucket := range c.Curve {
		var at int
		b, at = wire.BeginMessage(b, 4)
		b = wire.AppendNumber(b, 1, uint64(bucket.Band))
		b = wire.AppendNumber(b, 2, uint64(bucket.Weight))
		b = wire.EndMessage(wire.AppendNumber(b, 3, uint64(bucket.Wants)), at)
	}
	b = wire.AppendNumber(b, 5, uint64(c.Holders))
	if c.Learning {
		b = wire.AppendNumber(b, 6, 1)
	}
	b = appendVersion(b, 7, c.Version)
	b = wire.AppendNumber(b, 8, uint64(c.Holds))
	left := c.Left / time.Microsecond
	if c.Left%time.Microsecond > 0 {
		left++ // It says what may be out.
	}
	b = wire.AppendNumber(b, 9, uint64(left))
	if c.Release {
		b = wire.AppendNumber(b, 10, 1)
	}
	b = wire.AppendNumber(b, 11, uint64(c.Spent))
	b = wire.AppendNumber(b, 12, uint64(c.Refused))
	if c.Unbacked {
		b = wire.AppendNumber(b, 13, 1)
	}
	return wire.EndMessage(b, from)
}
