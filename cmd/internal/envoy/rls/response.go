package rls

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/proto/wire"
)

// encode encodes the answer of a call. over says that the call is over its limits. The bytes are valid
// until the call is released.
func (s *Service) encode(c *call, over bool) (answer []byte, err error) {
	if over && c.options.ShadowMode {
		s.shadowed.Add(1)
		over = false
	}
	b := wire.AppendNumber(c.encoded[:0], 1, uint64(codeOf(over)))
	for i := range c.statuses {
		b = appendStatus(b, &c.statuses[i])
	}
	c.encoded = b
	if rest := c.rest(); rest != nil {
		c.encoded, err = proto.MarshalOptions{}.MarshalAppend(b, rest)
	}
	return c.encoded, err
}

// appendStatus appends a DescriptorStatus.
func appendStatus(b []byte, s *descriptorStatus) []byte {
	b, from := wire.BeginMessage(b, 2)
	b = wire.AppendNumber(b, 1, uint64(codeOf(s.over)))
	if s.limit.HasPeriod() {
		b = appendLimit(b, s)
	}
	b = wire.AppendNumber(b, 3, uint64(clamp(s.remaining)))
	if s.reset > 0 {
		var reset int
		b, reset = wire.BeginMessage(b, 4)
		b = wire.EndMessage(wire.AppendNumber(b, 1, uint64(s.reset/time.Second)), reset)
	}
	return wire.EndMessage(b, from)
}

// appendLimit appends the RateLimit of a status. A period without a unit shows in the name, unless
// the limit has one.
func appendLimit(b []byte, s *descriptorStatus) []byte {
	b, from := wire.BeginMessage(b, 2)
	unit := unitOf(s.limit)
	b = wire.AppendNumber(b, 1, uint64(clamp(s.limit.Count)))
	b = wire.AppendNumber(b, 2, uint64(unit))
	name := s.name
	if name == "" && unit == unknownUnit {
		name = s.limit.String()
	}
	return wire.EndMessage(wire.AppendText(b, 3, name), from)
}

// clamp fits a number into 32 bits.
func clamp(n int64) uint32 { return uint32(max(0, min(n, unlimited))) }
