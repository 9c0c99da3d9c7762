package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	configv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate/headgate/cmd/internal/envoy/xds"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// gatewayData has the configurations of Envoy Gateway's tests, and the routes that belong to them.
var gatewayData = filepath.Join("..", "envoy", "xds", "testdata")

// writtenLimit is a limit of a configuration, with the descriptors that lead to it.
type writtenLimit struct {
	Unit     string `json:"unit"`
	Requests uint32 `json:"requests_per_unit"`
}

// writtenNode is a descriptor of a configuration.
type writtenNode struct {
	Key         string         `json:"key"`
	Value       string         `json:"value"`
	RateLimit   *writtenLimit  `json:"rate_limit"`
	ShadowMode  bool           `json:"shadow_mode"`
	Descriptors []*writtenNode `json:"descriptors"`
}

// find returns the node at which the entries end. An exact value comes first.
func find(level []*writtenNode, entries []*commonv3.RateLimitDescriptor_Entry) *writtenNode {
	var next *writtenNode
	for _, n := range level {
		if n.Key == entries[0].GetKey() && (n.Value == entries[0].GetValue() || n.Value == "" && next == nil) {
			next = n
		}
	}
	if next == nil || len(entries) == 1 {
		return next
	}
	return find(next.Descriptors, entries[1:])
}

// limited lists the nodes with a limit.
func limited(level []*writtenNode) []*writtenNode {
	var all []*writtenNode
	for _, n := range level {
		if n.RateLimit != nil {
			all = append(all, n)
		}
		all = append(all, limited(n.Descriptors)...)
	}
	return all
}

// documentsOf reads the documents of a YAML file in their JSON form.
func documentsOf(t *testing.T, path string) (all [][]byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var tree map[string]any
		if err := d.Decode(&tree); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		encoded, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, encoded)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// action is an action of a route with its kind. Envoy makes an entry of a descriptor from each.
type action struct {
	//nolint:tagliatelle // Go names the fields of its protocol messages so
	ActionSpecifier map[string]struct {
		Key   string `json:"descriptor_key"`
		Value string `json:"descriptor_value"`
	} `json:"ActionSpecifier"`
}

// clientHeader is the value that the requests have in each header with a name of a client.
const clientHeader = "alice"

// entry returns the entry that Envoy makes of an action for a request that matches.
func (a action) entry(t *testing.T) *commonv3.RateLimitDescriptor_Entry {
	t.Helper()
	for kind, s := range a.ActionSpecifier {
		switch kind {
		case "GenericKey", "HeaderValueMatch", "QueryParameterValueMatch", "RemoteAddressMatch":
			return &commonv3.RateLimitDescriptor_Entry{Key: s.Key, Value: s.Value}
		case "RequestHeaders":
			return &commonv3.RateLimitDescriptor_Entry{Key: s.Key, Value: clientHeader}
		default:
			t.Fatalf("the action %s is unknown: add its entry", kind)
		}
	}
	t.Fatal("an action has no kind")
	return nil
}

// requestsOf returns the requests that Envoy sends for a route: one for each domain.
func requestsOf(t *testing.T, route []byte) []*ratelimitv3.RateLimitRequest {
	t.Helper()
	var r struct {
		//nolint:tagliatelle // the name in the files
		Domains map[string][]struct {
			Actions []action `json:"actions"`
		} `json:"rateLimitsByDomain"`
	}
	decode(t, route, &r)
	var all []*ratelimitv3.RateLimitRequest
	for domain, limits := range r.Domains {
		req := &ratelimitv3.RateLimitRequest{Domain: domain}
		for _, l := range limits {
			d := &commonv3.RateLimitDescriptor{}
			for _, a := range l.Actions {
				d.Entries = append(d.Entries, a.entry(t))
			}
			req.Descriptors = append(req.Descriptors, d)
		}
		all = append(all, req)
	}
	return all
}

// controlPlane is a real management server.
type controlPlane struct {
	cache   cache.SnapshotCache
	address string
}

func startControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &controlPlane{cache.NewSnapshotCache(false, cache.IDHash{}, nil), l.Addr().String()}
	s := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, server.NewServer(t.Context(), p.cache, nil))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return p
}

// publish sends the resources of a configuration.
func (p *controlPlane) publish(t *testing.T, version string, documents [][]byte) {
	t.Helper()
	var all []types.Resource
	for _, text := range documents {
		message := &configv3.RateLimitConfig{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, message); err != nil {
			t.Fatal(err)
		}
		all = append(all, message)
	}
	snapshot, err := cache.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: all})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cache.SetSnapshot(t.Context(), "test", snapshot); err != nil {
		t.Fatal(err)
	}
}

