package ctl

import (
	"context"
	"errors"

	"github.com/headgate/headgate/pace/etcd"
)

// Get prints the limit of a provider, or the limits of all providers when provider is "".
func (l *Limits) Get(ctx context.Context, provider string) error {
	return l.run(ctx, func(s *limitSession) error {
		if provider == "" {
			return s.list(ctx)
		}
		return s.show(ctx, provider)
	})
}

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
