package rls

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
)

// call is one call, with memory that later calls use again.
type call struct {
	ctx      context.Context //nolint:containedctx // A call ends with its context.
	options  *Options
	account  *rpc.Account
	access   *access.Call
	acquired int64 // bytes of the account
	fault    error // The request has too many descriptors or entries, or its call ended.

	wire     wireRequest
	requests []headgate.Request
	answers  []guard.Answer
	statuses []descriptorStatus
	name     []byte // of a metric
	encoded  []byte // the answer
}

// Bounds of the memory that a call keeps for later calls.
const (
	maxKept      = 128 // descriptors
	maxKeptBytes = 16 << 10
)

// call begins a call.
func (s *Service) call(ctx context.Context) *call {
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = new(call)
	}
	c.ctx, c.options, c.account = ctx, s.options.Load(), rpc.AccountOf(ctx)
	c.access = access.CallOf(ctx)
	return c
}

// release ends a call. It keeps the memory of a short one, and drops the texts of the request.
func (s *Service) release(c *call) {
	c.account.Release(c.acquired)
	if len(c.wire.descriptors) > maxKept || cap(c.wire.entries) > maxKept*maxEntries || cap(c.encoded) > maxKeptBytes {
		return
	}
	clear(c.requests)
	clear(c.wire.entries)
	clear(c.statuses)
	c.ctx, c.options, c.account, c.access, c.acquired, c.fault, c.wire.domain = nil, nil, nil, nil, 0, nil, ""
	s.calls.Put(c)
}
