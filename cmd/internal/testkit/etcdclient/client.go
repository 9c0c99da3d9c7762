// Package etcdclient makes clients of a test server of etcd.
package etcdclient

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap" //nolint:depguard // etcd's client takes no other logger: this one says nothing
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// New returns a client that reconnects soon after the server comes back. The default backoff
// of gRPC grows to minutes.
func New(tb testing.TB, addr string) *clientv3.Client {
	tb.Helper()
	again := backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: time.Second}),
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}
