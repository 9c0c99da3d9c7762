package ctl

import (
	"context"
	"errors"

	"github.com/headgate/headgate/pace/etcd"
)

// Get prints the limits of all providers for "", or of one, as a table or as JSON.
func (l *Limits) Get(ctx context.Context, provider string) error {
	return l.run(ctx, func(s *limitSession) error {
		if provider == "" {
			return s.list(ctx)
		}
		return s.show(ctx, provider)
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
