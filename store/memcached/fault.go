package memcached

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/meta"
)

// Errors of a Store, besides those of headgate. All mean "could not decide".
var (
	// ErrContended: other processes were faster each time that the key's item was to
	// be written. Nothing was taken.
	ErrContended = errors.New("memcached: other processes write the same key faster: nothing was taken: " +
		"raise Retries, count under more keys, or use Redis for keys that are this hot")
	// ErrBusy: too many decisions of this process wait for one key. Nothing was taken.
	ErrBusy = errors.New("memcached: too many decisions wait for one key: nothing was taken: " +
		"send fewer at once, or see whether the server is slow")
	// ErrClosed: Close was called. Nothing was taken.
	ErrClosed = errors.New("memcached: the store is closed: stop asking first, then close it")

	errSameState = errors.New("memcached: two Ops of one group have the same Key and Window: give them one Op, or two Windows")
)

// unavailable is what an open breaker says.
func unavailable(addr string) error {
	return fmt.Errorf("memcached %s: %w", addr, headgate.ErrUnavailable)
}

// couldNot wraps why a server has not answered, with what to do next. What meta
// says tells already whether anything may have been counted.
func couldNot(do string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("memcached: could not %s: %w: see the server's load and the network, or raise store_timeout", do, err)
	}
	return fmt.Errorf("memcached: could not %s: %w", do, err)
}

// refused is what a server says that has no room. It has deleted what it had under
// the name: the key begins anew.
func refused(addr string, r *meta.Response) error {
	return fmt.Errorf("memcached %s refused to store a key, and forgot it: %q: "+
		"run it without -M, with more memory (-m) or larger items (-I)", addr, r.Message)
}
