package grpcpace

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/pace/adaptive"
	"github.com/headgate/headgate/internal/throttle"
)

// maxServices bounds the targets that are counted. Calls to further targets are made as they are.
const maxServices = 1000

// services are the far sides of calls, by the targets of their connections.
type services struct {
	mu  sync.RWMutex
	all map[string]*adaptive.Service // guarded by mu
}

// service gives the service of a target; nil beyond maxServices.
func (s *services) service(target string, c Adaptive) *adaptive.Service {
	s.mu.RLock()
	known := s.all[target]
	s.mu.RUnlock()
	if known != nil {
		return known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[target] == nil && len(s.all) < maxServices {
		if s.all == nil {
			s.all = map[string]*adaptive.Service{}
		}
		s.all[target], _ = adaptive.NewService(target, c) // New has checked c.
	}
	return s.all[target]
}

// call is a call to a service. A nil call is not counted.
type call struct {
	pacing  *Pacing
	service *adaptive.Service
	class   throttle.Class
	once    sync.Once
}

// begin counts a call, and gives its context with its class. The error is an *adaptive.DropError.
func (p *Pacing) begin(ctx context.Context, cc *grpc.ClientConn) (context.Context, *call, error) {
	if p.config.Adaptive == nil {
		return ctx, nil, nil
	}
	class, stated := classOf(ctx)
	if stated {
		ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(throttle.FieldCriticality), class.String())
	}
	service := p.services.service(cc.Target(), *p.config.Adaptive)
	if service == nil {
		return ctx, nil, nil
	}
	c := &call{pacing: p, service: service, class: class}
	return ctx, c, service.Begin(p.now(), class, rand.Float64(), false) //nolint:wrapcheck // The error names the package.
}

// classOf gives the class of a context, or that of the call that its handler serves.
func classOf(ctx context.Context) (throttle.Class, bool) {
	if class, ok := throttle.ClassFrom(ctx); ok {
		return class, true
	}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for _, text := range md.Get(throttle.FieldCriticality) {
			if class, err := throttle.ParseClass(text); err == nil {
				return class, true
			}
		}
	}
	return throttle.SheddablePlus, false
}

// ended counts what the service did with the call, once.
func (c *call) ended(ctx context.Context, err error) {
	if c == nil {
		return
	}
	c.once.Do(func() {
		_, ours := errortype.As[*refusal](err)
		switch {
		case ours, errors.Is(ctx.Err(), context.Canceled):
			c.service.Canceled(c.pacing.now(), c.class)
		case !overloaded(err):
			c.service.Accepted(c.pacing.now(), c.class)
		}
	})
}

// overloaded reports whether an error says that the service could not do the call.
func overloaded(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return true
	default:
		return false
	}
}

// now is the time of the counts.
func (p *Pacing) now() headgate.Instant { return headgate.Instant(time.Since(p.made)) }

// countedStream counts the end of a stream, or its first message from the server.
type countedStream struct {
	grpc.ClientStream

	ctx  context.Context //nolint:containedctx // It is that of the stream.
	call *call
}

// RecvMsg implements grpc.ClientStream. A message shows that the service has accepted the stream.
func (s *countedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil, errors.Is(err, io.EOF):
		s.call.ended(s.ctx, nil)
	default:
		s.call.ended(s.ctx, err)
	}
	return err
}
