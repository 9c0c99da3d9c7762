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

// clusterPatience is how long a cluster may take to be made.
const clusterPatience = time.Minute

// Cluster starts a Redis Cluster of so many masters, at least three, without
// replicas, and returns when each of them serves.
func Cluster(ctx context.Context, dir string, masters int) ([]*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	var nodes []*Server
	words := []string{"--cluster", "create"}
	for range masters {
		own, err := os.MkdirTemp(dir, "node-") // A node keeps what it knows of the cluster in its folder.
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

// cli runs redis-cli, and gives all that it says.
func cli(ctx context.Context, words ...string) ([]byte, error) {
	return exec.CommandContext(ctx, "redis-cli", words...).CombinedOutput() //nolint:gosec // our own words
}

// serves waits until a node knows all others and who has which slot.
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
			return fmt.Errorf("servers: the cluster is not made: %w\n%s", errors.Join(ctx.Err(), err), text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
