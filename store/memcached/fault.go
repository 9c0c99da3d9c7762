package memcached

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/meta"
)

// The errors of a Store, besides those of headgate. All mean that no decision could be made.
var (
	// ErrContended: another process has written the key's item first, in every attempt. Nothing was
	// taken.
	ErrContended = errors.New("memcached: other processes write the same key faster: nothing was taken: " +
		"raise Retries, count under more keys, or use Redis for keys that are this hot")
	// ErrBusy: too many decisions of this process wait for one key. Nothing was taken.
	ErrBusy = errors.New("memcached: too many decisions wait for one key: nothing was taken: " +
		"send fewer at once, or see whether the server is slow")
	// ErrClosed: Close was called. Nothing was taken.
	ErrClosed = errors.New("memcached: the store is closed: stop asking first, then close it")

	errSameState = errors.New("memcached: two Ops of one group have the same Key and Window: give them one Op, or two Windows")
)

// unavailable is the error of an open breaker.
func unavailable(addr string) error {
	return fmt.Errorf("memcached %s: %w", addr, headgate.ErrUnavailable)
}

// couldNot wraps the error of a server, with what to do next. The error of meta already says whether
// units may have been counted.
func couldNot(do string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("memcached: could not %s: %w: see the server's load and the network, or raise store_timeout", do, err)
	}
	return fmt.Errorf("memcached: could not %s: %w", do, err)
}

// refused is the error of a server that did not store a key, or did not read it. A full server has deleted the
// old version of the item, so the key starts with empty counts.
func refused(addr string, r *meta.Response) error {
	for _, full := range []string{"out of memory", "too large"} {
		if strings.Contains(r.Message, full) {
			return fmt.Errorf("memcached %s refused to store a key, and forgot it: %q: "+
				"run it without -M, with more memory (-m) or larger items (-I)", addr, r.Message)
		}
	}
	return fmt.Errorf("memcached %s refused a request: %q: read the log of the server, or of the proxy at this address", addr, r.Message)
}

// unread gives the error of the first Get that the server refused, or nil. Such an answer must not count as a
// missing item.
func unread(addr string, asked []meta.Request, answers []meta.Response) error {
	for i := range asked {
		if asked[i].Kind == meta.Get && answers[i].Status == meta.Refused {
			return refused(addr, &answers[i])
		}
	}
	return nil
}
