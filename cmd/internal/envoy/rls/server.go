package rls

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/cmd/internal/rpc"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// Options are the settings of a Service that a reload can change.
type Options struct {
	// NotLoaded says that no configuration has been loaded yet: every call fails.
	NotLoaded bool
	// ShadowMode answers OK overall, whatever the statuses say.
	ShadowMode bool
	// QuotaMode treats every limit of a tree as one with quota_mode.
	QuotaMode bool
	// StopIncrement counts only the descriptors over their limits when there is one.
	StopIncrement bool
	// Headers adds the headers with the limit, the remaining requests and the seconds until the
	// reset of the closest limit.
	Headers Headers
	// NearRatio is the part of a limit above which hits count as near it; 0 is DefaultNearRatio.
	NearRatio float32
	// Time gets the time of each call; nil measures none.
	Time func(time.Duration)
	// Metadata answers with dynamic metadata.
	Metadata bool
	// Report logs the decisions of trees; nil logs none. The guard reports those of rules.
	Report *report.Report
}

// DefaultNearRatio is the usual part of a limit above which hits count as near it.
const DefaultNearRatio = 0.8

// Headers names the headers of an answer. The zero Headers add none.
type Headers struct{ Limit, Remaining, Reset string }

// Service answers calls of the rate limit service. It is safe for concurrent use.
type Service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	guard    *guard.Guard
	options  atomic.Pointer[Options]
	calls    sync.Pool           // of *call
	bodies   *semaphore.Weighted // the memory of bodies in JSON
	limits   *Limits
	asked    atomic.Uint64 // calls
	shadowed atomic.Uint64 // requests over a limit that passed in ShadowMode
	faults   Faults
}

// Faults counts the calls that could not be decided.
type Faults struct {
	// Store counts calls whose store did not answer. Service counts calls that were refused as
	// invalid, or that came before a configuration.
	Store, Service atomic.Uint64
}

// New makes a Service that decides by g. Values of requests give at most maxMetricValues names of
// metrics to one limit; 0 is DefaultMaxMetricValues.
func New(g *guard.Guard, o Options, maxMetricValues int) *Service {
	s := &Service{guard: g, limits: newLimits(maxMetricValues), bodies: semaphore.NewWeighted(jsonMemory)}
	s.SetOptions(o)
	return s
}

// SetOptions applies o from the next call on. A reload of the guard calls it too.
func (s *Service) SetOptions(o Options) {
	if o.NearRatio == 0 {
		o.NearRatio = DefaultNearRatio
	}
	s.options.Store(&o)
	s.limits.Forget()
}

// Faults gives the counters of calls that could not be decided.
func (s *Service) Faults() *Faults { return &s.faults }

// Limits gives the counters of limits.
func (s *Service) Limits() *Limits { return s.limits }

// Register adds the service to a server of gRPC.
func (s *Service) Register(to grpc.ServiceRegistrar) {
	described := ratelimitv3.RateLimitService_ServiceDesc
	described.Methods = []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: s.handle}}
	to.RegisterService(&described, s)
}

// handle answers a call of gRPC. It is a grpc.MethodDesc.Handler.
//
//nolint:revive // grpc.MethodDesc orders the arguments.
func (s *Service) handle(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	c := s.call(ctx)
	defer s.release(c)
	if err := decode(c); err != nil {
		return nil, err
	}
	answer, err := s.decide(c)
	if err != nil {
		return nil, err
	}
	return rpc.NewResponse(c.account, answer), nil
}

// ShouldRateLimit decides one request. The errors are of gRPC: INVALID_ARGUMENT for a request that
// can never be decided, RESOURCE_EXHAUSTED when the store has no capacity for a sent limit, and
// UNAVAILABLE when the store did not answer and the fallback of the domain is error.
func (s *Service) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	encoded, err := proto.Marshal(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	c := s.call(ctx)
	defer s.release(c)
	if err := c.Decode(encoded); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	answer, err := s.decide(c)
	if err != nil {
		return nil, err
	}
	response := new(ratelimitv3.RateLimitResponse)
	return response, proto.Unmarshal(answer, response)
}

// decide decides a decoded call and encodes the answer, which is valid until the call is released.
func (s *Service) decide(c *call) (answer []byte, err error) {
	s.asked.Add(1)
	o := c.options
	if o.Time != nil {
		defer func(began time.Time) { o.Time(time.Since(began)) }(time.Now())
	}
	if err = c.fault; err == nil {
		err = c.read()
	}
	if err == nil {
		err = c.permit()
	}
	if err == nil && o.NotLoaded {
		err = status.Error(codes.FailedPrecondition, "no rate limit configuration loaded")
	}
	if err != nil {
		s.faults.Service.Add(1)
		return nil, err
	}
	s.guard.DecideDescriptors(c.ctx, c.requests, c.answers, o.StopIncrement)
	if err := s.undecided(c); err != nil {
		s.count(err)
		c.reportFault(o.Report, status.Code(err))
		return nil, err
	}
	s.observe(c, o)
	over := c.judge(o)
	c.report(o.Report)
	return s.encode(c, over)
}

// observe counts the decisions of a call.
func (s *Service) observe(c *call, o *Options) {
	known := false
	for i := range c.requests {
		a := &c.answers[i]
		known = known || a.InTree() || len(a.Results) > 0
		if a.InTree() && len(a.Results) > 0 {
			var h *Hits
			h, c.name = s.limits.hits(a, c.requests[i].Descriptors, c.name)
			h.observe(a, &c.requests[i], o.NearRatio)
		}
	}
	if !known {
		s.limits.countUnknown(c.requests[0].Domain, len(c.requests))
	}
}

// count counts a call that could not be decided.
func (s *Service) count(err error) {
	if status.Code(err) == codes.Unavailable {
		s.faults.Store.Add(1)
	} else {
		s.faults.Service.Add(1)
	}
}

// undecided gives the error of a call that could not be decided.
func (s *Service) undecided(c *call) error {
	for i := range c.requests {
		a := &c.answers[i]
		if a.Error != nil {
			return s.refused(c, i, a.Error)
		}
		for j := range a.Results {
			if r := &a.Results[j]; r.Fallback && r.Rule.Fallback == guard.FallbackError {
				return status.Error(codes.Unavailable, remote.ErrUnavailable.Error())
			}
		}
	}
	return nil
}

// refused gives the error of a descriptor that cannot be decided.
func (s *Service) refused(c *call, i int, err error) error {
	if outside, found := errors.AsType[*guard.PermitError](err); found {
		c.giveBack(s.guard)
		return c.forbidden(c.access.Client().OutsideRules(outside.Rule))
	}
	code := codes.InvalidArgument
	if errors.Is(err, headgate.ErrTooManyPolicies) {
		code = codes.ResourceExhausted
	}
	return status.Errorf(code, "descriptor %d: %v", i, err)
}
