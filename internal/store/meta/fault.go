package meta

import (
	"errors"
	"fmt"
)

// Fault is why a Do has no answers although its requests were fit to be sent.
//
// Sent false is a promise: no byte of the requests has left, and the server has done
// nothing. Sent true says that it may have done all, some or none of them: what could
// have been counted is to be held as counted.
type Fault struct { //nolint:errname // because it is no error of the request: it tells what may have been done
	// Addr is the server's address.
	Addr string
	// Sent reports whether any byte may have left.
	Sent bool
	// Err is the cause: a context's error, ErrBusy, ErrClosed, ErrStalled, or of the network or the protocol.
	Err error
}

// Error gives the cause and what may have been done.
func (f *Fault) Error() string {
	if f.Sent {
		return fmt.Sprintf("memcached %s: no answer, and what was asked may have been done: hold it as counted: %v", f.Addr, f.Err)
	}
	return fmt.Sprintf("memcached %s: nothing was sent: ask again later: %v", f.Addr, f.Err)
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Sent reports whether, for all that err tells, a byte of the requests may have left.
// It is false for nil and for requests that were not fit to be sent.
func Sent(err error) bool {
	var fault *Fault
	return errors.As(err, &fault) && fault.Sent
}

// Causes of a Fault.
var (
	// ErrBusy: as many requests as may wait do.
	ErrBusy = errors.New("too many requests wait for the server: send fewer, or raise MaxWaiting")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the client is closed: use a new one")
	// ErrStalled: the server took requests and has been silent for StallTimeout.
	ErrStalled = errors.New("the server is silent: look whether it runs and the network delivers")
	// ErrProtocol: what came is no answer to what was asked. It is wrapped with what came.
	ErrProtocol = errors.New("not an answer of memcached 1.6: look at what listens there")
)
