package decisions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// Name is the name of the service.
const Name = "headgate.v1.Decisions"

// Bounds of all streams together, and of one.
const (
	// maxPending bounds the requests of streams that are not answered yet. A further message waits.
	maxPending = 100_000
	// maxUnanswered bounds the messages of one stream that are not answered yet.
	maxUnanswered = 64
	// maxReceipts bounds the requests of all streams that have receipts, and maxStreamReceipts those of one.
	maxReceipts, maxStreamReceipts = 1_000_000, 4096
	// receiptTime is how long after an answer its request can be given back.
	receiptTime = time.Second
	// maxPart bounds the requests that are decided together when the store is in this process. A message of many
	// requests would otherwise need so much memory that each request waits for it: in parts of 16, the memory stays
	// in the caches of the processor. A shared store gets the whole message as one query.
	maxPart = 16
)

// Options are the settings of a Service.
type Options struct {
	// Shared says that the store is another process. Messages of one stream then wait for it
	// together.
	Shared bool
	// MaxAge is the age at which a stream is asked to end, so that its client opens another one; 0 is
	// never.
	MaxAge time.Duration
	// MaxReceiptMemory bounds the memory of receipts, in bytes; 0 means config.ReceiptBytes.
	MaxReceiptMemory int64
}

// Service decides requests of gRPC clients. It is safe for concurrent use.
type Service struct {
	guard    *guard.Guard
	options  Options
	part     int                 // the most requests that are decided together
	calls    sync.Pool           // of *call
	pending  *semaphore.Weighted // requests of streams
	receipts atomic.Int64        // of all streams
	bytes    atomic.Int64        // of the receipts of all streams
	most     int64               // bytes of receipts
	stats    counters

	mostReceipts int64 // maxReceipts, or fewer in a test

	mu       sync.Mutex // Guards the fields below.
	streams  map[*stream]struct{}
	draining bool
}

// counters are those of Stats that only grow.
type counters struct{ messages, requests, faults, returned, unknown, dropped atomic.Uint64 }

// Stats are the counters of a Service.
type Stats struct {
	// Streams are open now, and Receipts kept for them.
	Streams, Receipts int64
	// Messages were answered, with so many Requests, of which Faults could not be decided.
	Messages, Requests, Faults uint64
	// Returned counts requests that were given back, Unknown returns of requests without a receipt,
	// and Dropped receipts that were not kept for a whole second, because there were too many.
	Returned, Unknown, Dropped uint64
}

// New makes a Service that decides by g.
func New(g *guard.Guard, o Options) *Service {
	part := maxPart
	if o.Shared {
		part = maxRequests
	}
	if o.MaxReceiptMemory == 0 {
		o.MaxReceiptMemory = config.ReceiptBytes
	}
	return &Service{
		guard: g, options: o, part: part, most: o.MaxReceiptMemory, mostReceipts: maxReceipts,
		pending: semaphore.NewWeighted(maxPending), streams: map[*stream]struct{}{},
	}
}

// Stats reads the counters.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	streams := len(s.streams)
	s.mu.Unlock()
	c := &s.stats
	return Stats{
		Streams: int64(streams), Receipts: s.receipts.Load(),
		Messages: c.messages.Load(), Requests: c.requests.Load(), Faults: c.faults.Load(),
		Returned: c.returned.Load(), Unknown: c.unknown.Load(), Dropped: c.dropped.Load(),
	}
}

// Register adds the service to a server of gRPC.
func (s *Service) Register(to grpc.ServiceRegistrar) {
	to.RegisterService(&grpc.ServiceDesc{
		ServiceName: Name, HandlerType: (*any)(nil), Metadata: "headgate/v1/decisions.proto",
		Methods: []grpc.MethodDesc{{MethodName: "Decide", Handler: s.decide}},
		Streams: []grpc.StreamDesc{{
			StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.serve(stream) },
		}},
	}, s)
}

// decide answers a unary call. It is a grpc.MethodDesc.Handler.
//
//nolint:revive // grpc.MethodDesc orders the arguments.
func (s *Service) decide(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	call := access.CallOf(ctx)
	c := s.call(ctx, rpc.AccountOf(ctx), call)
	defer s.release(c)
	if err := decode(c); err != nil {
		return nil, err
	}
	if c.fault == nil && c.n == 0 {
		c.fault = status.Errorf(codes.InvalidArgument, "the message has no request: send 1 to %d", maxRequests)
	}
	if c.fault != nil {
		s.stats.faults.Add(1)
		return nil, c.fault
	}
	if err := c.decide(nil); err != nil {
		call.Refused(err)
		return nil, access.Status(err)
	}
	return rpc.NewResponse(c.account, c.encoded), nil
}

// Drain asks every client to end its streams and to open others, elsewhere. Messages that are on their
// way are answered.
func (s *Service) Drain() {
	s.mu.Lock()
	s.draining = true
	all := make([]*stream, 0, len(s.streams))
	for x := range s.streams {
		all = append(all, x)
	}
	s.mu.Unlock()
	for _, x := range all {
		go x.askToEnd() // One of them may wait for its client.
	}
}

// add notes an open stream, and reports whether the service drains.
func (s *Service) add(x *stream) (draining bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[x] = struct{}{}
	return s.draining
}

func (s *Service) remove(x *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, x)
}
