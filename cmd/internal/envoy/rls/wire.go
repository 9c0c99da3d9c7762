package rls

import (
	"bytes"
	"errors"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/proto/wire"
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

// errWire says that bytes are no RateLimitRequest.
var errWire = errors.New("the request is no RateLimitRequest: its wire form is broken")

// decode reads the wire form of a request. It copies the bytes once; all texts are parts of the copy.
func (r *wireRequest) decode(b []byte) error {
	r.domain, r.hits, r.descriptors, r.entries = "", 0, r.descriptors[:0], r.entries[:0]
	own := bytes.Clone(b)
	for len(own) > 0 {
		f, n := wire.ReadField(own)
		if n < 0 {
			return errWire
		}
		own = own[n:]
		var err error
		switch f.ID {
		case wire.Bytes(1):
			r.domain, err = wire.Text(f.Bytes)
		case wire.Bytes(fieldDescriptors):
			err = r.decodeDescriptor(f.Bytes)
		case wire.Varint(3):
			r.hits = uint32(f.Number()) // Generated types cut numbers too.
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
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var err error
		switch f.ID {
		case wire.Bytes(fieldEntries):
			d.entries++
			err = r.decodeEntry(f.Bytes)
		case wire.Bytes(2):
			d.hasLimit = true
			err = d.limit.decode(f.Bytes)
		case wire.Bytes(3):
			d.hasHits = true
			err = decodeNumber(f.Bytes, &d.hits)
		case wire.Varint(4):
			d.negative = f.Number() != 0
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
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var err error
		switch f.ID {
		case wire.Bytes(1):
			e.Name, err = wire.Text(f.Bytes)
		case wire.Bytes(2):
			e.Value, err = wire.Text(f.Bytes)
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
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			l.requests = uint32(f.Number())
		case wire.Varint(2):
			l.unit = int32(f.Number())
		case wire.Bytes(3):
			multiplier := uint64(l.multiplier)
			if err := decodeNumber(f.Bytes, &multiplier); err != nil {
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
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		if f.ID == wire.Varint(1) {
			*value = f.Number()
		}
		b = b[n:]
	}
	return nil
}
