package acceptance

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/headgate/headgate/internal/testkit/redis"
)

// management is a management server of go-control-plane for one node, which demands client certificates.
type management struct {
	address string
	node    string
	files   *redis.Certificates
	all     cache.SnapshotCache
	running *grpc.Server

	messages, refusals atomic.Int64 // of the node
}

// manage starts a management server on a free port.
func manage(t *testing.T, c *redis.Certificates, node string) *management {
	t.Helper()
	m := &management{address: "127.0.0.1:0", node: node, files: c}
	m.start(t)
	t.Cleanup(func() { m.running.Stop() })
	return m
}

// start starts the server on its port, without limits.
func (m *management) start(t *testing.T) {
	t.Helper()
	var l net.Listener
	eventually(t, "the port "+m.address, func() bool {
		var err error
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", m.address)
		return err == nil
	})
	m.address, m.all = l.Addr().String(), cache.NewSnapshotCache(false, cache.IDHash{}, nil)
	m.running = grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: m.files.Client.Certificates,
		ClientCAs: m.files.Client.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	count := server.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
		m.messages.Add(1)
		if r.GetErrorDetail() != nil {
			m.refusals.Add(1)
		}
		return nil
	}}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(m.running, server.NewServer(context.WithoutCancel(t.Context()), m.all, count))
	running := m.running
	go func() {
		if err := running.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("the management server ended: %v", err)
		}
	}()
}

// publish replaces the limits of the node.
func (m *management) publish(t *testing.T, version string, limits *configv3.RateLimitConfig) {
	t.Helper()
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: {limits}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.all.SetSnapshot(t.Context(), m.node, snapshot); err != nil {
		t.Fatal(err)
	}
}

// limitsOf are those of shopTwice, with another number of requests a year.
func limitsOf(requests uint32) *configv3.RateLimitConfig {
	return &configv3.RateLimitConfig{Name: "shop", Domain: "shop", Descriptors: []*configv3.RateLimitDescriptor{{
		Key: "client", RateLimit: &configv3.RateLimitPolicy{Unit: configv3.RateLimitUnit_YEAR, RequestsPerUnit: requests},
	}}}
}

// faultyLimits have a limit without a unit.
func faultyLimits() *configv3.RateLimitConfig {
	all := limitsOf(9)
	all.Descriptors[0].RateLimit.Unit = configv3.RateLimitUnit_UNKNOWN
	return all
}
