// Command emptycall serves Envoy's rate limit service with grpc-go's defaults, and answers each call
// with an empty response. The benchmark compares headgate server with it.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

type service struct {
	ratelimitv3.UnimplementedRateLimitServiceServer

	response *ratelimitv3.RateLimitResponse
}

// ShouldRateLimit implements ratelimitv3.RateLimitServiceServer.
func (s *service) ShouldRateLimit(context.Context, *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return s.response, nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: emptycall HOST:PORT")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "emptycall:", err)
		os.Exit(1)
	}
}

func serve(address string) error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, &service{response: &ratelimitv3.RateLimitResponse{}})
	return server.Serve(listener)
}
