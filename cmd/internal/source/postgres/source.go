package postgres

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/internal/config/source"
)

// Source is a source.Writer. It is safe for concurrent use.
type Source struct {
	config Config
	free   chan struct{} // Has an element for each connection in use.
}

var _ source.Writer = (*Source)(nil)

// Open checks the configuration. It does not connect: Follow and the other methods do.
func Open(c Config) (*Source, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Source{config: c, free: make(chan struct{}, maxConnections)}, nil
}

// Follow implements source.Source.
func (s *Source) Follow(ctx context.Context, to source.Receiver) {
	f := &follower{Source: s, to: to}
	f.run(ctx)
}

// Close implements source.Source. No connection outlives the method that has opened it.
func (s *Source) Close() error { return nil }

// Init makes the schema, its tables and triggers, or brings them up to date. The user needs the right to create a
// schema in the database. It is safe to repeat.
func (s *Source) Init(ctx context.Context) error {
	err := s.with(ctx, func(c *connection) error {
		_, err := c.Exec(ctx, Schema(s.config.Schema)).ReadAll()
		return err
	})
	if err != nil {
		return fmt.Errorf("config/source/postgres: the tables cannot be made in %s: %w%s", s.config, err, advice(err))
	}
	return nil
}
