package main

import (
	"context"
	"errors"
	"io"

	"github.com/headgate/headgate/pace/etcd"
)

type getLimitCommand struct {
	Provider string `arg:"" optional:"" help:"Whose limit; all unless told otherwise."`
}

// Validate refuses a name that no provider can have.
func (g getLimitCommand) Validate() error {
	if g.Provider == "" {
		return nil
	}
	return checkProvider(g.Provider)
}

// Run prints the limits, as a table or as JSON.
func (g getLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.Limit.run(ctx, c, stdout, stderr, func(s *limitSession) error {
		if g.Provider == "" {
			return s.list(ctx)
		}
		return s.show(ctx, g.Provider)
	})
}

// list prints all providers.
func (s *limitSession) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all, err := s.limits.List(ctx)
	switch {
	case err != nil:
		return s.explain(err)
	case !s.json:
		return writeLimits(s.out, all, s.now())
	}
	document := limitsDocument{Limits: make([]limitDocument, 0, len(all))}
	for i := range all {
		document.Limits = append(document.Limits, documentOf(&all[i]))
	}
	return writeDocument(s.out, document)
}

// show prints one provider.
func (s *limitSession) show(ctx context.Context, provider string) error {
	e, err := s.get(ctx, provider)
	switch {
	case errors.Is(err, etcd.ErrNotFound):
		return noLimit(provider)
	case err != nil:
		return s.explain(err)
	case s.json:
		return writeDocument(s.out, documentOf(&e))
	default:
		return writeProvider(s.out, &e, s.now())
	}
}
