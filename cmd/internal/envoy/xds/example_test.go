package xds_test

import (
	"context"
	"fmt"
	"net"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/headgate/headgate/cmd/internal/envoy/xds"
)

// A management server has a limit of 5 requests a minute. This program prints the configuration
// and ends.
func Example() {
	address, stop := managementServer()
	defer stop()

	source, err := xds.New(xds.Config{Server: address, NodeID: "headgate"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	apply := func(resources []xds.Resource) error {
		for _, r := range resources {
			d := r.Descriptors[0]
			fmt.Printf("%s: %s at most %d a %s\n", r.Domain, d.Key, d.RateLimit.RequestsPerUnit, d.RateLimit.Unit)
		}
		cancel()
		return nil
	}
	fmt.Println(source.Follow(ctx, apply, func(err error) { fmt.Println(err) }))
	// Output:
	// shop: user at most 5 a MINUTE
	// <nil>
}

// managementServer starts a control plane on loopback.
func managementServer() (address string, stop func()) {
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{
		resource.RateLimitConfigType: {&ratelimitv3.RateLimitConfig{
			Name: "shop", Domain: "shop", Descriptors: []*ratelimitv3.RateLimitDescriptor{{
				Key: "user", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: ratelimitv3.RateLimitUnit_MINUTE, RequestsPerUnit: 5},
			}},
		}},
	})
	if err != nil {
		panic(err) // An example has no test that could fail.
	}
	snapshots := cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	if err := snapshots.SetSnapshot(ctx, "headgate", snapshot); err != nil {
		panic(err) // An example has no test that could fail.
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // An example has no test that could fail.
	}
	s := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(ctx, snapshots, nil))
	go func() { _ = s.Serve(listener) }()
	return listener.Addr().String(), func() { cancel(); s.Stop() }
}
