package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// clusterPatience limits the time to create a cluster.
const clusterPatience = time.Minute

// Cluster starts a Redis Cluster without replicas and waits until all masters serve. Redis
// requires at least three masters.
func Cluster(ctx context.Context, dir string, masters int) ([]*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	var nodes []*Server
	words := []string{"--cluster", "create"}
	for range masters {
		own, err := os.MkdirTemp(dir, "node-") // A node stores the cluster state in its folder.
		if err != nil {
			return nodes, err
		}
		node, err := Redis(ctx, own, "--cluster-enabled", "yes")
		if err != nil {
			return nodes, err
		}
		nodes = append(nodes, node)
		words = append(words, node.Addr)
	}
	if text, err := cli(ctx, append(words, "--cluster-yes")...); err != nil {
		return nodes, fmt.Errorf("servers: redis-cli --cluster create: %w\n%s", err, text)
	}
	for _, node := range nodes {
		if err := node.serves(ctx, masters); err != nil {
			return nodes, err
		}
	}
	return nodes, nil
}

// cli runs redis-cli and returns its standard output and standard error.
func cli(ctx context.Context, words ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "redis-cli", words...).CombinedOutput() //nolint:gosec // This package passes all words.
}

// serves waits until the node knows all masters and the owner of each slot.
func (s *Server) serves(ctx context.Context, masters int) error {
	host, port, _ := strings.Cut(s.Addr, ":")
	for {
		text, err := cli(ctx, "-h", host, "-p", port, "CLUSTER", "INFO")
		if err == nil && strings.Contains(string(text), "cluster_state:ok\r\n") &&
			strings.Contains(string(text), fmt.Sprintf("cluster_size:%d\r\n", masters)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("servers: the cluster did not become ready: %w\nCLUSTER INFO printed:\n%s", errors.Join(ctx.Err(), err), text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
