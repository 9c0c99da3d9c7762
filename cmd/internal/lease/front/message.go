package front

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/proto/wire"
)

// Bounds of messages.
const (
	// maxMessage bounds a report, in bytes.
	maxMessage = 1 << 20
	// leastHolder is the least length of the name of a holder, in bytes: 16 random bytes in base64.
	leastHolder = 22
)

// errWire says that bytes are no ReportRequest.
var errWire = errors.New("the message is no ReportRequest: its wire form is broken")

// size is what a message has.
type size struct{ claims, acks, buckets int }

// memory is the memory of a decoded message and of the answers to it, in bytes.
func (measured *size) memory(length int) int64 {
	const claim, ack, bucket = 800, 64, 24
	return int64(length) + int64(measured.claims)*claim + int64(measured.acks)*ack + int64(measured.buckets)*bucket
}

// measure counts what a message has, and reports the first fault of its form.
func measure(b []byte) (measured size, err error) {
	if len(b) > maxMessage {
		return measured, fmt.Errorf("the message has %d bytes: send at most %d", len(b), maxMessage)
	}
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return measured, errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			err = wire.Check(f.Bytes)
		case wire.Bytes(3):
			measured.claims++
			err = measured.measureClaim(f.Bytes)
		case wire.Bytes(4):
			measured.acks++
			err = measured.measureAck(f.Bytes)
		}
	}
	if err == nil && (measured.claims > state.MaxClaims || measured.acks > state.MaxClaims) {
		err = fmt.Errorf("claims: %d claims and %d acks: send at most %d", measured.claims, measured.acks, state.MaxClaims)
	}
	return measured, err
}

func (measured *size) measureClaim(b []byte) (err error) {
	buckets := 0
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			err = wire.Check(f.Bytes)
		case wire.Bytes(4):
			buckets++
			err = checkFields(f.Bytes)
		case wire.Bytes(7):
			err = checkFields(f.Bytes)
		}
	}
	if err == nil && buckets > state.MaxBuckets {
		return fmt.Errorf("claims[%d].curve: %d buckets: send at most %d", measured.claims-1, buckets, state.MaxBuckets)
	}
	measured.buckets += buckets
	return err
}

func (measured *size) measureAck(b []byte) (err error) {
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			err = wire.Check(f.Bytes)
		case wire.Bytes(2):
			err = checkFields(f.Bytes)
		}
	}
	return err
}

// checkFields checks the form of a message of numbers.
func checkFields(b []byte) error {
	for len(b) > 0 {
		_, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
	}
	return nil
}

// decodeReport reads a message that measure has accepted. All texts are parts of the message.
func decodeReport(b []byte, measured size) state.Report {
	r := state.Report{Claims: make([]state.Claim, 0, measured.claims), Acks: make([]state.Ack, 0, measured.acks)}
	buckets := make([]state.Bucket, 0, measured.buckets)
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			r.Holder = wire.Checked(f.Bytes)
		case wire.Varint(2):
			r.Seq = f.Number()
		case wire.Bytes(3):
			from := len(buckets)
			var claim state.Claim
			buckets = decodeClaim(f.Bytes, &claim, buckets)
			if len(buckets) > from {
				claim.Curve = buckets[from:len(buckets):len(buckets)]
			} else if claim.Holders != 0 || claim.Learning {
				claim.Curve = []state.Bucket{} // A server whose holders want nothing.
			}
			r.Claims = append(r.Claims, claim)
		case wire.Bytes(4):
			r.Acks = append(r.Acks, decodeAck(f.Bytes))
		}
	}
	return r
}

// decodeClaim reads a claim, and appends its curve to buckets.
func decodeClaim(b []byte, c *state.Claim, buckets []state.Bucket) []state.Bucket {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			c.Resource = wire.Checked(f.Bytes)
		case wire.Varint(2):
			c.Wants = int64(f.Number())
		case wire.Varint(3):
			c.Band = int(uint32(f.Number()))
		case wire.Bytes(4):
			buckets = append(buckets, decodeBucket(f.Bytes))
		case wire.Varint(5):
			c.Holders = int64(f.Number())
		case wire.Varint(6):
			c.Learning = f.Number() != 0
		case wire.Bytes(7):
			decodeVersion(f.Bytes, &c.Version)
		case wire.Varint(8):
			c.Holds = int64(f.Number())
		case wire.Varint(9):
			c.Left = microseconds(f.Number())
		case wire.Varint(10):
			c.Release = f.Number() != 0
		case wire.Varint(11):
			c.Spent = int64(f.Number())
		case wire.Varint(12):
			c.Refused = int64(f.Number())
		case wire.Varint(13):
			c.Unbacked = f.Number() != 0
		}
	}
	return buckets
}

func decodeBucket(b []byte) (bucket state.Bucket) {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			bucket.Band = int(uint32(f.Number()))
		case wire.Varint(2):
			bucket.Weight = int64(f.Number())
		case wire.Varint(3):
			bucket.Wants = int64(f.Number())
		}
	}
	return bucket
}

func decodeVersion(b []byte, v *state.Version) {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			v.Term = f.Number()
		case wire.Varint(2):
			v.Number = f.Number()
		}
	}
}

func decodeAck(b []byte) (a state.Ack) {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			a.Resource = wire.Checked(f.Bytes)
		case wire.Bytes(2):
			decodeVersion(f.Bytes, &a.Version)
		case wire.Varint(3):
			a.Holds = int64(f.Number())
		}
	}
	return a
}

// microseconds converts an int64 of microseconds. Longer times become the longest Duration.
func microseconds(n uint64) time.Duration {
	us := int64(n)
	const most = math.MaxInt64 / int64(time.Microsecond)
	if us > most || us < -most {
		us = max(min(us, most), -most)
	}
	return time.Duration(us) * time.Microsecond
}
