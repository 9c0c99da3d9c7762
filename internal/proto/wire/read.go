package wire

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrUTF8 says that a text contains invalid UTF-8.
var ErrUTF8 = errors.New("the request contains invalid UTF-8: send all texts in UTF-8")

// Field is a field of an encoded message. Its four words stay in registers: with a fifth, each ReadField would wait for copies on the
// stack, which cost more than reading.
type Field struct {
	ID ID
	// Bytes are a part of the message: the content of a field of bytes, or an encoded varint.
	Bytes []byte
}

// Number is the value of a varint.
func (f Field) Number() uint64 {
	if len(f.Bytes) == 1 {
		return uint64(f.Bytes[0])
	}
	n, _ := protowire.ConsumeVarint(f.Bytes) // ReadField has checked it.
	return n
}

// ID is the number and the type of a field.
type ID uint64

// Bytes is the ID of a field of bytes: a text, or a message.
func Bytes(number protowire.Number) ID { return ID(protowire.EncodeTag(number, protowire.BytesType)) }

// Varint is the ID of a whole number, a boolean or an enum.
func Varint(number protowire.Number) ID { return ID(protowire.EncodeTag(number, protowire.VarintType)) }

// ReadField reads the first field of an encoded message, and returns its length. The length is below 0
// if the bytes are no field. Most fields have one byte for their tag and one for their length.
func ReadField(b []byte) (Field, int) {
	const more, kinds = 1 << 7, 1<<3 - 1
	if len(b) < 2 || b[0]|b[1] >= more || b[0] <= kinds {
		return readLongField(b)
	}
	kind, end := protowire.Type(b[0]&kinds), 2+int(b[1])
	if kind == protowire.BytesType && end <= len(b) {
		return Field{ID: ID(b[0]), Bytes: b[2:end:end]}, end
	}
	if kind == protowire.VarintType {
		return Field{ID: ID(b[0]), Bytes: b[1:2:2]}, 2
	}
	return readLongField(b)
}

// readLongField is ReadField for all fields.
func readLongField(b []byte) (Field, int) {
	id, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return Field{}, n
	}
	number, kind := protowire.DecodeTag(id)
	if number < protowire.MinValidNumber || number > protowire.MaxValidNumber {
		return Field{}, -1
	}
	var length int
	f := Field{ID: ID(id)}
	switch kind {
	case protowire.BytesType:
		f.Bytes, length = protowire.ConsumeBytes(b[n:])
	case protowire.VarintType:
		if _, length = protowire.ConsumeVarint(b[n:]); length >= 0 {
			f.Bytes = b[n : n+length]
		}
	default:
		length = protowire.ConsumeFieldValue(number, kind, b[n:])
	}
	if length < 0 {
		return Field{}, length
	}
	return f, n + length
}

// Text is a part of a message as a string. Nothing may write to the message afterwards. The error is
// ErrUTF8.
func Text(b []byte) (string, error) {
	if err := Check(b); err != nil {
		return "", err
	}
	return Checked(b), nil
}

// IsASCII reports that all bytes are ASCII. Texts in them need no Check.
func IsASCII(b []byte) bool {
	const high = 0x80
	for len(b) >= 8 {
		if binary.NativeEndian.Uint64(b)&(high*0x0101010101010101) != 0 {
			return false
		}
		b = b[8:]
	}
	var all byte
	for _, c := range b {
		all |= c
	}
	return all < high
}

// Check reports ErrUTF8 for a part of a message that is no text.
func Check(b []byte) error {
	if !utf8.Valid(b) {
		return ErrUTF8
	}
	return nil
}

// Checked is Text for a part that Check has accepted.
func Checked(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // A copy would be an allocation for each text.
}

// EachMessage visits the messages in one field of an encoded message. It stops at bytes that are no
// message: decoding them fails there too.
func EachMessage(b []byte, field protowire.Number, visit func(message []byte)) {
	for len(b) > 0 {
		f, n := ReadField(b)
		if n < 0 {
			return
		}
		if f.ID == Bytes(field) {
			visit(f.Bytes)
		}
		b = b[n:]
	}
}
