package meta

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the operation of a Request.
type Kind uint8

const (
	// Get reads a value and its CAS. Status: OK or NotFound.
	Get Kind = iota
	// Set stores a value. With a CAS, it stores only if the item still has that CAS. Status: OK;
	// with a CAS also Exists (another client has written) and NotFound.
	Set
	// Add stores a value if there is none. Status: OK or Exists.
	Add
	// Increment adds Delta to a number. If there is none and Create is set, it stores Initial
	// without Delta. Status: OK, with Number, or NotFound. 2^64 - 1 plus 1 is 0.
	Increment
	// Decrement subtracts Delta like Increment adds it. It stops at 0.
	Decrement
	// Delete removes an item. With a CAS, it removes only an item that still has that CAS. Status:
	// OK, NotFound; with a CAS also Exists.
	Delete

	// The request of Ping and Stats.
	noop
	stats
)

// Request is one request. After Do, the client uses neither Key nor Value.
type Request struct {
	Kind Kind
	// Key is at most MaxKey bytes without spaces and control characters.
	Key string
	// Value is the value for Set and Add: up to Config.MaxValue bytes.
	Value []byte
	// CAS is the CAS of an earlier Response; 0 sets no condition.
	CAS uint64
	// TTL is the shortest lifetime of the item, for Set and Add, and for Increment and Decrement
	// when they create. A full server may evict the item earlier. 0 means for ever.
	//
	// The server counts whole seconds of a clock that lags by up to one second and catches up at
	// once. So up to three seconds are added. A TTL above MaxTTL means for ever: the protocol would
	// read it as a date.
	TTL time.Duration
	// Create makes Increment and Decrement store Initial if there is no number.
	Create bool
	// Delta is the number that Increment adds and Decrement subtracts.
	Delta uint64
	// Initial is the first value of a number made by Create.
	Initial uint64
}

// Status is the result of a Request.
type Status uint8

const (
	// OK: done; for Get: found.
	OK Status = iota
	// NotFound: there is no such item.
	NotFound
	// Exists: Add found an item, or the item has another CAS.
	Exists
	// Refused: the server stored nothing. Response.Message has the reason: the server is full, or
	// Increment found no number. A Set to a full server may have removed the old item.
	Refused
)

// String gives the status in words.
func (s Status) String() string {
	switch s {
	case OK:
		return "ok"
	case NotFound:
		return "not found"
	case Exists:
		return "exists"
	case Refused:
		return "refused"
	default:
		return fmt.Sprintf("status(%d)", uint8(s))
	}
}

// Response is the answer to one Request.
type Response struct {
	Status Status
	// Value is the value found by Get. Do overwrites the previous bytes, so reused responses need
	// no allocation.
	Value []byte
	// CAS identifies this version of the item: after Get, Set and Add.
	CAS uint64
	// Number is the new number after Increment and Decrement.
	Number uint64
	// Message is the server's message with Refused, shortened and without control characters.
	Message string
}

// Bounds of a request.
const (
	// MaxKey is the longest key, in bytes.
	MaxKey = 250
	// MaxTTL is the longest time to live of the protocol. A longer one keeps the item for ever.
	MaxTTL = 30 * 24 * time.Hour
	// MaxRequests bounds the requests of one Do.
	MaxRequests = 1024
	// MaxBytes bounds the queued bytes of one connection, and the values in the answers of one Do.
	MaxBytes = 8 << 20
)

// Errors of invalid requests. No request of their Do is sent.
var (
	// ErrKey: a key is empty, too long, or has a byte that would end it.
	ErrKey = errors.New("meta: key is empty, longer than 250 bytes, or has a space or a control character: send a digest of it")
	// ErrValue: a value is above Config.MaxValue.
	ErrValue = errors.New("meta: value is too long: store less, or raise MaxValue and the server's item size")
	// ErrTTL: a time to live is negative.
	ErrTTL = errors.New("meta: negative time to live: use Delete")
	// ErrKind: a request has no kind that callers may use.
	ErrKind = errors.New("meta: unknown kind of request: use Get, Set, Add, Increment, Decrement or Delete")
	// ErrRequests: there are more requests than MaxRequests or than responses.
	ErrRequests = errors.New("meta: more than 1024 requests, more bytes than 8 MiB, or fewer responses than requests: send less at once")
)

// check gives the error of an invalid request.
func (r *Request) check(maxValue int) error {
	switch {
	case r.Kind > Delete:
		return ErrKind
	case !validKey(r.Key):
		return ErrKey
	case len(r.Value) > maxValue:
		return ErrValue
	case r.TTL < 0:
		return ErrTTL
	}
	return nil
}

// validKey reports whether a line can have the key. Bytes above 0x7f are allowed: the server does
// not decode them.
func validKey(key string) bool {
	if key == "" || len(key) > MaxKey {
		return false
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] == 0x7f {
			return false
		}
	}
	return true
}
