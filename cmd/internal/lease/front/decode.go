package front

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// response is a ReportResponse of the parent.
type response struct {
	leases   []state.Lease
	refusals []*state.Error
	master   string
	draining bool
}

// errResponse says that bytes are no ReportResponse.
var errResponse = errors.New("the answer of the parent is no ReportResponse: check that lease.servers are servers of headgate")

// decodeResponse reads a message of the parent. Its texts are parts of the message.
func decodeResponse(b []byte) (r response, err error) {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return r, errResponse
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(2):
			var l state.Lease
			err = decodeLease(f.Bytes, &l)
			r.leases = append(r.leases, l)
		case wire.Bytes(3):
			refused := new(state.Error)
			err = decodeRefusal(f.Bytes, refused)
			r.refusals = append(r.refusals, refused)
		case wire.Bytes(4):
			r.master, err = wire.Text(f.Bytes)
		case wire.Varint(5):
			r.draining = f.Number() != 0
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func decodeLease(b []byte, l *state.Lease) (err error) {
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errResponse
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			l.Resource, err = wire.Text(f.Bytes)
		case wire.Bytes(2):
			if err = checkFields(f.Bytes); err == nil {
				decodeVersion(f.Bytes, &l.Version)
			}
		case wire.Varint(3):
			l.Amount = amount(f.Number())
		case wire.Varint(4):
			l.Seq = f.Number()
		case wire.Varint(5):
			l.Length = max(microseconds(f.Number()), 0)
		case wire.Varint(6):
			l.Refresh = max(microseconds(f.Number()), 0)
		case wire.Varint(7):
			l.Safe = amount(f.Number())
		case wire.Varint(8):
			l.Slots = f.Number() != 0
		default:
			err = decodeForServer(f, l)
		}
	}
	return err
}

// decodeForServer reads the further fields of a lease.
func decodeForServer(f wire.Field, l *state.Lease) error {
	switch f.ID {
	case wire.Varint(9):
		return addPart(l, f.Number())
	case wire.Bytes(9): // Whole numbers of one field may be packed.
		for packed := f.Bytes; len(packed) > 0; {
			part, n := protowire.ConsumeVarint(packed)
			if n < 0 {
				return errResponse
			}
			packed = packed[n:]
			if err := addPart(l, part); err != nil {
				return err
			}
		}
	case wire.Varint(13):
		l.Unknown = max(microseconds(f.Number()), 0)
	case wire.Varint(14):
		l.Unbacked = f.Number() != 0
	case wire.Varint(10):
		l.Each = amount(f.Number())
	case wire.Varint(11):
		l.Counted = amount(f.Number())
	case wire.Varint(12):
		l.Algorithm = state.Algorithm(min(f.Number(), uint64(state.MaxMin)))
	}
	return nil
}

func addPart(l *state.Lease, part uint64) error {
	if len(l.Parts) == state.MaxBands {
		return errResponse
	}
	l.Parts = append(l.Parts, amount(part))
	return nil
}

// amount bounds an amount of a parent.
func amount(n uint64) int64 { return int64(min(n, uint64(state.MaxAmount))) }

func decodeRefusal(b []byte, e *state.Error) (err error) {
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errResponse
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(2):
			e.Resource, err = wire.Text(f.Bytes)
		case wire.Varint(3):
			e.Code = state.Code(min(f.Number(), uint64(state.Exhausted)))
		case wire.Bytes(4):
			e.Text, err = wire.Text(f.Bytes)
		}
	}
	return err
}
