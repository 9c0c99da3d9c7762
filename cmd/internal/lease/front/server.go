package front

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/lease/state"
)

// Name is the name of the service.
const Name = "headgate.lease.v1.Leases"

// Bounds of what clients have not read.
const (
	// maxWaiting bounds the answers of one stream that wait, in bytes. A server below may have all resources: an answer takes up
	// to 750 bytes, or 1400 if it is refused. The stream of a client that does not read is closed.
	maxWaiting = 16 << 20
	// maxAllWaiting bounds those of all streams. Beyond, answers are dropped, and the stream with the most of them is closed.
	// Holders report again.
	maxAllWaiting = 128 << 20
	// maxOwners bounds the holders whose stream is known. Those without claims are dropped at the bound.
	maxOwners = 2 * state.MaxHolders
)

// Options are the settings of a Service.
type Options struct {
	// State is the configuration of the state machine.
	State state.Config
	// Marks stores marks for the next master of the group, and calls Stored. It must not block. nil stores none.
	Marks func(term uint64, marks []state.Mark)
	// Elected says that this server is one of a group. It gives no leases before Lead.
	Elected bool
	// Now is the clock. It must not step back, and timers must follow it.
	Now func() headgate.Instant
	// MaxAge is the age at which a stream is asked to end, so that its client opens another one; 0 is never.
	MaxAge time.Duration
	// Up sends a report to the parent. It must not block, and may drop reports. It is nil for a root. The report is valid
	// until it returns.
	Up func(report *state.Report)
}

// Service gives leases to gRPC clients. It is safe for concurrent use.
type Service struct {
	options Options
	stats   counters
	waiting atomic.Int64 // Bytes of the queues of all streams.

	mu     sync.Mutex // Guards the fields below, and options.State. A sink's own lock is taken after it.
	role   role
	out    state.Out
	owners map[string]sink // The sink that last reported for a holder.
	timer  *time.Timer
	wake   headgate.Instant // The time of timer.
	armed  bool
	closed bool

	watch    sync.Mutex // Guards the fields below.
	streams  map[*stream]struct{}
	draining bool

	relieving atomic.Bool // A stream ends because all of them have too much.
}

// sink takes answers of holders. Service.mu is held.
type sink interface {
	lease(holder string, l *state.Lease)
	refuse(holder string, seq uint64, err *state.Error)
	// replaced says that another sink has reported for a holder.
	replaced(holder string)
	// flush follows a group of answers.
	flush()
}

// counters are those of Stats that only grow.
type counters struct{ reports, leases, pushes, refusals, closed atomic.Uint64 }

// Stats are the counters of a Service.
type Stats struct {
	// Master says that this server gives leases.
	Master bool
	// Holders have claims of Resources.
	Holders, Resources, Claims int
	// Streams are open now, and WaitingBytes is what they have not sent.
	Streams, WaitingBytes int64
	// Reports were received. Leases counts answers, Pushes leases without a report, and Refusals refused claims and reports.
	Reports, Leases, Pushes, Refusals uint64
	// Closed counts streams that were closed because their clients did not read.
	Closed uint64
}

// New makes a Service. It returns the error of state.New.
func New(o Options) (*Service, error) {
	server, err := state.New(o.State, o.Now())
	if err != nil {
		return nil, err
	}
	s := &Service{options: o, role: role{server: server, term: o.State.Term}, owners: map[string]sink{}, streams: map[*stream]struct{}{}}
	if o.Elected {
		s.stepDown(o.Now(), "")
	}
	return s, nil
}

// Stats reads the counters.
func (s *Service) Stats() Stats {
	s.watch.Lock()
	streams := len(s.streams)
	s.watch.Unlock()
	s.mu.Lock()
	holders, resources, claims := 0, 0, 0
	master := s.leads(s.options.Now())
	if master {
		holders, resources, claims = s.role.server.Counts()
	}
	s.mu.Unlock()
	c := &s.stats
	return Stats{
		Master: master, Holders: holders, Resources: resources, Claims: claims,
		Streams: int64(streams), WaitingBytes: s.waiting.Load(), Reports: c.reports.Load(), Leases: c.leases.Load(),
		Pushes: c.pushes.Load(), Refusals: c.refusals.Load(), Closed: c.closed.Load(),
	}
}

// Register adds the service to a server of gRPC.
func (s *Service) Register(to grpc.ServiceRegistrar) {
	to.RegisterService(&grpc.ServiceDesc{
		ServiceName: Name, HandlerType: (*any)(nil), Metadata: "headgate/lease/v1/lease.proto",
		Methods: []grpc.MethodDesc{{MethodName: "Report", Handler: s.unary}},
		Streams: []grpc.StreamDesc{{
			StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.serve(stream) },
		}},
	}, s)
}

// Drain asks every client to end its streams, and to open others, elsewhere.
func (s *Service) Drain() {
	s.watch.Lock()
	s.draining = true
	s.watch.Unlock()
	for _, x := range s.all() {
		x.askToEnd()
	}
}

// all gives the open streams.
func (s *Service) all() []*stream {
	s.watch.Lock()
	defer s.watch.Unlock()
	return slices.Collect(maps.Keys(s.streams))
}

// Close ends the timer. The service must have no client any more.
func (s *Service) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// add notes an open stream, and reports whether the service drains.
func (s *Service) add(x *stream) (draining bool) {
	s.watch.Lock()
	defer s.watch.Unlock()
	s.streams[x] = struct{}{}
	return s.draining
}

func (s *Service) remove(x *stream) {
	s.watch.Lock()
	delete(s.streams, x)
	if x.relieves {
		s.relieving.Store(false)
	}
	s.watch.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	x.gone = true
	for holder := range x.holders {
		if s.owners[holder] == x {
			delete(s.owners, holder)
		}
	}
}

// relieve closes the stream with the most waiting answers. It does nothing before a stream that it closed has ended: each answer
// would need a pass over all streams.
func (s *Service) relieve() {
	if s.relieving.Load() {
		return
	}
	s.watch.Lock()
	defer s.watch.Unlock()
	var most *stream
	var bytes int64
	for x := range s.streams {
		if n := x.waiting.Load(); n > bytes {
			most, bytes = x, n
		}
	}
	if most != nil && s.relieving.CompareAndSwap(false, true) {
		most.relieves = true
		most.end(errUnread)
	}
}
