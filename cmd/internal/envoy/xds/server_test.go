package xds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/headgate/headgate/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const node = "headgate-test"

// network is a listener that tests replace, as when a server ends and returns.
type network struct {
	mu       sync.Mutex
	listener *bufconn.Listener // nil while no server listens
}

func (n *network) listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener = bufconn.Listen(1 << 16)
	return n.listener
}

func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener = nil
}

func (n *network) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listener
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return l.DialContext(ctx)
}

// inMemory returns a source that connects to the network.
func (n *network) source(t *testing.T, c Config) *Source {
	t.Helper()
	c.Server = "passthrough:///memory"
	c.NodeID = cmp.Or(c.NodeID, node)
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.dial = n.dial
	return s
}

// control is a real management server. It records the requests.
type control struct {
	cache  cache.SnapshotCache
	grpc   *grpc.Server
	ended  sync.WaitGroup
	cancel context.CancelFunc

	mu       sync.Mutex
	requests []*discoveryv3.DiscoveryRequest
	at       []time.Time // of the requests
	stream   context.Context
}

// start serves on a listener until stop, or until the test ends.
func start(t *testing.T, l net.Listener, options ...grpc.ServerOption) *control {
	t.Helper()
	c := &control{cache: cache.NewSnapshotCache(false, cache.IDHash{}, nil)}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // the server outlives the context of a bubble's test
	c.cancel = cancel
	c.grpc = grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(c.grpc, server.NewServer(ctx, c.cache, server.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.stream = ctx
			return nil
		},
		StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.requests, c.at = append(c.requests, r), append(c.at, time.Now())
			return nil
		},
	}))
	c.ended.Go(func() { _ = c.grpc.Serve(l) })
	t.Cleanup(c.stop)
	return c
}

func (c *control) stop() {
	c.cancel()
	c.grpc.Stop()
	c.ended.Wait()
}

// publish sets the resources of the node.
func (c *control) publish(t *testing.T, version string, all ...*ratelimitv3.RateLimitConfig) {
	t.Helper()
	resources := make([]types.Resource, 0, len(all))
	for _, one := range all {
		resources = append(resources, one)
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cache.SetSnapshot(context.Background(), node, snapshot); err != nil { //nolint:usetesting // as in start
		t.Fatal(err)
	}
}

// received returns the requests so far, and their times.
func (c *control) received() ([]*discoveryv3.DiscoveryRequest, []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests), slices.Clone(c.at)
}

// domain returns a resource with one descriptor, key=value.
func domain(name, value string) *ratelimitv3.RateLimitConfig {
	return &ratelimitv3.RateLimitConfig{Name: name, Domain: name, Descriptors: []*ratelimitv3.RateLimitDescriptor{{
		Key: "key", Value: value,
		RateLimit: &ratelimitv3.RateLimitPolicy{Unit: ratelimitv3.RateLimitUnit_MINUTE, RequestsPerUnit: 7},
	}}}
}

// instance is a caller of Follow that records the calls of apply and fault.
type instance struct {
	cancel context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	refuse func([]Resource) error // decides each set; nil accepts all
	sets   [][]Resource           // the sets of all calls of apply
	force  []Resource             // the last accepted set
	since  time.Time              // when force was accepted
	faults []error
}

// follow starts an instance that ends with the test, or by stop.
func follow(t *testing.T, s *Source, refuse func([]Resource) error) *instance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // as in start
	i := &instance{cancel: cancel, ended: make(chan error, 1), refuse: refuse}
	go func() { i.ended <- s.Follow(ctx, i.apply, i.fault) }()
	t.Cleanup(func() { i.stop(t) })
	return i
}

func (i *instance) stop(t *testing.T) {
	t.Helper()
	i.cancel()
	if err := <-i.ended; err != nil {
		t.Errorf("Follow returned %v after its context ended, want nil", err)
	}
	i.ended <- nil
}

func (i *instance) apply(all []Resource) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sets = append(i.sets, all)
	if i.refuse != nil {
		if err := i.refuse(all); err != nil {
			return err
		}
	}
	i.force, i.since = all, time.Now()
	return nil
}

func (i *instance) fault(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, err)
}

// value returns the value of the first descriptor in force, or "".
func (i *instance) value() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.force) == 0 || len(i.force[0].Descriptors) == 0 {
		return ""
	}
	return i.force[0].Descriptors[0].Value
}

func (i *instance) known() (sets [][]Resource, faults []error, since time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.sets), slices.Clone(i.faults), i.since
}

// await waits for a condition.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	end := time.After(30 * time.Second)
	for !is() {
		select {
		case <-end:
			t.Fatalf("%s: not within 30 s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// awaitValue waits until a value is in force.
func (i *instance) awaitValue(t *testing.T, want string) {
	t.Helper()
	await(t, "value "+want+" in force", func() bool { return i.value() == want })
}

// domains returns n resources with the same descriptor.
func domains(n int) []*ratelimitv3.RateLimitConfig {
	all := make([]*ratelimitv3.RateLimitConfig, 0, n)
	for i := range n {
		all = append(all, domain(fmt.Sprintf("domain-%05d", i), "value"))
	}
	return all
}
