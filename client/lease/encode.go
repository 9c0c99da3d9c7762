package client

import (
	"fmt"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/lease/holder"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// The messages of internal/proto/headgate/lease/v1 are written and read here without the generated code, so that
// a message of a server takes no more memory than the leases that it may have. TestWire compares both.

// encode returns the message of a report.
func encode(r *holder.Report) []byte {
	b := wire.AppendText(nil, 1, r.Holder)
	b = wire.AppendNumber(b, 2, r.Seq)
	for i := range r.Claims {
		b = appendClaim(b, &r.Claims[i])
	}
	for i := range r.Acks {
		a := &r.Acks[i]
		var from int
		b, from = wire.BeginMessage(b, 4)
		b = appendVersion(wire.AppendText(b, 1, a.Resource), 2, a.Version)
		b = wire.EndMessage(wire.AppendNumber(b, 3, uint64(a.Holds)), from)
	}
	return b
}

func appendClaim(b []byte, c *state.Claim) []byte {
	b, from := wire.BeginMessage(b, 3)
	b = wire.AppendText(b, 1, c.Resource)
	b = wire.AppendNumber(b, 2, uint64(c.Wants))
	b = wire.AppendNumber(b, 3, uint64(c.Band))
	b = appendVersion(b, 7, c.Version)
	b = wire.AppendNumber(b, 8, uint64(c.Holds))
	b = wire.AppendNumber(b, 9, uint64((c.Left+time.Microsecond-1)/time.Microsecond)) // It says what may be out.
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

func appendVersion(b []byte, field protowire.Number, v state.Version) []byte {
	b, from := wire.BeginMessage(b, field)
	b = wire.AppendNumber(b, 1, v.Term)
	return wire.EndMessage(wire.AppendNumber(b, 2, v.Number), from)
}

// codec passes encoded messages through gRPC: a mem.Buffer is sent, and a *[]byte receives.
type codec struct{}

// Name is that of the codec that servers have.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(mem.Buffer)
	if !ok {
		return nil, fmt.Errorf("lease: a %T is sent", v)
	}
	return mem.BufferSlice{b}, nil
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("lease: a %T receives", v)
	}
	*to = data.Materialize()
	return nil
}
