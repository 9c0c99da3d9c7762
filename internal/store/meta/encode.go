package meta

import (
	"strconv"
	"time"
)

// appendRequest writes r as a line of the protocol, followed by its value. number is the opaque of the
// answer.
func appendRequest(b []byte, r *Request, number uint32) []byte {
	switch r.Kind {
	case Get:
		b = append(append(b, "mg "...), r.Key...)
		// h makes the server hold the item's lock until it has read the CAS. Without h, an Increment between the two
		// reads gives the old value with the new CAS (all of 1.6; seen on 1.6.18), and a Set would lose that Increment.
		b = append(b, " v c h"...)
	case Set, Add:
		return appendStore(b, r, number)
	case Increment, Decrement:
		b = appendArithmetic(b, r)
	case Delete:
		b = append(append(b, "md "...), r.Key...)
		b = appendCAS(b, r.CAS)
	case noop:
		return append(b, "mn\r\n"...)
	case stats:
		return append(b, "stats\r\n"...)
	}
	return append(appendFlag(b, 'O', uint64(number)), "\r\n"...)
}

func appendStore(b []byte, r *Request, number uint32) []byte {
	b = append(append(b, "ms "...), r.Key...)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(r.Value)), 10)
	b = append(b, " c"...)
	if r.Kind == Add {
		b = append(b, " ME"...)
	} else {
		b = appendCAS(b, r.CAS)
	}
	b = appendFlag(b, 'T', seconds(r.TTL))
	b = append(appendFlag(b, 'O', uint64(number)), "\r\n"...)
	return append(append(b, r.Value...), "\r\n"...)
}

func appendArithmetic(b []byte, r *Request) []byte {
	b = append(append(b, "ma "...), r.Key...)
	b = append(b, " v"...)
	if r.Kind == Decrement {
		b = append(b, " MD"...)
	}
	b = appendFlag(b, 'D', r.Delta)
	if r.Create {
		b = appendFlag(b, 'N', seconds(r.TTL))
		b = appendFlag(b, 'J', r.Initial)
	}
	return b
}

func appendCAS(b []byte, cas uint64) []byte {
	if cas == 0 {
		return b
	}
	return appendFlag(b, 'C', cas)
}

func appendFlag(b []byte, flag byte, value uint64) []byte {
	return strconv.AppendUint(append(b, ' ', flag), value, 10)
}

// seconds gives a time to live for the server, so that the item lives at least as long: rounded up,
// plus two seconds. An item with n seconds expires at the n-th tick of the server's clock. The
// first tick may come at once. The clock lags by up to a second, and sometimes ticks twice in one.
func seconds(ttl time.Duration) uint64 {
	if ttl <= 0 {
		return 0
	}
	if ttl > MaxTTL-3*time.Second {
		return 0
	}
	return uint64((ttl+time.Second-1)/time.Second) + 2
}
