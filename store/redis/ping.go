package redis

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/store/resp"
)

// Ping reports whether a server answers: nil when one does, and otherwise an error of one of them. In a
// cluster, it asks all nodes at the same time. The breakers do not count these calls. Ping opens a
// connection if there is none.
func (s *Store) Ping(ctx context.Context) error {
	if !s.made() {
		return errors.New("redis: the store is not open: use Open")
	}
	client, err := s.link.get(ctx)
	if err != nil {
		return err
	}
	if s.config.Kind != Cluster {
		return ping(ctx, client)
	}
	nodes := client.Nodes()
	answers := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { answers <- ping(ctx, node) }()
	}
	err = errors.New("redis: the cluster has no nodes: check its addresses")
	for range nodes {
		if err = <-answers; err == nil {
			break // The others end with ctx.
		}
	}
	return err
}

// ping pings one node. The client connects once for all callers that wait, with the context of the first one. If
// that one ends, the others get its error, and ping tries again. It also does so after a connection that was closed
// because of a reply.
func ping(ctx context.Context, client rueidis.Client) (err error) {
	const most = 3
	for range most {
		err = client.Do(ctx, client.B().Ping().Build()).Error()
		if left := new(resp.LeftError); ctx.Err() != nil || !errors.Is(err, context.Canceled) && !errors.As(err, &left) {
			return err
		}
	}
	return err
}
