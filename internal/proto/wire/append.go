package wire

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// AppendNumber appends a varint. A number of 0 is left out.
func AppendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return appendVarint(appendTag(b, field, protowire.VarintType), n)
}

// AppendText appends a text. An empty one is left out.
func AppendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return append(appendVarint(appendTag(b, field, protowire.BytesType), uint64(len(text))), text...)
}

// BeginMessage begins a message in a field. The caller appends its content, and calls EndMessage with
// from.
func BeginMessage(b []byte, field protowire.Number) (begun []byte, from int) {
	b = append(appendTag(b, field, protowire.BytesType), 0)
	return b, len(b)
}

// EndMessage writes the length of the message that began at from. The length takes one byte, or more
// bytes if it is above 127: then the content moves.
func EndMessage(b []byte, from int) []byte {
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

// small bounds the numbers that one byte has. The compiler inlines what treats them, and not protowire.
const small = 1 << 7

func appendVarint(b []byte, n uint64) []byte {
	if n < small {
		return append(b, byte(n))
	}
	return protowire.AppendVarint(b, n)
}

// appendTag appends the tag of a field; fields below 16 have a tag of one byte.
func appendTag(b []byte, field protowire.Number, kind protowire.Type) []byte {
	return appendVarint(b, uint64(field)<<3|uint64(kind))
}
