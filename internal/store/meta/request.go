package meta

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what a Request asks for.
type Kind uint8

const (
	// Get reads a value and its CAS. Status: OK or NotFound.
	Get Kind = iota
	// Set stores a value: in any case when CAS is 0, else only if the item still has
	// that CAS. Status: OK; with a CAS also Exists (somebody was faster) and NotFound.
	Set
	// Add stores a value if there is none. Status: OK or Exists.
	Add
	// Increment adds Delta to a number. Where there is none and Create is set, it stores
	// Initial, to which Delta is not added. Status: OK, with Number, or NotFound.
	// 2^64 - 1 plus 1 is 0.
	Increment
	// Decrement is Increment downwards. It stops at 0.
	Decrement
	// Delete removes an item: in any case when CAS is 0, else only if the item still
	// has that CAS. Status: OK, NotFound; with a CAS also Exists.
	Delete

	// The client's own: what Ping and Stats send.
	noop
	stats
)

// Request is one thing to ask. The client has copied what it needs of Key and Value
// when Do returns, whatever Do returns.
type Request struct {
	Kind Kind
	// Key is at most MaxKey bytes without spaces and control characters.
	Key string
	// Value is what Set and Add store: any bytes, at most Config.MaxValue of them.
	Value []byte
	// CAS is what an earlier Response gave; 0 asks for none.
	CAS uint64
	// TTL is how long Set, Add, and Increment and Decrement where they create, keep the
	// item at least; the server may evict it earlier for want of room. 0 is for ever.
	//
	// The server counts in whole seconds of a clock that lags by up to one and catches
	// up at once, so up to three seconds are added. A TTL above MaxTTL is for ever: the
	// protocol would read it as a date.
	TTL time.Duration
	// Create makes Increment and Decrement store Initial where there is no number yet.
	Create bool
	// Delta is what Increment adds and Decrement subtracts.
	Delta uint64
	// Initial is what a number that Create makes begins with.
	Initial uint64
}

// Status is what became of a Request.
type Status uint8

const (
	// OK: done; for Get: found.
	OK Status = iota
	// NotFound: there is no such item.
	NotFound
	// Exists: Add found an item, or the item has another CAS than the request's.
	Exists
	// Refused: the server stored nothing, for the reason in Response.Message: it has no
	// room, or Increment met what is no number. A Set that found no room may have
	// removed the item that was there.
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
	// Value is what Get found. Do writes over the bytes that the Response had before:
	// who uses responses again allocates nothing.
	Value []byte
	// CAS names this version of the item: after Get, Set and Add.
	CAS uint64
	// Number is what Increment and Decrement have made.
	Number uint64
	// Message is what the server said with Refused, shortened, without control characters.
	Message string
}

// Bounds of a request.
const (
	// MaxKey is the greatest length of a key, in bytes.
	MaxKey = 250
	// MaxTTL is the greatest time to live that the server counts; above it an item is kept for ever.
	MaxTTL = 30 * 24 * time.Hour
	// MaxRequests is how many requests one Do may carry.
	MaxRequests = 1024
	// MaxBytes bounds what waits to be written on one connection, and the values of one Do's answers.
	MaxBytes = 8 << 20
)

// Errors of requests that cannot be sent. Nothing of their Do is.
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

// check tells why r cannot be sent.
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

// validKey reports whether key can stand in a line. Bytes above 0x7f can: the
// server reads no characters.
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
