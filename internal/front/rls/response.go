package rls

import (
	"encoding/binary"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// encode encodes the answer of a call. over says that the call is over its limits. The bytes are valid
// until the call is released.
func (s *Service) encode(c *call, over bool) (answer []byte, err error) {
	if over && c.options.ShadowMode {
		s.shadowed.Add(1)
		over = false
	}
	b := appendNumber(c.encoded[:0], 1, uint64(codeOf(over)))
	for i := range c.statuses {
		b = appendMessage(b, 2, &c.statuses[i], appendStatus)
	}
	c.encoded = b
	if rest := c.rest(); rest != nil {
		c.encoded, err = proto.MarshalOptions{}.MarshalAppend(b, rest)
	}
	return c.encoded, err
}

// appendStatus appends a DescriptorStatus.
func appendStatus(b []byte, s *descriptorStatus) []byte {
	b = appendNumber(b, 1, uint64(codeOf(s.over)))
	if s.limit.Per > 0 {
		b = appendMessage(b, 2, s, appendLimit)
	}
	b = appendNumber(b, 3, uint64(clamp(s.remaining)))
	if s.reset > 0 {
		b = appendMessage(b, 4, s, appendReset)
	}
	return b
}

// appendLimit appends the RateLimit of a status. A period without a unit shows in the name, unless
// the limit has one.
func appendLimit(b []byte, s *descriptorStatus) []byte {
	unit := unitOf(s.limit.Per)
	b = appendNumber(b, 1, uint64(clamp(s.limit.Count)))
	b = appendNumber(b, 2, uint64(unit))
	name := s.name
	if name == "" && unit == unknownUnit {
		name = s.limit.String()
	}
	if name != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), name)
	}
	return b
}

// appendReset appends the time until the reset as a Duration.
func appendReset(b []byte, s *descriptorStatus) []byte {
	return appendNumber(b, 1, uint64(s.reset/time.Second))
}

// appendNumber appends a varint. A number of 0 is left out.
func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// appendMessage appends a message that content appends. Its length takes one byte, or more bytes if it
// is above 127: then the content moves.
func appendMessage(b []byte, field protowire.Number, s *descriptorStatus, content func([]byte, *descriptorStatus) []byte) []byte {
	b = append(protowire.AppendTag(b, field, protowire.BytesType), 0)
	from := len(b)
	b = content(b, s)
	length := len(b) - from
	if length < 1<<7 {
		b[from-1] = byte(length)
		return b
	}
	var prefix [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(prefix[:], uint64(length))
	b = append(b, prefix[1:n]...) // Room for the longer length.
	copy(b[from-1+n:], b[from:from+length])
	copy(b[from-1:], prefix[:n])
	return b
}

// clamp fits a number into 32 bits.
func clamp(n int64) uint32 { return uint32(max(0, min(n, unlimited))) }
