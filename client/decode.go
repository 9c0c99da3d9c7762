package client

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	headgatev1 "github.com/headgate/headgate/internal/proto/headgate/v1"
	"github.com/headgate/headgate/internal/proto/wire"
)

// errWire says that a server answers in another protocol.
var errWire = errors.New("client: the answer of the server is broken")

// reply is the answer to one request, as it came.
type reply struct {
	Answer

	verdict headgatev1.Verdict
	delay   time.Duration
	fault   []byte // a headgate.v1.Error; nil without one
}

// decode reads a headgate.v1.Answer. Texts that many answers have come from names.
func (r *reply) decode(b []byte, names *names) error {
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if err := r.decodeField(&f, names); err != nil {
			return err
		}
	}
	return nil
}

// decodeField reads a field. The wire form of signed numbers, and of those of 32 bits, is a uint64.
func (r *reply) decodeField(f *wire.Field, names *names) (err error) {
	switch f.ID {
	case wire.Varint(1):
		r.verdict = headgatev1.Verdict(f.Number()) // One that is not known refuses.
	case wire.Bytes(2):
		r.Policy, err = names.text(f.Bytes)
	case wire.Bytes(3):
		r.Reason, err = names.text(f.Bytes)
	case wire.Varint(4):
		r.Limit = int64(f.Number())
	case wire.Varint(5):
		r.Remaining = int64(f.Number())
	case wire.Bytes(6):
		r.RetryAfter, err = durationOf(f.Bytes)
	case wire.Bytes(7):
		r.ResetAfter, err = durationOf(f.Bytes)
	case wire.Bytes(8):
		r.delay, err = durationOf(f.Bytes)
	case wire.Bytes(9):
		r.fault = f.Bytes
	case wire.Varint(10):
		r.Quota.Count = int64(f.Number())
	case wire.Bytes(11):
		r.Quota.Per, err = durationOf(f.Bytes)
	case wire.Varint(12):
		r.Status = int(uint32(f.Number()))
	case wire.Bytes(13):
		r.Location, err = textOf(f.Bytes)
	case wire.Bytes(14):
		var mark Header
		mark.Name, mark.Value, err = pairOf(f.Bytes)
		r.Marks = append(r.Marks, mark)
	case wire.Bytes(15):
		var policy string
		policy, err = names.text(f.Bytes)
		r.Violated = append(r.Violated, policy)
	case wire.Varint(16):
		r.Fallback = f.Number() != 0
	case wire.Varint(17):
		r.Metered = int64(f.Number())
	}
	return err
}

// textOf copies a text.
func textOf(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errWire
	}
	return string(b), nil
}

// pairOf reads a name and a value.
func pairOf(b []byte) (name, value string, err error) {
	for len(b) > 0 && err == nil {
		f, n := wire.ReadField(b)
		if n < 0 {
			return "", "", errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Bytes(1):
			name, err = textOf(f.Bytes)
		case wire.Bytes(2):
			value, err = textOf(f.Bytes)
		}
	}
	return name, value, err
}

// durationOf reads a google.protobuf.Duration; a longer one than Go has is the longest.
func durationOf(b []byte) (time.Duration, error) {
	var seconds, nanos int64
	for len(b) > 0 {
		f, n := wire.ReadField(b)
		if n < 0 {
			return 0, errWire
		}
		b = b[n:]
		switch f.ID {
		case wire.Varint(1):
			seconds = int64(f.Number())
		case wire.Varint(2):
			nanos = int64(int32(f.Number()))
		}
	}
	const longest = int64(math.MaxInt64/time.Second) - 2
	switch {
	case seconds > longest:
		return math.MaxInt64, nil
	case seconds < -longest:
		return math.MinInt64, nil
	}
	return time.Duration(seconds)*time.Second + time.Duration(nanos), nil
}

// err gives the error of a request that was not decided.
func (r *reply) err() error {
	if r.fault == nil {
		return nil
	}
	var code codes.Code
	var message, header string
	for rest := r.fault; len(rest) > 0; {
		f, n := wire.ReadField(rest)
		if n < 0 {
			return errWire
		}
		rest = rest[n:]
		switch f.ID {
		case wire.Varint(1):
			code = codes.Code(f.Number())
		case wire.Bytes(2):
			message = string(f.Bytes)
		case wire.Bytes(3):
			header = string(f.Bytes)
		}
	}
	switch code {
	case codes.Unavailable:
		return fmt.Errorf("%w: %s", ErrUnavailable, message)
	case codes.ResourceExhausted:
		return errBusy
	default:
		return &RequestError{Problem: message, Forbidden: code == codes.PermissionDenied, header: header}
	}
}

// names has the texts that come again and again, such as those of limits, so that they take memory once.
type names struct {
	known atomic.Pointer[map[string]string] // replaced for each new text
}

// Bounds of the texts that are kept.
const (
	mostNames  = 1000
	mostLength = 256
)

// text gives the text of some bytes.
func (n *names) text(b []byte) (string, error) {
	known := n.known.Load()
	if known != nil {
		if text, found := (*known)[string(b)]; found {
			return text, nil
		}
	}
	text, err := textOf(b)
	if err != nil {
		return "", err
	}
	if len(b) <= mostLength && (known == nil || len(*known) < mostNames) {
		more := map[string]string{text: text}
		if known != nil {
			more = maps.Clone(*known)
			more[text] = text
		}
		n.known.CompareAndSwap(known, &more) // Another goroutine may win: the text comes again.
	}
	return text, nil
}
