package decisions

import (
	"bytes"
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
)

const maxRequests = remote.MaxRequests

// call is one message, with memory that later messages use again.
type call struct {
	service  *Service
	ctx      context.Context //nolint:containedctx // A call ends with its context.
	account  *rpc.Account
	access   *access.Call
	session  *access.Session // of a stream; nil without auth, and for a unary call
	acquired int64           // bytes of the account
	fault    error           // The message is invalid, or its call has ended.

	n       int    // the requests of the message
	rest    []byte // the part of the message that is not decided yet
	returns []place
	watch   bool // The client wants to know what the rules read.

	batch remote.Batch // a part of the requests
	headers, cookies, queries,
	descriptors []headgate.DescriptorEntry // of the batch
	encoded   []byte    // the response
	faults    uint64    // in the response
	begun     beginning // of the last answer
	beginning []byte    // the same, encoded; empty before the first answer

	number uint64        // of the message on its stream
	taken  []guard.Taken // what the message gives back
}

// place names a request of an earlier message.
type place struct {
	message uint64
	index   uint32
}

// Bounds of the memory that a call keeps for later ones.
const (
	maxKept      = 128 // requests
	maxKeptBytes = 16 << 10
)

// The memory of a message, in bytes. TestMemoryOfMessages measures it.
const (
	// requestBytes is one request: its place in the working memory, and its answer. entryBytes is one
	// of its headers, cookies or descriptors.
	requestBytes = 8 << 10
	entryBytes   = 192
	// free is what the server counts for every call anyway.
	free = 16 << 10
)

// call begins a message of a client.
func (s *Service) call(ctx context.Context, account *rpc.Account, allowed *access.Call) *call {
	c, ok := s.calls.Get().(*call)
	if !ok {
		c = &call{service: s}
	}
	c.ctx, c.account, c.access = ctx, account, allowed
	return c
}

// release ends a message.
func (s *Service) release(c *call) {
	c.account.Release(c.acquired)
	c.rest = nil
	if c.batch.Len() > maxKept || cap(c.encoded) > maxKeptBytes ||
		cap(c.headers)+cap(c.cookies)+cap(c.queries)+cap(c.descriptors) > maxKept*maxKept {
		return
	}
	c.batch.Release()
	clear(c.headers)
	clear(c.cookies)
	clear(c.queries)
	clear(c.descriptors)
	clear(c.taken)
	c.taken = c.taken[:0]
	c.ctx, c.account, c.access, c.session, c.acquired, c.fault = nil, nil, nil, nil, 0, nil
	s.calls.Put(c)
}

// client is the client with its present rights: a stream may have been open for long.
func (c *call) client() *access.Client {
	if c.session != nil {
		return c.session.Client()
	}
	return c.access.Client()
}

// memoryOf is the memory of a message and its response.
func memoryOf(length int, measured size) int64 {
	return int64(length)*2 + int64(measured.requests)*requestBytes + int64(measured.entries)*entryBytes
}

// Decode implements rpc.Request. Before it keeps a message, it counts its requests and their entries,
// because a short message may have many, and waits for their memory.
func (c *call) Decode(b []byte) error {
	measured, err := c.check(b)
	c.n = measured.requests
	switch memory := memoryOf(len(b), measured); {
	case err != nil:
		c.fault = status.Error(codes.InvalidArgument, err.Error())
	case measured.requests > maxRequests:
		c.fault = status.Errorf(codes.InvalidArgument, "the message has %d requests: send at most %d", measured.requests, maxRequests)
	case memory > free:
		if c.acquired, err = c.account.Acquire(c.ctx, memory); err != nil {
			c.fault = status.FromContextError(err).Err()
		}
	}
	if c.fault == nil {
		c.rest = bytes.Clone(b)
	}
	return nil // An error from here would have the code INTERNAL.
}

// decide decides the requests of the message, and encodes the answers. each sees every decided part. If the error is
// not nil, the client is above its limit with all requests, and nothing was decided.
func (c *call) decide(each func(*remote.Batch)) error {
	c.encoded, c.faults = c.encoded[:0], 0
	for done := 0; done < c.n; done += c.batch.Len() {
		c.decodePart()
		if err := c.batch.Decide(c.ctx); err != nil && done == 0 && each == nil {
			return err
		}
		if each != nil {
			each(&c.batch)
		}
		c.encodePart()
	}
	stats := &c.service.stats
	stats.messages.Add(1)
	stats.requests.Add(uint64(c.n))
	stats.faults.Add(c.faults)
	return nil
}
