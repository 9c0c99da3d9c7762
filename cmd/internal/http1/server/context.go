package server

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
)

// requestContext is the context of a request. It ends when the client disconnects, when the
// handler returns, or when the server closes. It makes a channel only when something waits
// for its end. It is not used again, because a handler may have kept it.
type requestContext struct {
	values context.Context //nolint:containedctx // because this is the parent of a context.

	mu          sync.Mutex
	err         error
	done        chan struct{}
	funcs       map[*func()]struct{}
	interrupter http1.Interrupter
}

var _ http1.Watcher = (*requestContext)(nil)

// Deadline implements context.Context.
func (c *requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (c *requestContext) Value(key any) any { return c.values.Value(key) }

// Err implements context.Context.
func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done implements context.Context.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// AfterFunc is used by package context for derived contexts, in place of a goroutine.
func (c *requestContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.funcs == nil {
		c.funcs = map[*func()]struct{}{}
	}
	c.funcs[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, found := c.funcs[&f]
		delete(c.funcs, &f)
		return found
	}
}

// Watch implements http1.Watcher.
func (c *requestContext) Watch(i http1.Interrupter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupter = i
	if c.err != nil {
		i.Interrupt()
	}
}

// Unwatch implements http1.Watcher.
func (c *requestContext) Unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupter = nil
}

// end ends the context and those that package context has derived from it. Only the first
// call has an effect.
func (c *requestContext) end() {
	for f := range c.ended() {
		(*f)() // It ends a derived context, and does not block.
	}
}

// ended marks the context as ended, and returns the functions to call.
func (c *requestContext) ended() map[*func()]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil
	}
	c.err = context.Canceled
	if c.done != nil {
		close(c.done)
	}
	if c.interrupter != nil {
		c.interrupter.Interrupt()
	}
	funcs := c.funcs
	c.funcs = nil
	return funcs
}
