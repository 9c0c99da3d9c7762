package resp

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/limit"
)

// maxKey bounds the keys of limits that clients send, in bytes.
const maxKey = 1 << 10

// sent is a request to a limit that the client sends.
type sent struct {
	key      []byte
	limit    headgate.Limit
	quantity int64
}

// maxSeconds bounds periods.
const maxSeconds = int64(limit.MaxPer / time.Second)

// fault is an error of a command.
type fault string

// Error implements error.
func (f fault) Error() string { return string(f) }

// readSent reads the arguments of CL.THROTTLE and THROTTLE. least is the least max_burst, and more is
// what the limit has above it.
func readSent(args [][]byte, least, more int64) (s sent, err error) {
	s.key, s.quantity = args[1], 1
	if len(s.key) > maxKey {
		return s, fault(fmt.Sprintf("the key has %d bytes: send at most %d", len(s.key), maxKey))
	}
	burst, err := number(args[2], "max_burst", least, headgate.MaxUnits-1)
	if err != nil {
		return s, err
	}
	if s.limit.Count, err = number(args[3], "count", 1, headgate.MaxUnits); err != nil {
		return s, err
	}
	seconds, err := number(args[4], "period", 1, maxSeconds)
	if err != nil {
		return s, err
	}
	if len(args) > 5 { //nolint:mnd // The quantity is the last argument.
		if s.quantity, err = number(args[5], "quantity", 0, headgate.MaxUnits); err != nil {
			return s, err
		}
	}
	s.limit.Burst, s.limit.Per = burst+more, time.Duration(seconds)*time.Second
	if !exact(s.limit) {
		return s, tooLarge(s.limit.Count, burst, more)
	}
	return s, nil
}

// maxProduct bounds (burst + 1) x count, in lowest terms of count per microseconds: the scripts of the Redis store are
// exact up to it. Every store has this bound, so that the answers do not depend on the store.
const maxProduct = 1 << 52

// exact reports whether every store can count a limit exactly.
func exact(l headgate.Limit) bool {
	if l.Burst < maxProduct/l.Count {
		return true
	}
	a, b := l.Per.Microseconds(), l.Count
	for b != 0 {
		a, b = b, a%b
	}
	return l.Count <= maxProduct/2 && l.Burst < maxProduct/(l.Count/a)
}

// tooLarge says which numbers every store can count.
func tooLarge(count, burst, more int64) error {
	if most := maxProduct / (burst + more + 1); most > 0 {
		return fault(fmt.Sprintf("count %d is too large for max_burst %d: send at most %d", count, burst, most))
	}
	return fault(fmt.Sprintf("max_burst %d is too large: send at most %d", burst, maxProduct-1-more))
}

// number reads a number of a client.
func number(text []byte, name string, least, most int64) (int64, error) {
	n, ok := parseInt(text)
	if !ok || n < least || n > most {
		return 0, fault(fmt.Sprintf("%s is invalid: send a whole number from %d to %d", name, least, most))
	}
	return n, nil
}

// throttled answers CL.THROTTLE and THROTTLE.
func (w *writer) throttled(k kind, d *headgate.Decision, err error) {
	if err != nil {
		w.notThrottled(err)
		return
	}
	if d.Reason == headgate.StoreFull && d.Verdict == headgate.Deny {
		w.failure("UNAVAILABLE", "the store has no capacity for another key: raise max_memory")
		return
	}
	denied := d.Verdict == headgate.Deny
	w.array(5) //nolint:mnd // The answers below.
	if k == kindCell {
		retry := int64(-1)
		if denied && d.Reason != headgate.Never {
			retry = wholeUp(d.RetryAfter)
		}
		w.integer(flag(denied))
		w.integer(d.Limit)
		w.integer(d.Remaining)
		w.integer(retry)
		w.integer(wholeUp(d.ResetAfter))
		return
	}
	retry := int64(0)
	switch {
	case denied && d.Reason == headgate.Never:
		retry = -1
	case denied:
		retry = wholeDown(d.RetryAfter)
	}
	w.integer(flag(!denied))
	w.integer(d.Limit)
	w.integer(d.Remaining)
	w.integer(wholeDown(d.ResetAfter))
	w.integer(retry)
}

func flag(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// notThrottled answers a limit that was not decided.
func (w *writer) notThrottled(err error) {
	if _, failed := errors.AsType[*guard.StoreError](err); failed {
		w.failure("UNAVAILABLE", remote.ErrUnavailable.Error())
		return
	}
	if invalid, ok := errors.AsType[*limit.PolicyError](err); ok {
		w.failure("ERR", "the limit is invalid: "+invalid.Field+" "+invalid.Problem+": "+invalid.Fix)
		return
	}
	w.failure("ERR", err.Error())
}

// parts gives the least max_burst of a command, and what the limit has above it.
func (k kind) parts() (least, more int64) {
	if k == kindCell {
		return 0, 1
	}
	return 1, 0
}
