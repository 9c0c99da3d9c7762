package etcd

import (
	"context"
	"sync/atomic"

	"github.com/headgate/headgate/internal/config/source"
)

// Source is a source.Writer. It is safe for concurrent use.
type Source struct {
	config     Config
	keys       keys
	connection *connection
	// unmeasured are the bytes of records since the last call of pruneBytes.
	unmeasured atomic.Int64
}

var _ source.Writer = (*Source)(nil)

// Open checks the configuration. It does not connect: Follow and the other methods do.
func Open(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Source{config: c, keys: keys{c.Prefix}, connection: newConnection(c)}
	s.unmeasured.Store(measureEvery)
	return s, nil
}

// Follow implements source.Source.
func (s *Source) Follow(ctx context.Context, to source.Receiver) {
	f := &follower{Source: s, to: to, page: maxPage}
	f.run(ctx)
}

// Close implements source.Source.
func (s *Source) Close() error {
	s.connection.close()
	return nil
}
