package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// grpcConnections is the number of connections of all callers.
const grpcConnections = 8

// caller makes unary calls on a connection.
type caller struct {
	*grpc.ClientConn

	service ratelimitv3.RateLimitServiceClient
}

func dialCaller(url string) (caller, error) {
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(url, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	return caller{conn, ratelimitv3.NewRateLimitServiceClient(conn)}, err
}

// call makes a call with one descriptor, which the upstream answers with an empty response.
func (c caller) call(ctx context.Context, header *metadata.MD) error {
	ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(keyHeader), keyValue)
	_, err := c.service.ShouldRateLimit(ctx, &ratelimitv3.RateLimitRequest{Domain: "bench", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: "customer-1"}}},
	}}, grpc.Header(header))
	return err
}

// probeCall makes one call and checks the answer.
func (p *process) probeCall(ctx context.Context) error {
	c, err := dialCaller(p.url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // The call has ended.
	var header metadata.MD
	if err := c.call(ctx, &header); err != nil {
		return err
	}
	return p.checkDecided(len(header.Get("ratelimit")) > 0)
}

// calls makes unary calls.
func (l *load) calls(ctx context.Context, url string) (
	send func(context.Context, time.Duration) (report, error), done func(), err error,
) {
	var callers []caller
	done = func() {
		for _, c := range callers {
			_ = c.Close() // The calls have ended.
		}
	}
	for range grpcConnections {
		c, err := dialCaller(url)
		if err == nil {
			callers = append(callers, c)
			err = c.call(ctx, &metadata.MD{})
		}
		if err != nil {
			done()
			return nil, nil, err
		}
	}
	send = func(ctx context.Context, d time.Duration) (report, error) {
		latencies, failures := make([][]time.Duration, l.concurrent()), make([]error, l.concurrent())
		began := time.Now()
		var all sync.WaitGroup
		for i := range latencies {
			all.Go(func() {
				latencies[i], failures[i] = callers[i%len(callers)].repeat(ctx, began.Add(d))
			})
		}
		all.Wait()
		return newReport(slices.Concat(latencies...), time.Since(began)), errors.Join(failures...)
	}
	return send, done, nil
}

// repeat makes calls, one after the other, until the time is over. It makes at least one.
func (c caller) repeat(ctx context.Context, until time.Time) (latencies []time.Duration, err error) {
	var header metadata.MD
	for began := time.Now(); ; {
		if err := c.call(ctx, &header); err != nil {
			return append(latencies, 0), err
		}
		now := time.Now()
		latencies = append(latencies, now.Sub(began))
		if !now.Before(until) {
			return latencies, nil
		}
		began = now
	}
}
