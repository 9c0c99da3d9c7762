package rpc

import (
	"context"

	"google.golang.org/grpc/peer"
)

// Account is a connection as the services of its calls see it. What they use for large messages
// counts under MaxCallMemory. A nil Account counts nothing. An Account is safe for concurrent use.
type Account conn

// AccountOf gives the account of the connection of a call. It is nil for a call that did not come
// through a Server.
func AccountOf(ctx context.Context) *Account {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, _ := p.AuthInfo.(accounted)
	return info.account
}

// Acquire waits until there is memory for a call of a service, in bytes. All calls together have
// half of MaxCallMemory; a call that needs more waits for all of it. Acquire returns the bytes to
// Release, or the error of ctx.
func (a *Account) Acquire(ctx context.Context, bytes int64) (int64, error) {
	if a == nil {
		return 0, nil
	}
	bytes = min(bytes, a.server.config.MaxCallMemory/2)
	if err := a.server.working.Acquire(ctx, bytes); err != nil {
		return 0, err
	}
	a.server.callMemory.Add(bytes)
	return bytes, nil
}

// Release returns what Acquire has returned.
func (a *Account) Release(bytes int64) {
	if a != nil && bytes > 0 {
		a.server.callMemory.Add(-bytes)
		a.server.working.Release(bytes)
	}
}

// Keep changes the bytes that a service keeps for streams of the connection beside their calls. They count for Costs.
func (a *Account) Keep(bytes int64) {
	if a != nil {
		a.kept.Add(bytes)
	}
}

// keep changes the bytes of the responses that the client has not read.
func (a *Account) keep(bytes int64) {
	if a == nil {
		return
	}
	c := (*conn)(a)
	c.mu.Lock()
	if c.closed { // Close has returned all of them.
		c.mu.Unlock()
		return
	}
	c.unread.Add(bytes)
	c.change(bytes)
}
