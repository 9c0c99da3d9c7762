package meta

import (
	"errors"
	"fmt"
)

// Fault says why a Do with valid requests has no answers.
//
// Sent false is a guarantee: no byte of the requests was sent, and the server has done nothing.
// Sent true says that the server may have done all, some or none of them. Treat units that may have
// been counted as counted.
type Fault struct { //nolint:errname // because it is no error of the request: it tells what may have been done
	// Addr is the server's address.
	Addr string
	// Sent reports whether a byte may have been sent.
	Sent bool
	// Err is the cause: a context's error, ErrBusy, ErrClosed, ErrStalled, or an error of the
	// network or the protocol.
	Err error
}

// Error gives the cause, and whether the requests may have been done.
func (f *Fault) Error() string {
	if f.Sent {
		return fmt.Sprintf("memcached %s: no answer, and what was asked may have been done: hold it as counted: %v", f.Addr, f.Err)
	}
	return fmt.Sprintf("memcached %s: nothing was sent: ask again later: %v", f.Addr, f.Err)
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.Err }

// Sent reports whether a byte of the requests may have been sent. Sent is false for nil and for invalid
// requests.
func Sent(err error) bool {
	var fault *Fault
	return errors.As(err, &fault) && fault.Sent
}

// Causes of a Fault.
var (
	// ErrBusy: MaxWaiting requests already wait.
	ErrBusy = errors.New("too many requests wait for the server: send fewer, or raise MaxWaiting")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("the client is closed: use a new one")
	// ErrStalled: the server took requests and has been silent for StallTimeout.
	ErrStalled = errors.New("the server is silent: look whether it runs and the network delivers")
	// ErrUnable: the server, or a proxy before it, answered another request with SERVER_ERROR, and the connection was
	// closed to reach another server at the address.
	ErrUnable = errors.New("the server says that it cannot do requests: read its log, and that of a proxy before it")
	// ErrProtocol: the received bytes are not a valid answer. The error quotes them.
	ErrProtocol = errors.New("not an answer of memcached 1.6: look at what listens there")
)
