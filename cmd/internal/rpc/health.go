package rpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	standard "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// maxName bounds the name that a watching client sends. A stream keeps its name until it ends.
const maxName = 256

// health is the standard health service, whose watching streams end at a drain. Otherwise each
// drain would wait for them until its deadline.
type health struct {
	*standard.Server

	draining context.Context //nolint:containedctx // It ends the streams, and belongs to no call.
	end      context.CancelFunc
}

func newHealth() *health {
	h := &health{Server: standard.NewServer()}
	h.draining, h.end = context.WithCancel(context.Background())
	return h
}

func (h *health) set(name string, serving bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthpb.HealthCheckResponse_SERVING
	}
	h.SetServingStatus(name, status)
}

// drain turns all names to NOT_SERVING.
func (h *health) drain() {
	h.Shutdown()
	h.end()
}

// Watch implements the health service.
func (h *health) Watch(in *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	if len(in.GetService()) > maxName {
		return status.Errorf(codes.InvalidArgument, "the name of the service has %d bytes: use at most %d", len(in.GetService()), maxName)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	stop := context.AfterFunc(h.draining, cancel)
	defer stop()
	w := &watching{ServerStreamingServer: stream, ctx: ctx}
	err := h.Server.Watch(in, w)
	if h.draining.Err() == nil || !w.serving.Load() {
		return err
	}
	// The standard Watch may end before it sends the last status.
	return stream.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING})
}

// watching is the stream of a watching client. Its context also ends at a drain.
type watching struct {
	grpc.ServerStreamingServer[healthpb.HealthCheckResponse]

	ctx     context.Context //nolint:containedctx // It is the context of the stream.
	serving atomic.Bool     // The client was last told SERVING.
}

// Context implements grpc.ServerStream.
func (w *watching) Context() context.Context { return w.ctx }

// Send implements grpc.ServerStreamingServer.
func (w *watching) Send(r *healthpb.HealthCheckResponse) error {
	w.serving.Store(r.GetStatus() == healthpb.HealthCheckResponse_SERVING)
	return w.ServerStreamingServer.Send(r)
}
