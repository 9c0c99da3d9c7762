package rls

import (
	"bytes"
	"errors"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate"
)

// Generated types take 400 allocations to decode a request of 100 descriptors. This file reads the
// wire form of RateLimitRequest into the working memory of a call. FuzzDecode compares it with the
// generated types.

// wireRequest is a request as it came, before any check of its content.
type wireRequest struct {
	domain      string
	hits        uint32 // 0 is a request without hits_addend
	descriptors []wireDescriptor
	entries     []headgate.DescriptorEntry // of all descriptors
}

// wireDescriptor is a descriptor as it came.
type wireDescriptor struct {
	entries  int // the number of its entries
	hits     uint64
	hasHits  bool
	negative bool
	hasLimit bool
	limit    wireLimit
}

// wireLimit is a limit that was sent with a descriptor.
type wireLimit struct {
	requests, multiplier uint32
	hasMultiplier        bool
	unit                 int32
}

// Errors of bytes that are no RateLimitRequest.
var (
	errWire = errors.New("the request is no RateLimitRequest: its wire form is broken")
	errUTF8 = errors.New("the request contains invalid UTF-8: send domains, keys and values in UTF-8")
)

// decode reads the wire form of a request. It copies the bytes once; all texts are parts of the copy.
func (r *wireRequest) decode(b []byte) error {
	r.domain, r.hits, r.descriptors, r.entries = "", 0, r.descriptors[:0], r.entries[:0]
	own := bytes.Clone(b)
	for len(own) > 0 {
		f, n := readField(own)
		if n < 0 {
			return errWire
		}
		own = own[n:]
		var err error
		switch f.id {
		case bytesField(1):
			r.domain, err = textOf(f.bytes)
		case bytesField(fieldDescriptors):
			err = r.decodeDescriptor(f.bytes)
		case varintField(3):
			r.hits = uint32(f.number) // Generated types cut numbers too.
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *wireRequest) decodeDescriptor(b []byte) error {
	r.descriptors = append(r.descriptors, wireDescriptor{})
	d := &r.descriptors[len(r.descriptors)-1]
	for len(b) > 0 {
		f, n := readField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var err error
		switch f.id {
		case bytesField(fieldEntries):
			d.entries++
			err = r.decodeEntry(f.bytes)
		case bytesField(2):
			d.hasLimit = true
			err = d.limit.decode(f.bytes)
		case bytesField(3):
			d.hasHits = true
			err = decodeNumber(f.bytes, &d.hits)
		case varintField(4):
			d.negative = f.number != 0
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *wireRequest) decodeEntry(b []byte) error {
	var e headgate.DescriptorEntry
	for len(b) > 0 {
		f, n := readField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var err error
		switch f.id {
		case bytesField(1):
			e.Name, err = textOf(f.bytes)
		case bytesField(2):
			e.Value, err = textOf(f.bytes)
		}
		if err != nil {
			return err
		}
	}
	r.entries = append(r.entries, e)
	return nil
}

// decode adds the fields of a limit: a message that is sent in parts is one message.
func (l *wireLimit) decode(b []byte) error {
	for len(b) > 0 {
		f, n := readField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.id {
		case varintField(1):
			l.requests = uint32(f.number)
		case varintField(2):
			l.unit = int32(f.number)
		case bytesField(3):
			multiplier := uint64(l.multiplier)
			if err := decodeNumber(f.bytes, &multiplier); err != nil {
				return err
			}
			l.multiplier, l.hasMultiplier = uint32(multiplier), true
		}
	}
	return nil
}

// decodeNumber reads the value of a UInt64Value or UInt32Value, if the message has one.
func decodeNumber(b []byte, value *uint64) error {
	for len(b) > 0 {
		f, n := readField(b)
		if n < 0 {
			return errWire
		}
		if f.id == varintField(1) {
			*value = f.number
		}
		b = b[n:]
	}
	return nil
}

// wireField is a field of an encoded message.
type wireField struct {
	id     fieldID
	bytes  []byte // of a field of bytes
	number uint64 // of a varint
}

// fieldID is the number and the type of a field. A known number with another type is an unknown field.
type fieldID uint64

func bytesField(number protowire.Number) fieldID {
	return fieldID(protowire.EncodeTag(number, protowire.BytesType))
}

func varintField(number protowire.Number) fieldID {
	return fieldID(protowire.EncodeTag(number, protowire.VarintType))
}

// readField reads the first field of an encoded message, and returns its length. The length is below 0
// if the bytes are no field. Most fields have one byte for their tag and one for their length.
func readField(b []byte) (wireField, int) {
	const more, kinds = 1 << 7, 1<<3 - 1
	if len(b) < 2 || b[0]|b[1] >= more || b[0] <= kinds {
		return readLongField(b)
	}
	kind, end := protowire.Type(b[0]&kinds), 2+int(b[1])
	if kind == protowire.BytesType && end <= len(b) {
		return wireField{id: fieldID(b[0]), bytes: b[2:end:end]}, end
	}
	if kind == protowire.VarintType {
		return wireField{id: fieldID(b[0]), number: uint64(b[1])}, 2
	}
	return readLongField(b)
}

// readLongField is readField for all fields.
func readLongField(b []byte) (wireField, int) {
	id, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return wireField{}, n
	}
	number, kind := protowire.DecodeTag(id)
	if number < protowire.MinValidNumber || number > protowire.MaxValidNumber {
		return wireField{}, -1
	}
	var length int
	f := wireField{id: fieldID(id)}
	switch kind {
	case protowire.BytesType:
		f.bytes, length = protowire.ConsumeBytes(b[n:])
	case protowire.VarintType:
		f.number, length = protowire.ConsumeVarint(b[n:])
	default:
		length = protowire.ConsumeFieldValue(number, kind, b[n:])
	}
	if length < 0 {
		return wireField{}, length
	}
	return f, n + length
}

// textOf is a part of the copy of a request as a string. Nothing writes to the copy.
func textOf(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errUTF8
	}
	return unsafe.String(unsafe.SliceData(b), len(b)), nil //nolint:gosec // A copy would be an allocation for each text.
}
