package resp

import (
	"errors"
	"fmt"
	"sync"
)

// ErrReply is wrapped by the errors of replies that a connection must not carry.
var ErrReply = errors.New("resp: not a reply of Redis")

// Checker follows the bytes of one connection. Its methods may be called from two
// goroutines, one that writes and one that reads.
type Checker struct {
	// most bounds the answer to a script.
	most int64
	// judge reports whether an error reply ends the connection; nil means never.
	judge func(reply []byte) bool

	mu    sync.Mutex
	err   error // the first fault; nothing passes afterwards
	left  error // a *LeftError after a reply that ends the connection
	out   outgoing
	waits awaited
	in    incoming
	// pings: the previous command was an unsubscription, and a PING follows.
	pings bool
	// subscribed: push messages may come. modern: push messages have RESP3's own type. In RESP2
	// they are arrays.
	subscribed, modern bool
	// confirms is the number of channels of a subscription that are not confirmed yet.
	confirms int64
}

// New makes a Checker. most bounds the bytes of one string in the answer to a script.
func New(most int) *Checker { return &Checker{most: int64(most)} }

// Received checks bytes that were read. After an error, it always gives the same error.
func (c *Checker) Received(p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(p) > 0 && c.err == nil {
		p = p[c.received(p):]
	}
	return c.err
}

// refusef records the first fault.
func (c *Checker) refusef(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrReply}, args...)...)
	}
}
