package etcd

import (
	"context"
	"errors"

	"github.com/headgate/headgate/config/source"
)

// Source is a source.Writer. It is safe for concurrent use.
type Source struct {
	config Config
}

var _ source.Writer = (*Source)(nil)

// Open checks the configuration. It does not connect: Follow and the other methods do.
func Open(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Source{config: c}, nil
}

var errUnfinished = errors.New("config/source/etcd: unfinished")

// Follow implements source.Source.
func (s *Source) Follow(ctx context.Context, to source.Receiver) {
	to.Failed(errUnfinished)
	<-ctx.Done()
}

// Close implements source.Source.
func (s *Source) Close() error { return nil }

// Get implements source.Writer.
func (s *Source) Get(context.Context, source.Key) (source.Object, error) {
	return source.Object{}, errUnfinished
}

// Write implements source.Writer.
func (s *Source) Write(context.Context, source.Write) (int64, error) { return 0, errUnfinished }

// Records implements source.Writer.
func (s *Source) Records(context.Context, string, int) ([]source.Record, error) {
	return nil, errUnfinished
}
