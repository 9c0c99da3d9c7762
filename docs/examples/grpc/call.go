package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// call calls the service several times as a client and returns the answers.
func call(target, client string, times int) (answers []string, err error) {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-client-id", client)
	for range times {
		var header metadata.MD
		resp, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
		if err != nil {
			refused := status.Convert(err)
			answers = append(answers, fmt.Sprintf("%v: %s", refused.Code(), refused.Message()),
				fmt.Sprintf("  retry after %v", retryDelay(refused).Round(time.Millisecond)))
			continue
		}
		answers = append(answers, fmt.Sprintf("%v, ratelimit %v", resp.GetStatus(), header["ratelimit"]))
	}
	return answers, nil
}

// retryDelay returns the time after which the client may retry, or 0 if it is unknown.
func retryDelay(refused *status.Status) time.Duration {
	for _, detail := range refused.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}
