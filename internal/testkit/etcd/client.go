package etcd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap" //nolint:depguard // etcd's client takes no other logger: this one says nothing
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/internal/testkit/process"
)

// Client returns a client with its own connection, which is closed with the test.
func (s *Server) Client() *clientv3.Client {
	s.TB.Helper()
	return s.client(s.Addr)
}

// ClientThrough returns a client that reaches the server only through a link. Create the link
// with network.New(tb, server.Addr).
func (s *Server) ClientThrough(link *network.Link) *clientv3.Client {
	s.TB.Helper()
	return s.client(link.Addr)
}

// client returns a client that reconnects soon after the server comes back. The default backoff
// of gRPC grows to minutes.
func (s *Server) client(addr string) *clientv3.Client {
	s.TB.Helper()
	again := backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 200 * time.Millisecond}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: time.Second}),
		},
	})
	if err != nil {
		s.TB.Fatal(err)
	}
	s.TB.Cleanup(func() { _ = c.Close() })
	return c
}

// CTL runs etcdctl against the server and returns its output without the final newline. It
// fails the test when etcdctl fails.
func (s *Server) CTL(words ...string) string {
	s.TB.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Timeout)
	defer cancel()
	words = append([]string{"--endpoints", s.Addr}, words...)
	command := exec.CommandContext(ctx, "etcdctl", words...) //nolint:gosec // tests give the words
	command.Env = append(os.Environ(), "ETCDCTL_API=3")
	out, err := command.CombinedOutput()
	if err != nil {
		s.TB.Fatal(fmt.Errorf("etcdctl %s: %w: %s", strings.Join(words, " "), err, out))
	}
	return strings.TrimRight(string(out), "\n")
}