// managed is a management server as a source of domains. It reports what apply returned.
type managed struct {
	source  *xds.Source
	applied chan error
}

// Follow implements DomainSource.
func (m managed) Follow(ctx context.Context, apply func([]guard.Domain) error, fault func(error)) error {
	return m.source.Follow(ctx, func(all []xds.Resource) error {
		domains, err := xds.Domains(all, false)
		if err == nil {
			err = apply(domains)
		}
		m.applied <- err
		return err
	}, fault)
}

// startManaged starts a server with the domains of a management server.
func startManaged(t *testing.T, p *controlPlane) (client ratelimitv3.RateLimitServiceClient, applied <-chan error) {
	t.Helper()
	c, err := config.Parse("f", []byte("version: 1\nrules: []\nmax_memory: 16MiB\nserver: {grpc: '127.0.0.1:0', http: off}\nadmin: {listen: off, health: off}\n"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := xds.New(xds.Config{Server: p.address, NodeID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	m := managed{source, make(chan error, 100)}
	i, err := Start(t.Context(), Options{Config: c, Server: true, Domains: m, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+i.addresses.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return ratelimitv3.NewRateLimitServiceClient(conn), m.applied
}

// TestGatewayRoutes sends the configurations of Envoy Gateway's tests through a real management
// server. The requests of their routes meet the limits of the configuration, and every limit is
// met.
func TestGatewayRoutes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(gatewayData, "gateway", "*.yaml"))
	if err != nil || len(files) != 26 {
		t.Fatalf("found %d files (%v), want 26", len(files), err)
	}
	p := startControlPlane(t)
	p.publish(t, files[0], documentsOf(t, files[0])) // The start waits for a first configuration.
	client, applied := startManaged(t, p)
	for n, file := range files {
		documents := documentsOf(t, file)
		if n > 0 {
			p.publish(t, file, documents)
		}
		select {
		case err := <-applied:
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not applied within 30 s", file)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			meetLimits(t, client, documents, documentsOf(t, filepath.Join(gatewayData, "routes", name+".routes.yaml")))
		})
	}
}

// meetLimits sends the requests of all routes.
func meetLimits(t *testing.T, client ratelimitv3.RateLimitServiceClient, documents, routes [][]byte) {
	t.Helper()
	trees, unmet := map[string][]*writtenNode{}, map[*writtenNode]bool{}
	for _, text := range documents {
		var tree struct {
			Domain      string         `json:"domain"`
			Descriptors []*writtenNode `json:"descriptors"`
		}
		decode(t, text, &tree)
		trees[tree.Domain] = tree.Descriptors
		for _, n := range limited(tree.Descriptors) {
			unmet[n] = true
		}
	}
	for _, route := range routes {
		for _, req := range requestsOf(t, route) {
			var nodes []*writtenNode
			for _, d := range req.GetDescriptors() {
				n := find(trees[req.GetDomain()], d.GetEntries())
				if n == nil || n.RateLimit == nil {
					t.Fatalf("the configuration has no limit for %v in %s", d, req.GetDomain())
				}
				nodes = append(nodes, n)
				delete(unmet, n)
			}
			meet(t, client, req, nodes)
		}
	}
	for n := range unmet {
		t.Errorf("no route meets the limit of %s=%s", n.Key, n.Value)
	}
}

// meet sends a request with one hit, and one with more hits than each limit.
func meet(t *testing.T, client ratelimitv3.RateLimitServiceClient, req *ratelimitv3.RateLimitRequest, nodes []*writtenNode) {
	t.Helper()
	for _, over := range []bool{false, true} {
		for i, d := range req.GetDescriptors() {
			d.HitsAddend = wrapperspb.UInt64(1)
			if over {
				d.HitsAddend = wrapperspb.UInt64(uint64(nodes[i].RateLimit.Requests) + 1)
			}
		}
		got, err := client.ShouldRateLimit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range got.GetStatuses() {
			l := s.GetCurrentLimit()
			shown := fmt.Sprintf("%d/%s", l.GetRequestsPerUnit(), l.GetUnit())
			if want := fmt.Sprintf("%d/%s", nodes[i].RateLimit.Requests, nodes[i].RateLimit.Unit); shown != want {
				t.Errorf("%v meets the limit %s, want %s", req.GetDescriptors()[i], shown, want)
			}
			refused := s.GetCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT
			if want := over && !nodes[i].ShadowMode; want && !refused || refused && nodes[i].ShadowMode {
				t.Errorf("%v, over %t: %s", req.GetDescriptors()[i], over, s.GetCode())
			}
		}
	}
}
