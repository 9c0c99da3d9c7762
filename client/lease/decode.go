package client

import (
	"errors"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/lease/holder"
	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// message is a ReportResponse. Its names are copies.
type message struct {
	leases   []state.Lease
	refusals []state.Refusal
	master   string
	draining bool
}

// errMessage says that a message is no ReportResponse, or has more than one may have.
var errMessage = errors.New("lease: an answer is no valid message of headgate.lease.v1: is the address that of a headgate server?")

// decode reads a message, whose bytes may be any.
func (m *message) decode(b []byte) error {
	*m = message{leases: m.leases[:0], refusals: m.refusals[:0]}
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 || len(m.leases)+len(m.refusals) > 2*state.MaxClaims {
			return errMessage
		}
		b = b[n:]
		ok := true
		switch f.ID {
		case wire.Bytes(2):
			m.leases = append(m.leases, state.Lease{})
			ok = decodeLease(f.Bytes, &m.leases[len(m.leases)-1])
		case wire.Bytes(3):
			m.refusals = append(m.refusals, state.Refusal{Err: new(state.Error)})
			ok = decodeRefusal(f.Bytes, &m.refusals[len(m.refusals)-1])
		case wire.Bytes(4):
			m.master, ok = text(f.Bytes, state.MaxName)
		case wire.Varint(5):
			m.draining = f.Number() != 0
		}
		if !ok {
			return errMessage
		}
	}
	return nil
}

func decodeLease(b []byte, l *state.Lease) (ok bool) {
	for ok = true; ok && len(b) > 0; {
		f, n := wire.ReadField(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			l.Resource, ok = text(f.Bytes, state.MaxName)
		case wire.Bytes(2):
			ok = decodeVersion(f.Bytes, &l.Version)
		case wire.Varint(3):
			l.Amount = int64(f.Number())
		case wire.Varint(4):
			l.Seq = f.Number()
		case wire.Varint(5):
			l.Length = duration(f.Number())
		case wire.Varint(6):
			l.Refresh = duration(f.Number())
		case wire.Varint(7):
			l.Safe = int64(f.Number())
		case wire.Varint(8):
			l.Slots = f.Number() != 0
		case wire.Varint(13):
			l.Unknown = duration(f.Number())
		case wire.Varint(14):
			l.Unbacked = f.Number() != 0
		}
	}
	return ok
}

func decodeVersion(b []byte, v *state.Version) bool {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			v.Term = f.Number()
		case wire.Varint(2):
			v.Number = f.Number()
		}
	}
	return true
}

func decodeRefusal(b []byte, r *state.Refusal) (ok bool) {
	for ok = true; ok && len(b) > 0; {
		f, n := wire.ReadField(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			r.Seq = f.Number()
		case wire.Bytes(2):
			r.Err.Resource, ok = text(f.Bytes, state.MaxName)
		case wire.Varint(3):
			r.Err.Code = state.Code(min(f.Number(), uint64(state.Exhausted)))
		case wire.Bytes(4):
			r.Err.Text = strings.ToValidUTF8(string(f.Bytes[:min(len(f.Bytes), holder.MaxText)]), "")
		}
	}
	return ok
}

// text returns a copy of a text of at most so many bytes.
func text(b []byte, most int) (string, bool) {
	if len(b) > most || wire.Check(b) != nil {
		return "", false
	}
	return string(b), true
}

// duration converts microseconds. Negative numbers and those above MaxLength are clamped.
func duration(us uint64) time.Duration {
	const most = uint64(holder.MaxLength / time.Microsecond)
	if int64(us) < 0 {
		return 0
	}
	return time.Duration(min(us, most)) * time.Microsecond
}
